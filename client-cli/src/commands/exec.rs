//! `feira exec` and `feira shell`: a program in a lease's container, with this terminal or these pipes.

mod input;

use crate::args::{ExecArgs, ShellArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::terminal::{self, RawMode};
use crate::tunnel::{self, Open};
use crate::view::{Held, phase_in_words};
use input::{Event, Inputs};
use protocol::bounded::{List, Text};
use protocol::job::Variable;
use protocol::net::Tunnel;
use protocol::net::frames::{MessageReader, write_message};
use protocol::tunnel::{Downward, Exec, Purpose, Terminal, Upward, WindowSize};
use tokio::io::{ReadHalf, WriteHalf};

/// What a terminal is taken to be when it does not say.
const SIZE: WindowSize = WindowSize {
    rows: 24,
    columns: 80,
};

/// Whether the program gets a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tty {
    /// When this program has one.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

/// Runs `feira exec`.
pub(crate) async fn exec(context: &Context, arguments: &ExecArgs) -> Result<Exit, Failure> {
    let tty = match (arguments.tty, arguments.no_tty) {
        (true, _) => Tty::Always,
        (_, true) => Tty::Never,
        (false, false) => Tty::Auto,
    };
    run(
        context,
        &arguments.name,
        &arguments.command,
        &arguments.env,
        tty,
    )
    .await
}

/// Runs `feira shell`.
pub(crate) async fn shell(context: &Context, arguments: &ShellArgs) -> Result<Exit, Failure> {
    run(context, &arguments.name, &[], &[], Tty::Auto).await
}

async fn run(
    context: &Context,
    name: &str,
    command: &[String],
    environment: &[Variable],
    tty: Tty,
) -> Result<Exit, Failure> {
    let request = request(context, command, environment, tty)?;
    let held = context.lease(name).await?;
    // From here on a code of 1 to 9 could be the program's own.
    attend(context, &held, request).await.map_err(|failure| {
        match matches!(failure.code(), Code::Interrupted | Code::ReaderGone) {
            true => failure,
            false => failure.not_run(),
        }
    })
}

fn request(
    context: &Context,
    command: &[String],
    environment: &[Variable],
    tty: Tty,
) -> Result<Exec, Failure> {
    let words: Result<Vec<_>, _> = command.iter().map(Text::new).collect();
    let command = words
        .and_then(List::new)
        .map_err(|error| bad("the command", &error))?;
    let environment = List::new(environment.to_vec()).map_err(|error| bad("--env", &error))?;
    let has_terminal = context.input_is_terminal() && context.printer.answers_to_terminal();
    let wants_terminal = match tty {
        Tty::Auto => has_terminal,
        Tty::Always => true,
        Tty::Never => false,
    };
    let terminal = wants_terminal.then(|| Terminal {
        kind: Text::cut(&context.settings.terminal_kind),
        size: terminal::size(rustix::stdio::stdout()).unwrap_or(SIZE),
    });
    Ok(Exec {
        command,
        terminal,
        environment,
    })
}

fn bad(what: &str, error: &protocol::bounded::BoundError) -> Failure {
    Failure::new(Code::BadValue, format!("{what}: {error}"))
}

async fn attend(context: &Context, held: &Held, request: Exec) -> Result<Exit, Failure> {
    if !held.view.phase.is_open() {
        let (name, state) = (&held.view.name, phase_in_words(&held.view.phase));
        return Err(Failure::new(Code::NotRunning, format!("{name} is {state}"))
            .help(format!("read what it wrote: feira logs {name}"))
            .help("rent anew: feira search"));
    }
    let with_terminal = request.terminal.is_some();
    let Open {
        mut from_host,
        mut to_host,
        relayed,
    } = tunnel::open(context, held, Purpose::Exec(request)).await?;
    context.printer.detail(if relayed {
        "through the broker's relay"
    } else {
        "direct"
    });
    let raw = match with_terminal && context.input_is_terminal() {
        true => Some(RawMode::begin().map_err(|error| no_raw(&error))?),
        false => None,
    };
    let mut inputs = Inputs::begin(context, raw.is_some())?;
    let outcome = {
        let receiving = receive(context, held, &mut from_host);
        let sending = send(&mut inputs, &mut to_host);
        tokio::pin!(receiving, sending);
        tokio::select! {
            outcome = &mut receiving => outcome,
            // The input's end is not the program's end; being told to stop is.
            told = &mut sending => match told {
                Ended::Input => receiving.await,
                Ended::Told => Err(Failure::new(Code::Interrupted, "interrupted")),
            },
        }
    };
    drop(raw);
    outcome
}

fn no_raw(error: &std::io::Error) -> Failure {
    Failure::new(
        Code::FileFailed,
        format!("the terminal cannot pass on single keys: {error}"),
    )
}

/// What the program writes, until it ends.
async fn receive(
    context: &Context,
    held: &Held,
    from_host: &mut MessageReader<ReadHalf<Tunnel>>,
) -> Result<Exit, Failure> {
    loop {
        match from_host
            .next::<Downward>()
            .await
            .map_err(|error| tunnel::broken(held, &error))?
        {
            Some(Downward::Output(bytes)) => context.printer.raw(&bytes)?,
            Some(Downward::Errors(bytes)) => context.printer.raw_errors(&bytes)?,
            Some(Downward::Exit(code)) => return Ok(Exit::Remote(exit_code(code))),
            Some(Downward::Broken(detail)) => {
                return Err(Failure::new(Code::TunnelBroken, detail.to_string()));
            }
            None => {
                let what = format!("the host of {} closed the connection", held.view.name);
                return Err(Failure::new(Code::TunnelBroken, what).help(format!(
                    "see how the lease stands: feira show {}",
                    held.view.name
                )));
            }
        }
    }
}

/// Why nothing more is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Input is at its end, or the host takes no more.
    Input,
    /// This program was told to stop.
    Told,
}

/// Input, sizes and signals, until the input's end.
async fn send(inputs: &mut Inputs, to_host: &mut WriteHalf<Tunnel>) -> Ended {
    loop {
        let frame = match inputs.next().await {
            Event::Bytes(bytes) => Upward::Input(bytes),
            Event::End => Upward::InputEnd,
            Event::Resized(size) => Upward::Resize(size),
            Event::Interrupt => Upward::Signal(Text::cut("INT")),
            Event::Stop => return Ended::Told,
        };
        if write_message(to_host, &frame).await.is_err() {
            // The other direction says what happened.
            return Ended::Input;
        }
    }
}

/// A remote code as a shell can see it.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::exit_code;

    #[test]
    fn remote_codes_pass_as_they_are() {
        assert_eq!((exit_code(0), exit_code(7), exit_code(137)), (0, 7, 137));
        // No shell can be told of these; 255 says that something is wrong.
        assert_eq!((exit_code(-1), exit_code(256)), (255, 255));
    }
}
