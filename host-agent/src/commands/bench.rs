//! `feira-host bench`: measures the machine, keeps what was found for the offers, and shows it beside what the makers
//! publish. Nothing is measured while a lease has anything of the machine, and a lease that comes ends it.

mod machine;
mod table;

use super::{Place, block_on};
use crate::args::{Bench, BenchPart};
use crate::bench::file::{ResultsError, Turn, load, save};
use crate::bench::{BenchError, Plan, Run, Watch, run};
use crate::config::Config;
use crate::core::bench::{Part, merged};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use measure::MeasureError;
use protocol::machine::Gpu;
use protocol::operator::{Exit, Failure, Signals, chain, is_denied};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Progress on its way to the screen; what does not fit is old anyway.
const SAID_MAX: usize = 64;

/// Measures, or shows what was found last.
pub(super) fn bench(place: &Place, asked: &Bench) -> Result<Exit, Failure> {
    let config = place.config()?;
    let folder = place.folder.path();
    if asked.show {
        let kept = load(folder).map_err(|error| place.results_failed(&error))?;
        if kept.is_empty() {
            return Err(Failure::new(Exit::NotFound, "nothing was measured yet")
                .help(place.command("bench")));
        }
        let gpus = block_on(machine::gpus(&config))?;
        table::print(place, &kept, &Run::default(), &gpus);
        return Ok(Exit::Done);
    }
    place.check_owner("bench")?;
    let _turn = Turn::take(folder).map_err(|error| place.results_failed(&error))?;
    machine::check_idle(place)?;
    let kept = load(folder).map_err(|error| place.results_failed(&error))?;
    let (run, gpus, is_told) = block_on(measure(place, &config, asked))??;
    if !run.outcomes.is_empty() {
        let all = merged(&kept, &run.outcomes);
        save(folder, &all).map_err(|error| place.results_failed(&error))?;
    }
    table::print(place, &run.outcomes, &run, &gpus);
    if is_told {
        let what = "broken off; what was whole by then is kept";
        return Err(Failure::new(Exit::Interrupted, what));
    }
    run.failed
        .first()
        .map_or(Ok(Exit::Done), |(part, error)| Err(failed(*part, error)))
}

fn parts(asked: &Bench) -> BTreeSet<Part> {
    if asked.parts.is_empty() {
        return BTreeSet::from(Part::ALL);
    }
    let part = |part: &BenchPart| match part {
        BenchPart::Cpu => Part::Cpu,
        BenchPart::Ram => Part::Ram,
        BenchPart::Disk => Part::Disk,
        BenchPart::Network => Part::Network,
        BenchPart::Gpu => Part::Gpu,
    };
    asked.parts.iter().map(part).collect()
}

async fn measure(
    place: &Place,
    config: &Config,
    asked: &Bench,
) -> Result<(Run, Vec<Gpu>, bool), Failure> {
    let mut signals = Signals::watch()?;
    let mut plan = Plan::new(parts(asked), place.folder.path().to_owned());
    plan.disk.reserve = config.disk_reserve.0;
    plan.software_gpu = asked.software;
    plan.gpus = machine::gpus(config).await;
    let gpus = plan.gpus.clone();
    if plan.parts.contains(&Part::Disk) {
        plan.data_root = machine::data_root(config).await;
    }
    let mut node = None;
    if plan.parts.contains(&Part::Network) {
        let (visitor, brokers) = machine::brokers(config).await?;
        plan.brokers = brokers;
        node = Some(visitor);
    }
    let (sender, mut said) = mpsc::channel(SAID_MAX);
    let watch = Watch::new(move |part, done| {
        // A screen that is behind needs no old progress.
        let _ = sender.try_send((part, done));
    });
    let guard = machine::stop_at_lease(place.socket()?, Arc::clone(&watch));
    let running = run(&plan, node.as_ref(), &watch);
    tokio::pin!(running);
    let mut is_told = false;
    let mut bars = Bars::new(!place.printer.is_json());
    let found = loop {
        tokio::select! {
            biased;
            found = &mut running => break found,
            Some((part, done)) = said.recv() => bars.show(part, done),
            () = signals.told_to_stop() => {
                is_told = true;
                watch.stop();
            }
        }
    };
    bars.finish();
    drop(guard);
    Ok((found, gpus, is_told))
}

/// One moving line on standard error, for the part that is measured; none where that is no terminal.
struct Bars {
    target: fn() -> ProgressDrawTarget,
    current: Option<(Part, ProgressBar)>,
}

impl Bars {
    fn new(shown: bool) -> Self {
        let target = if shown {
            ProgressDrawTarget::stderr
        } else {
            ProgressDrawTarget::hidden
        };
        Self {
            target,
            current: None,
        }
    }

    fn show(&mut self, part: Part, done: u16) {
        if self
            .current
            .as_ref()
            .is_none_or(|(shown, _)| *shown != part)
        {
            self.finish();
            let bar = ProgressBar::with_draw_target(Some(1000), (self.target)());
            if let Ok(style) = ProgressStyle::with_template("{msg:<8} {wide_bar} {percent:>3} %") {
                bar.set_style(style);
            }
            bar.set_message(part.name());
            self.current = Some((part, bar));
        }
        if let Some((_, bar)) = &self.current {
            bar.set_position(done.into());
        }
    }

    fn finish(&mut self) {
        if let Some((_, bar)) = self.current.take() {
            bar.finish_and_clear();
        }
    }
}

fn failed(part: Part, error: &BenchError) -> Failure {
    let what = format!("{}: {}", part.name(), chain(error));
    let plain = Failure::new(Exit::Failed, what.clone());
    match error {
        BenchError::Stopped | BenchError::Measure(MeasureError::Cancelled) => {
            plain.help("a lease came; what was whole by then is kept")
        }
        BenchError::Denied { .. } | BenchError::Measure(MeasureError::Denied { .. }) => {
            Failure::new(Exit::NotAllowed, what)
                .help("put the data folder on the engine's disk, or let its user write there")
        }
        BenchError::Measure(MeasureError::NoSpace { .. }) => {
            plain.help("make room, or lower `disk_reserve_gb` in host.toml")
        }
        BenchError::NoBroker | BenchError::NoEngine(_) | BenchError::Network { .. } => {
            Failure::new(Exit::Unreachable, what).help("look at the connection: doctor")
        }
        BenchError::Gpu { .. } => plain.help("look at the GPU and its driver: doctor"),
        BenchError::Measure(
            MeasureError::NoDirect { .. }
            | MeasureError::File { .. }
            | MeasureError::NoMemory { .. }
            | MeasureError::Thread(_),
        )
        | BenchError::Broke(_) => plain,
    }
}

impl Place {
    pub(super) fn results_failed(&self, error: &ResultsError) -> Failure {
        let failure = Failure::new(Exit::Failed, chain(error));
        match error {
            ResultsError::UnderWay { .. } => failure.help("wait for its end, or stop it"),
            ResultsError::Foreign { path, .. } => failure.help(format!("rm {}", path.display())),
            ResultsError::Io { source, .. } if is_denied(source) => Failure {
                exit: Exit::NotAllowed,
                ..failure
            }
            .help(self.as_owner()),
            ResultsError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Failure {
                    exit: Exit::NotFound,
                    ..failure
                }
                .help(self.command("init --broker ADDRESS"))
            }
            ResultsError::Io { .. } => failure,
        }
    }
}
