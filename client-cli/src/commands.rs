//! One file for each command, and the one place that starts the runtime they need.

pub(crate) mod audit;
pub(crate) mod balance;
pub(crate) mod bid;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod doctor;
pub(crate) mod end;
pub(crate) mod estimate;
pub(crate) mod exec;
pub(crate) mod host;
pub(crate) mod init;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod receipt;
pub(crate) mod rent;
pub(crate) mod resume;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod stop;
pub(crate) mod wait;

use crate::args::Command;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// How long what runs in the background may take to end; reading standard input never ends by itself.
const BACKGROUND: Duration = Duration::from_millis(50);

/// Runs a command that needs settings.
pub(crate) fn run(context: &mut Context, command: &Command) -> Result<Exit, Failure> {
    if let Some(filter) = &context.settings.log {
        start_log(filter)?;
    }
    // The network has a thread of its own: a reader that is slow to take the answer, and a person who is slow
    // to give one, must not cost the connection.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Bug, format!("no runtime: {error}")))?;
    let finished = runtime.block_on(async {
        let finished = dispatch(context, command).await;
        context.close().await;
        finished
    });
    runtime.shutdown_timeout(BACKGROUND);
    finished
}

async fn dispatch(context: &Context, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Init(arguments) => init::run(context, arguments).await,
        Command::Search(arguments) => search::run(context, arguments).await,
        Command::Estimate(arguments) => estimate::run(context, arguments).await,
        Command::Rent(arguments) => rent::run(context, arguments).await,
        Command::Bid(arguments) => bid::run(context, arguments).await,
        Command::Convert(arguments) => convert::run(context, arguments).await,
        Command::Ls(arguments) => ls::run(context, arguments).await,
        Command::Show(arguments) => show::run(context, arguments).await,
        Command::Host(arguments) => host::run(context, arguments).await,
        Command::Audit(arguments) => audit::run(context, arguments).await,
        Command::Logs(arguments) => logs::run(context, arguments).await,
        Command::Exec(arguments) => exec::exec(context, arguments).await,
        Command::Shell(arguments) => exec::shell(context, arguments).await,
        Command::Stop(arguments) => stop::run(context, arguments).await,
        Command::Resume(arguments) => resume::run(context, arguments).await,
        Command::End(arguments) => end::run(context, arguments).await,
        Command::Balance(arguments) => balance::run(context, arguments).await,
        Command::Receipt(arguments) => receipt::run(context, arguments).await,
        Command::Wait(arguments) => wait::run(context, arguments).await,
        Command::Doctor => doctor::run(context).await,
        Command::Completions { shell } => completions::run(&context.printer, *shell),
        Command::Help { topic } => crate::topics::show(&context.printer, topic),
    }
}

fn start_log(filter: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::new(
            Code::BadEnvironment,
            format!("FEIRA_LOG is '{filter}': {error}"),
        )
    })?;
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
    // In a process with several runs the first one's log stays.
    drop(started);
    Ok(())
}
