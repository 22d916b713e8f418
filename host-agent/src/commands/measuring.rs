//! What several commands look at without an agent: the engine, the machine, the listing.

use super::Place;
use super::failures::engine_failed;
use crate::bench::file::load;
use crate::config::Config;
use crate::core::bench::with_measures;
use crate::core::offer::{Listed, Listing, offers};
use crate::core::slices::Divisibles;
use crate::hardware::this::ThisMachine;
use crate::hardware::{Hardware, machine};
use crate::journal;
use crate::runtime::docker::DockerRuntime;
use crate::runtime::{EngineFacts, Runtime};
use protocol::ids::{BrokerId, HostId};
use protocol::machine::{ContainerNetwork, Machine};
use protocol::operator::{Exit, Failure};
use std::path::Path;

/// This machine as it is now.
pub(super) struct Seen {
    pub(super) facts: EngineFacts,
    pub(super) machine: Machine,
    pub(super) divisibles: Divisibles,
}

impl Place {
    /// Looks at engine and machine.
    pub(super) async fn look(
        &self,
        config: &Config,
        host: HostId,
        network: ContainerNetwork,
    ) -> Result<Seen, Failure> {
        let engine = DockerRuntime::connect(&config.engine, host)
            .await
            .map_err(|error| engine_failed(&error))?;
        let facts = engine
            .facts()
            .await
            .map_err(|error| engine_failed(&error))?;
        let (here, _) = ThisMachine::start(config.nvml.clone());
        let measured = here
            .measure()
            .await
            .map_err(|error| self.hardware_failed(&error))?;
        let disk = here
            .disk(Path::new(&facts.data_root))
            .map_err(|error| self.hardware_failed(&error))?;
        let machine = machine(&measured, disk, &facts, network);
        Ok(Seen {
            facts,
            machine,
            divisibles: here.divisibles().await,
        })
    }

    /// The listing in the journal.
    pub(super) fn listing(&self) -> Result<Option<Listing>, Failure> {
        let recovered =
            journal::peek(self.folder.path()).map_err(|error| self.journal_failed(&error))?;
        Ok(recovered.and_then(|recovered| recovered.listing))
    }

    /// The offers of `listing` on this machine.
    pub(super) fn offers_of(
        &self,
        host: HostId,
        seen: &Seen,
        listing: &Listing,
        config: &Config,
    ) -> Result<Vec<Listed>, Failure> {
        let brokers: Vec<BrokerId> = config.brokers.iter().map(|known| known.broker).collect();
        let listed =
            offers(host, &seen.machine, &seen.divisibles, listing, &brokers).map_err(|error| {
                Failure::new(
                    Exit::Failed,
                    format!("the machine cannot be offered: {error}"),
                )
            })?;
        let measured = load(self.folder.path()).map_err(|error| self.results_failed(&error))?;
        Ok(with_measures(listed, &measured))
    }

    /// The machine is not listed.
    pub(super) fn not_listed(&self) -> Failure {
        Failure::new(Exit::NotFound, "this machine is not listed yet")
            .help(self.command("list --price 0.35"))
    }
}
