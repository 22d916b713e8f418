//! `feira help`: commands, topics and error codes, all offline.

use crate::args::Arguments;
use crate::commands::search::fields_help;
use crate::exit::{EXIT_CODES, Exit};
use crate::failure::{Code, Failure};
use crate::printer::Printer;
use crate::settings::VARIABLES;
use clap::CommandFactory;

const AGENTS: &str = "\
For programs and coding agents
  Always       --json (or -o id); stdout is the answer, stderr is talk; exit codes: feira help exit-codes
  Never ask    without a terminal nothing is asked; what would be asked fails with exit 2 and names the flag
  Spend        rent needs --yes, a ceiling (--max-price, or an offer) and --budget; it ends by itself there
  Kinds        on demand without a flag; --bid, --interruptible (feira bid) and --reserve are never implied;
               kind and price are in every answer; a bid that waits exits 0 with state resting
  Look first   --dry-run shows the exact terms that would be signed
  Never poll   feira wait NAME --for ready|noticed|stopped|ended --timeout 10m
  Retry        the same rent command after a crash goes on with the same order; it never rents twice
  Exit 5       nothing matches: widen the conditions      7: gone meanwhile, take another      8: try later
  Exec         the exit code is the remote program's; 255 when feira itself failed
  Always end   trap 'feira end \"$lease\" --yes' EXIT

  lease=$(feira rent --gpu rtx4090 --max-price 0.40 --budget 3 --image debian:12 --yes -o id -- sleep infinity)
  trap 'feira end \"$lease\" --yes' EXIT
  feira exec \"$lease\" -- nvidia-smi -L
  feira receipt \"$lease\" --json | jq -r .total_usd";

const TOPICS: [&str; 5] = ["errors", "exit-codes", "environment", "fields", "agents"];

/// Shows help on a topic, a code or a command; on everything without one.
pub(crate) fn show(printer: &Printer, topic: &[String]) -> Result<Exit, Failure> {
    let words: Vec<&str> = topic.iter().map(String::as_str).collect();
    let text = match words.as_slice() {
        [] => Arguments::command().render_long_help().to_string(),
        ["errors"] => errors(),
        ["exit-codes"] => exit_codes(),
        ["environment"] => environment(),
        ["fields"] => fields_help(),
        ["agents"] => AGENTS.to_owned(),
        [one] => match Code::of_number(one) {
            Some(code) => error(code),
            None => command(one)?,
        },
        several => command(&several.join(" "))?,
    };
    printer.line(text.trim_end())?;
    Ok(Exit::Done)
}

fn errors() -> String {
    let lines = Code::ALL.iter().map(|code| {
        let exit = code.exit().code();
        format!("  {code}  exit {exit:>3}  {}\n", code.summary())
    });
    format!(
        "Errors (feira help E0307 explains one)\n{}",
        lines.collect::<String>()
    )
}

fn error(code: Code) -> String {
    let exit = code.exit().code();
    format!(
        "{code}: {}\n\n{}\n\nExit code {exit}.",
        code.summary(),
        code.explanation()
    )
}

fn exit_codes() -> String {
    let lines = EXIT_CODES
        .iter()
        .map(|(code, meaning, example)| format!("  {code:>3}  {meaning:<60} {example}\n"));
    format!("Exit codes\n{}", lines.collect::<String>())
}

fn environment() -> String {
    let lines = VARIABLES
        .iter()
        .map(|(name, meaning)| format!("  {name:<28} {meaning}\n"));
    let order = "A flag beats the environment, which beats the configuration file.";
    format!("Environment\n{}\n{order}", lines.collect::<String>())
}

fn command(name: &str) -> Result<String, Failure> {
    let mut whole = Arguments::command();
    whole.build();
    if let Some(found) = whole.find_subcommand_mut(name) {
        return Ok(found.render_long_help().to_string());
    }
    let words = whole
        .get_subcommands()
        .map(|command| command.get_name().to_owned());
    let known: Vec<String> = words.chain(TOPICS.map(str::to_owned)).collect();
    let closest = known
        .iter()
        .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)));
    let failure = Failure::new(Code::UnknownTopic, format!("there is no help on '{name}'"));
    Err(match closest {
        Some(closest) => failure.help(format!("did you mean: feira help {closest}")),
        None => failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_and_explained() {
        let listed = errors();
        for code in Code::ALL {
            assert!(listed.contains(code.number()));
            assert!(error(*code).contains(code.explanation()));
        }
        assert!(error(Code::NothingMatches).starts_with("E0307: no offer matches"));
    }

    #[test]
    fn a_mistyped_topic_has_a_suggestion() {
        let failure = command("exitcodes").unwrap_err();
        assert_eq!(
            failure.help_lines(),
            ["did you mean: feira help exit-codes"]
        );
        assert!(command("rent").unwrap().contains("--max-price"));
    }
}
