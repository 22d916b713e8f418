//! Asking brokers for what they know of a host.

use super::proof::Proof;
use crate::context::{Context, unexpected};
use crate::failure::{Code, Failure};
use crate::session::Session;
use protocol::bounded::List;
use protocol::filter::Filter;
use protocol::ids::{BrokerId, HostId};
use protocol::message::{BrokerReply, BrokerRequest, FOUND_MAX, Search};
use protocol::reliability::HostEvidence;
use protocol::terms::{ContractKind, Need};
use std::collections::BTreeSet;

/// How often it is begun anew when leases end while their pages are read.
const TRIES: usize = 3;
/// Most pages: a broker that has always another one is not believed.
const PAGES_MAX: usize = 64;

/// The host that was named: by its whole id, or by the first characters of one that offers something.
pub(crate) async fn host(context: &Context, typed: &str) -> Result<HostId, Failure> {
    if let Ok(host) = typed.parse() {
        return Ok(host);
    }
    let filter: Filter = format!("host_id={typed}").parse().map_err(|_| {
        let what = format!("'{typed}' is not a host: h- and at least four characters of its id");
        Failure::new(Code::BadValue, what)
    })?;
    let search = Search {
        filter,
        sort: List::default(),
        need: Need::default(),
        kind: ContractKind::OnDemand,
        job: None,
        limit: u16::try_from(FOUND_MAX).unwrap_or(u16::MAX),
    };
    let mut hosts = BTreeSet::new();
    let session = context.session().await?;
    for (_, answer) in session.ask_all(&BrokerRequest::Search(search)).await {
        if let Ok(BrokerReply::Found(found)) = answer {
            let signers = found
                .offers
                .iter()
                .filter_map(|one| one.offer.verify().ok());
            hosts.extend(signers.map(|offer| HostId::from(offer.signer())));
        }
    }
    hosts.retain(|host: &HostId| host.begins_with(typed));
    match (hosts.pop_first(), hosts.is_empty()) {
        (Some(host), true) => Ok(host),
        (Some(_), false) => Err(Failure::new(
            Code::Ambiguous,
            format!("several hosts begin with {typed}"),
        )
        .help("type more of the id")),
        (None, _) => {
            let what = format!("no host that begins with {typed} offers anything now");
            Err(Failure::new(Code::NoSuchHost, what).help("type the whole id of the host"))
        }
    }
}

/// What each broker knows of `host`. One that fails is said and left out, unless all do.
pub(super) async fn proofs(context: &Context, host: HostId) -> Result<Vec<Proof>, Failure> {
    let session = context.session().await?;
    let mut proofs = Vec::new();
    let mut failures = Vec::new();
    for broker in session.brokers() {
        match proof(session, broker.id, host).await {
            Ok(proof) => proofs.push(proof),
            Err(failure) => failures.push(failure),
        }
    }
    if proofs.is_empty()
        && let Some(failure) = failures.pop()
    {
        return Err(failure);
    }
    for failure in failures {
        context.printer.warn(failure.what());
    }
    Ok(proofs)
}

async fn proof(session: &Session, broker: BrokerId, host: HostId) -> Result<Proof, Failure> {
    let mut last = None;
    for _ in 0..TRIES {
        let pages = pages(session, broker, host).await?;
        match Proof::of(broker, host, &pages) {
            Ok(proof) => return Ok(proof),
            // A lease took a step between two pages, or the broker is not to be believed: the next try shows.
            Err(failure) => last = Some(failure),
        }
    }
    Err(last.unwrap_or_else(|| unexpected(broker)))
}

async fn pages(
    session: &Session,
    broker: BrokerId,
    host: HostId,
) -> Result<Vec<HostEvidence>, Failure> {
    let mut pages = Vec::new();
    let mut after = None;
    while pages.len() < PAGES_MAX {
        let request = BrokerRequest::HostEvidence { host, after };
        let BrokerReply::HostEvidence(page) = session.ask(broker, &request).await? else {
            return Err(unexpected(broker));
        };
        after = page.next;
        pages.push(*page);
        if after.is_none() {
            return Ok(pages);
        }
    }
    Err(unexpected(broker))
}
