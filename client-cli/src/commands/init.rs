//! `feira init`: a key, the brokers, a budget. Asks at most two questions, each with a default and a flag;
//! safe to run again: a key is never replaced and nothing configured is forgotten.

use crate::args::InitArgs;
use crate::ask;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::printer::Object;
use crate::session::Session;
use crate::settings::{ConfigFile, gather};
use protocol::ids::RenterId;
use protocol::net::{Identity, IdentityError};
use protocol::units::{AmountError, MicroUsd};
use serde_json::json;

/// The budget that is proposed, in dollars.
const BUDGET: &str = "10";

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &InitArgs) -> Result<Exit, Failure> {
    let printer = &context.printer;
    let (identity, is_new) = key(context)?;
    let renter = RenterId::from(identity.public());
    if is_new {
        printer.done(&format!(
            "key made in {}: back it up",
            context.settings.key.display()
        ));
    } else {
        printer.done(&format!("key is there: {}", context.settings.key.display()));
    }
    let asks = context.settings.may_ask && !arguments.yes;
    let config = ConfigFile {
        brokers: brokers(context, asks)?,
        key: context.settings.config.key.clone(),
        limits: crate::settings::Limits {
            budget_usd: Some(budget(context, arguments, asks)?),
        },
    };
    if config != context.settings.config {
        config.write(&context.settings.config_path)?;
    }
    printer.done(&format!(
        "settings in {}",
        context.settings.config_path.display()
    ));
    greet(context, &identity, &config).await?;
    printer.object(&object(context, renter, &config))?;
    printer
        .hint("\nGive the operator of a broker your renter id for a deposit, then:  feira balance");
    printer.hint("Try it without money:  feira search");
    Ok(Exit::Done)
}

fn key(context: &Context) -> Result<(Identity, bool), Failure> {
    match Identity::load(&context.settings.key) {
        Ok(identity) => Ok((identity, false)),
        Err(IdentityError::Missing { .. }) => Ok((Identity::create(&context.settings.key)?, true)),
        Err(error) => Err(error.into()),
    }
}

/// Those that are configured and those that were named now.
fn brokers(context: &Context, asks: bool) -> Result<Vec<String>, Failure> {
    let named = context
        .settings
        .brokers
        .iter()
        .flat_map(|broker| &broker.addresses);
    let mut addresses = context.settings.config.brokers.clone();
    for address in named.map(ToString::to_string) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() && asks {
        let answer = ask::text(
            context,
            "Address of a broker (its operator knows it; empty: later)?",
        )?;
        if !answer.is_empty() {
            gather(&[&answer], "the address", Code::BadValue)?;
            addresses.push(answer);
        }
    }
    Ok(addresses)
}

fn budget(context: &Context, arguments: &InitArgs, asks: bool) -> Result<MicroUsd, Failure> {
    if let Some(known) = arguments
        .budget
        .or(context.settings.config.limits.budget_usd)
    {
        return Ok(known);
    }
    let mut answer = String::new();
    if asks {
        let question =
            format!("Most that one lease may cost unless you say otherwise, in USD? [{BUDGET}]");
        answer = ask::text(context, &question)?;
    }
    let text = if answer.is_empty() { BUDGET } else { &answer };
    text.parse()
        .map_err(|error: AmountError| Failure::new(Code::BadValue, error.to_string()))
}

/// Says which brokers answer; none has to.
async fn greet(context: &Context, identity: &Identity, config: &ConfigFile) -> Result<(), Failure> {
    let brokers = gather(&config.brokers, "brokers", Code::BadConfig)?;
    if brokers.is_empty() {
        context.printer.warn("no broker is configured yet");
        context
            .printer
            .hint("  feira init --broker /ip4/…/tcp/7700/p2p/12D3KooW…");
        return Ok(());
    }
    let session = Session::try_all(identity, &brokers).await?;
    for broker in session.brokers() {
        context.printer.done(&format!(
            "broker {} answers in {} ms: {} offers, fee {}",
            broker.title(),
            broker.latency.as_millis(),
            broker.info.offers,
            broker.info.fee
        ));
    }
    for silent in session.silent() {
        context.printer.warn(&format!(
            "{} does not answer: {}",
            silent.address, silent.reason
        ));
    }
    session.close().await;
    Ok(())
}

fn object(context: &Context, renter: RenterId, config: &ConfigFile) -> Object {
    let budget = config.limits.budget_usd;
    Object {
        id: renter.to_string(),
        lines: vec![("Renter".to_owned(), renter.to_string())],
        json: json!({
            "schema": "feira.renter/1",
            "renter": renter.to_string(),
            "key": context.settings.key.display().to_string(),
            "config": context.settings.config_path.display().to_string(),
            "brokers": config.brokers,
            "budget_usd": budget.map(MicroUsd::decimal),
        }),
    }
}
