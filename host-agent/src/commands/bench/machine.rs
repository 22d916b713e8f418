//! What a benchmark has to know before it begins: the GPUs, the engine's disk, the brokers; and that the machine is
//! idle and stays so.

use crate::admin::wire::{AdminReply, AdminRequest, LeaseRow};
use crate::bench::Watch;
use crate::commands::Place;
use crate::config::Config;
use crate::hardware::Hardware;
use crate::hardware::this::ThisMachine;
use crate::program::PROGRAM;
use crate::runtime::Runtime;
use crate::runtime::docker::DockerRuntime;
use ed25519_dalek::SigningKey;
use protocol::ids::{BrokerId, HostId, PublicKey};
use protocol::machine::Gpu;
use protocol::net::{Identity, Node, NodeConfig};
use protocol::operator::{Exit, Failure, ask, chain};
use rand::Rng;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// How soon a lease that comes has the machine to itself.
const LOOK: Duration = Duration::from_secs(1);
/// Stands for a host that looks at the engine and no container of its own.
const NOBODY: HostId = HostId::from_bytes([0; 32]);

/// The machine's GPUs; none where they cannot be asked for.
pub(super) async fn gpus(config: &Config) -> Vec<Gpu> {
    let (here, _news) = ThisMachine::start(config.nvml.clone());
    let measured = here.measure().await;
    measured.map_or_else(|_| Vec::new(), |found| found.gpus().cloned().collect())
}

/// Where the engine keeps its images.
pub(super) async fn data_root(config: &Config) -> Result<PathBuf, String> {
    let facts = async {
        let engine = DockerRuntime::connect(&config.engine, NOBODY).await?;
        engine.facts().await
    };
    let facts = facts.await.map_err(|error| error.to_string())?;
    Ok(facts.data_root.into())
}

/// A node that is connected to the brokers, and those that answered. It has a key made for the occasion: under the
/// host's own, a broker would take it for the agent.
pub(super) async fn brokers(config: &Config) -> Result<(Node, Vec<BrokerId>), Failure> {
    let mut secret = [0; 32];
    rand::rng().fill_bytes(&mut secret);
    let visitor = Identity::from_signing_key(SigningKey::from_bytes(&secret));
    let (node, _events) = Node::start(&visitor, NodeConfig::renter())
        .await
        .map_err(|error| Failure::new(Exit::Failed, chain(&error)))?;
    let mut reached = Vec::new();
    for known in &config.brokers {
        let key = PublicKey::from(known.broker);
        let connecting = node.connect(key, known.addresses.clone(), CONNECT_DEADLINE);
        if connecting.await.is_ok() {
            reached.push(known.broker);
        }
    }
    Ok((node, reached))
}

/// Refuses while a lease has anything of the machine.
pub(super) fn check_idle(place: &Place) -> Result<(), Failure> {
    match place.ask_if_running(&AdminRequest::Leases)? {
        None => Ok(()),
        Some(AdminReply::Leases(rows)) => match rows.iter().find(|row| is_held(row)) {
            None => Ok(()),
            Some(row) => {
                let what = format!(
                    "lease {} is on this machine: a benchmark would slow it down, and measure what it leaves",
                    row.name
                );
                Err(Failure::new(Exit::Failed, what).help("run it when the machine is idle"))
            }
        },
        Some(
            AdminReply::Status(_)
            | AdminReply::Offers(_)
            | AdminReply::Earnings(_)
            | AdminReply::Done
            | AdminReply::Refused(_),
        ) => Err(place.unexpected()),
    }
}

fn is_held(row: &LeaseRow) -> bool {
    !row.resources.is_empty()
}

/// Asks the agent again and again, and stops the run when a lease has come.
pub(super) fn stop_at_lease(socket: PathBuf, watch: Arc<Watch>) -> AbortOnDropHandle<()> {
    let looking = async move {
        while !watch.is_stopped() {
            let socket = socket.clone();
            let asked = tokio::task::spawn_blocking(move || {
                ask::<AdminReply>(&PROGRAM, &socket, &AdminRequest::Leases)
            });
            // Without an agent no lease comes.
            if let Ok(Ok(AdminReply::Leases(rows))) = asked.await
                && rows.iter().any(is_held)
            {
                watch.stop();
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    AbortOnDropHandle::new(tokio::spawn(looking))
}
