//! The named stages of a start, shown as they pass: a moving line on a terminal, one plain line for each
//! finished stage everywhere else.

use crate::clock::Stopwatch;
use crate::printer::{Paint, Printer, paint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use protocol::lease::{LeaseView, Phase, Progress, Stage};
use protocol::units::{Bytes, Millis};
use std::time::Duration;

/// How often the moving line moves.
const TICK: Duration = Duration::from_millis(120);

/// Where a start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    /// Matched; the host has not answered.
    Matched,
    /// The host has it.
    Granted,
    /// The image is pulled.
    Pulling,
    /// The container is made.
    Creating,
    /// The container is started.
    Starting,
    /// It runs, or never will.
    Over,
}

impl At {
    fn of(view: &LeaseView) -> Self {
        match &view.phase {
            Phase::Offered => Self::Matched,
            Phase::Accepted => Self::Granted.max(Self::of_progress(view.progress.as_ref())),
            Phase::Preparing => Self::of_progress(view.progress.as_ref()).max(Self::Granted),
            Phase::Running
            | Phase::Suspect
            | Phase::Paused(_)
            | Phase::Closing(_)
            | Phase::Closed(_) => Self::Over,
        }
    }

    fn of_progress(progress: Option<&Progress>) -> Self {
        match progress.map(|progress| progress.stage) {
            None | Some(Stage::Granting) => Self::Matched,
            Some(Stage::Pulling) => Self::Pulling,
            Some(Stage::Creating) => Self::Creating,
            Some(Stage::Starting) => Self::Starting,
        }
    }

    /// What is true when this is behind.
    const fn done(self) -> &'static str {
        match self {
            Self::Matched => "host accepted",
            Self::Granted => "host ready",
            Self::Pulling => "image pulled",
            Self::Creating => "container created",
            Self::Starting => "container started",
            Self::Over => "",
        }
    }

    /// What happens in it.
    const fn doing(self) -> &'static str {
        match self {
            Self::Matched => "waiting for the host",
            Self::Granted => "the host prepares",
            Self::Pulling => "pulling the image",
            Self::Creating => "creating the container",
            Self::Starting => "starting the container",
            Self::Over => "",
        }
    }
}

/// Shows the stages of one start.
#[derive(Debug)]
pub(crate) struct Stages<'a> {
    printer: &'a Printer,
    at: At,
    since: Stopwatch,
    begun: Stopwatch,
    /// What was pulled, as last heard.
    pulled: Bytes,
    line: Option<ProgressBar>,
}

impl<'a> Stages<'a> {
    /// Begins with the order matched.
    pub(crate) fn begin(printer: &'a Printer) -> Self {
        let line = printer.can_animate().then(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}") {
                line.set_style(style);
            }
            line.enable_steady_tick(TICK);
            line.set_message(At::Matched.doing());
            line
        });
        let watch = Stopwatch::start();
        Self {
            printer,
            at: At::Matched,
            since: watch,
            begun: watch,
            pulled: Bytes(0),
            line,
        }
    }

    /// Shows how the lease stands now.
    pub(crate) fn show(&mut self, view: &LeaseView) {
        let at = At::of(view);
        if at > self.at && (at != At::Over || view.phase == Phase::Running) {
            self.finish_stage();
            self.at = at;
            self.since = Stopwatch::start();
        }
        if let Some(progress) = &view.progress
            && progress.stage == Stage::Pulling
        {
            self.pulled = progress.done.max(self.pulled);
        }
        if let Some(line) = &self.line {
            line.set_message(doing(self.at, view.progress.as_ref()));
        }
    }

    /// The line that says that it runs.
    pub(crate) fn elapsed(&self) -> Millis {
        self.begun.elapsed()
    }

    /// Takes the moving line away, so that something else can be said.
    pub(crate) fn clear(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }

    /// Says something beside the moving line.
    pub(crate) fn beside(&self, what: &str) {
        match &self.line {
            Some(line) => line.suspend(|| self.printer.say(what)),
            None => self.printer.say(what),
        }
    }

    fn finish_stage(&self) {
        // The host's first stages pass too quickly to be heard of one by one.
        if self.at == At::Granted {
            return;
        }
        let size = match self.at {
            At::Pulling if self.pulled.0 > 0 => format!(", {}", self.pulled),
            At::Pulling => ", it was there".to_owned(),
            At::Matched | At::Granted | At::Creating | At::Starting | At::Over => String::new(),
        };
        let what = format!("{}{size}", self.at.done());
        let tick = paint(self.printer.talk_has_colour(), Paint::Good, "✓");
        self.beside(&format!(
            "  {tick} {what:<32} {:>7}",
            in_seconds(self.since.elapsed())
        ));
    }
}

impl Drop for Stages<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

fn doing(at: At, progress: Option<&Progress>) -> String {
    let bytes = progress.filter(|progress| at == At::Pulling && progress.total.0 > 0);
    match bytes {
        Some(Progress { done, total, .. }) => format!("{} ({done} of {total})", at.doing()),
        None => at.doing().to_owned(),
    }
}

/// `0.4 s`.
pub(crate) fn in_seconds(time: Millis) -> String {
    format!("{}.{} s", time.0 / 1000, time.0 / 100 % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::lease;
    use protocol::lease::EndCause;

    fn at(phase: Phase, stage: Option<Stage>) -> At {
        let mut view = lease(1, "brave-otter", phase).view;
        let id = view.id;
        let progress = |stage| Progress {
            lease: id,
            stage,
            done: Bytes(3_100_000_000),
            total: Bytes(7_400_000_000),
        };
        view.progress = stage.map(progress);
        At::of(&view)
    }

    #[test]
    fn phase_and_progress_together_are_a_stage() {
        assert_eq!(at(Phase::Offered, None), At::Matched);
        assert_eq!(at(Phase::Accepted, None), At::Granted);
        assert_eq!(at(Phase::Accepted, Some(Stage::Pulling)), At::Pulling);
        assert_eq!(at(Phase::Preparing, None), At::Granted);
        assert_eq!(at(Phase::Preparing, Some(Stage::Starting)), At::Starting);
        assert_eq!(at(Phase::Running, Some(Stage::Starting)), At::Over);
        assert_eq!(at(Phase::Closed(EndCause::NotStarted), None), At::Over);
    }

    #[test]
    fn a_pull_says_how_much_of_how_much() {
        let id = protocol::ids::LeaseId::from_bytes([0; 16]);
        let progress = Progress {
            lease: id,
            stage: Stage::Pulling,
            done: Bytes(3_100_000_000),
            total: Bytes(7_400_000_000),
        };
        assert_eq!(
            doing(At::Pulling, Some(&progress)),
            "pulling the image (3.1 GB of 7.4 GB)"
        );
        assert_eq!(
            doing(At::Creating, Some(&progress)),
            "creating the container"
        );
        assert_eq!(in_seconds(Millis(11_249)), "11.2 s");
    }
}
