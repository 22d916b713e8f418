//! The named stages of a start, shown as they pass: a moving line on a terminal, one plain line for each
//! finished stage everywhere else.

use crate::clock::Stopwatch;
use crate::printer::{Paint, Printer, paint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use protocol::lease::{LeaseView, PauseCause, Phase, Progress, Stage};
use protocol::units::{Bytes, Millis};
use std::time::Duration;

/// How often the moving line moves.
const TICK: Duration = Duration::from_millis(120);

/// Where a start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    /// A bid that waits for a price.
    Resting,
    /// Those who are there have to go first.
    Clearing,
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
    /// A resumed lease is being prepared from the moment its renter asked for it: only what its host says of
    /// it shows that the host has heard.
    fn of(view: &LeaseView, resumed: bool) -> Self {
        match &view.phase {
            Phase::Resting => Self::Resting,
            Phase::Clearing(_) => Self::Clearing,
            Phase::Offered => Self::Matched,
            Phase::Accepted | Phase::Preparing if resumed => {
                let heard = view.container.as_ref().map(|_| Self::Granted);
                Self::of_progress(view.progress.as_ref()).max(heard.unwrap_or(Self::Matched))
            }
            Phase::Accepted => Self::Granted.max(Self::of_progress(view.progress.as_ref())),
            Phase::Preparing => Self::of_progress(view.progress.as_ref()).max(Self::Granted),
            Phase::Paused(cause) if cause.resumes_by_itself() => Self::Resting,
            Phase::Running
            | Phase::Noticed(..)
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
            Self::Resting => "bid won",
            Self::Clearing => "place cleared",
            Self::Matched => "host accepted",
            Self::Granted => "host ready",
            Self::Pulling => "image ready",
            Self::Creating => "container created",
            Self::Starting => "container started",
            Self::Over => "",
        }
    }

    /// What happens in it.
    const fn doing(self) -> &'static str {
        match self {
            Self::Resting => "the bid waits",
            Self::Clearing => "those who are there are told to go",
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
    /// Whether it was started before: then its image and container are there.
    resumed: bool,
    since: Stopwatch,
    begun: Stopwatch,
    /// What was pulled, as last heard.
    pulled: Bytes,
    line: Option<ProgressBar>,
}

impl<'a> Stages<'a> {
    /// Begins with an order that was taken, or with a stopped lease that is to run again.
    pub(crate) fn begin(printer: &'a Printer, view: &LeaseView) -> Self {
        let resumed = view.started_at.is_some();
        let at = At::of(view, resumed).min(At::Matched);
        let line = printer.can_animate().then(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}") {
                line.set_style(style);
            }
            line.enable_steady_tick(TICK);
            line.set_message(at.doing());
            line
        });
        let watch = Stopwatch::start();
        let stages = Self {
            printer,
            at,
            resumed,
            since: watch,
            begun: watch,
            pulled: Bytes(0),
            line,
        };
        if !resumed {
            stages.tick("order signed", None);
        }
        stages
    }

    /// Shows how the lease stands now.
    pub(crate) fn show(&mut self, view: &LeaseView) {
        let at = At::of(view, self.resumed);
        if let Some(progress) = &view.progress
            && progress.stage == Stage::Pulling
        {
            self.pulled = progress.done.max(self.pulled);
        }
        if at > self.at && (at != At::Over || has_run(&view.phase)) {
            self.finish_stages(at);
            self.at = at;
            self.since = Stopwatch::start();
        }
        if let Some(line) = &self.line {
            line.set_message(doing(self.at, view.progress.as_ref()));
        }
    }

    /// Whether the host has not been heard of yet.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.at == At::Matched
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

    /// Ticks off all that is behind when `next` begins, heard of or not: what passes quickly is not heard of
    /// one by one. The time is that of all of them together, and stands at the last.
    fn finish_stages(&self, next: At) {
        let passed = passed(self.at, next, self.resumed);
        let took = in_seconds(self.since.elapsed());
        for (index, stage) in passed.iter().enumerate() {
            let took = (index + 1 == passed.len()).then_some(took.as_str());
            if *stage == At::Pulling && self.pulled.0 > 0 {
                self.tick(&format!("image pulled, {}", self.pulled), took);
            } else {
                self.tick(stage.done(), took);
            }
        }
    }

    fn tick(&self, what: &str, took: Option<&str>) {
        let tick = paint(self.printer.talk_has_colour(), Paint::Good, "✓");
        let line = format!("  {tick} {what:<32} {:>7}", took.unwrap_or_default());
        self.beside(line.trim_end());
    }
}

/// The stages that are behind when a start goes from `from` to `to`. Taking the lease over is part of accepting
/// it; a resumed lease has its image and its container, unless they were seen to be made again.
fn passed(from: At, to: At, resumed: bool) -> Vec<At> {
    let is_named = |stage: &At| match stage {
        At::Resting | At::Clearing => *stage == from,
        At::Matched | At::Starting => true,
        At::Granted | At::Over => false,
        At::Pulling | At::Creating => !resumed || *stage == from,
    };
    [
        At::Resting,
        At::Clearing,
        At::Matched,
        At::Pulling,
        At::Creating,
        At::Starting,
    ]
    .into_iter()
    .filter(|stage| *stage >= from && *stage < to)
    .filter(is_named)
    .collect()
}

const fn has_run(phase: &Phase) -> bool {
    matches!(
        phase,
        Phase::Running | Phase::Noticed(..) | Phase::Suspect | Phase::Paused(PauseCause::Exited(_))
    )
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
    use protocol::lease::{ContainerState, EndCause};

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
        At::of(&view, false)
    }

    #[test]
    fn a_resumed_lease_is_not_accepted_before_its_host_says_so() {
        let mut view = lease(1, "brave-otter", Phase::Preparing).view;
        assert_eq!(At::of(&view, true), At::Matched);
        assert_eq!(At::of(&view, false), At::Granted);
        view.container = Some(ContainerState::Preparing(Stage::Granting));
        assert_eq!(At::of(&view, true), At::Granted);
        view.progress = Some(Progress {
            lease: view.id,
            stage: Stage::Starting,
            done: Bytes(0),
            total: Bytes(0),
        });
        assert_eq!(At::of(&view, true), At::Starting);
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
    fn every_stage_is_ticked_off_however_few_are_heard_of() {
        let all = [At::Matched, At::Pulling, At::Creating, At::Starting];
        assert_eq!(passed(At::Matched, At::Over, false), all);
        let mut seen = passed(At::Matched, At::Granted, false);
        seen.extend(passed(At::Granted, At::Creating, false));
        seen.extend(passed(At::Creating, At::Over, false));
        assert_eq!(seen, all);
        // A lease that ran before has its image and its container.
        let resumed = [At::Matched, At::Starting];
        assert_eq!(passed(At::Matched, At::Over, true), resumed);
        assert_eq!(passed(At::Creating, At::Over, true), all[2..]);
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
