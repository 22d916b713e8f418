//! The agent's page for Prometheus: made anew from its status at each look, so that the two never differ.
//!
//! GPUs are under the names of NVIDIA's exporter ([`dcgm`]), so that dashboards made for it show every card; what that
//! does not know has names of its own. What a driver does not say is not on the page.

pub mod dcgm;
pub mod serve;

use crate::admin::wire::{GpuRow, Status};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::atomic::AtomicU64;

/// Names and values that tell one line of a metric from another.
type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// The page of a host of that name.
///
/// # Errors
/// Never, in practice: a text is written to memory.
pub fn page(status: &Status, hostname: &str) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    own(&mut registry, status);
    dcgm::register(&mut registry, &status.gpu_rows, hostname);
    let mut page = String::new();
    encode(&mut page, &registry)?;
    Ok(page)
}

fn own(registry: &mut Registry, status: &Status) {
    let build = Info::new([("version", status.version.clone())]);
    registry.register("host_build", "The program that runs", build);
    let up = u64::from(status.engine.is_ok());
    one(
        registry,
        "host_engine_up",
        "Whether the container engine answers",
        up,
    );
    one(registry, "host_offers", "Offers", status.offers);
    let help = "Offers of which something can be leased now";
    one(registry, "host_offers_free", help, status.offers_free);
    let help = "Disk that a new lease may have";
    one(
        registry,
        "host_disk_free_bytes",
        help,
        status.disk_free_bytes,
    );
    one(
        registry,
        "host_tunnels",
        "Tunnels that are open",
        status.tunnels,
    );
    let connected = status.brokers.iter();
    let connected = connected.filter(|broker| broker.connection.starts_with("connected"));
    let brokers = (count(connected.count()), count(status.brokers.len()));
    one(registry, "host_brokers", "Brokers that are set", brokers.1);
    one(
        registry,
        "host_brokers_connected",
        "Brokers that are connected",
        brokers.0,
    );
    let leases = Gauges::default();
    for (state, count) in &status.leases {
        set(&leases, vec![("state", state.clone())], *count);
    }
    registry.register("host_leases", "Leases, by state", leases);
    let refusals = Gauges::default();
    for (reason, count) in &status.refusals {
        set(&refusals, vec![("reason", reason.clone())], *count);
    }
    let help = "What was refused since the start, by reason";
    registry.register("host_refusals", help, refusals);
    of_gpus(registry, &status.gpu_rows);
    let fit = Gauges::default();
    for row in &status.health {
        let labels = vec![("resource", row.resource.clone())];
        set(&fit, labels, u64::from(row.state == "fit"));
    }
    registry.register("host_gpu_fit", "Whether it may be leased", fit);
}

/// What only a market knows of a GPU.
fn of_gpus(registry: &mut Registry, gpus: &[GpuRow]) {
    let (idle, earned, leased) = (Gauges::default(), Gauges::default(), Gauges::default());
    for gpu in gpus {
        let whole = [(
            gpu.uuid.as_str(),
            gpu.idle_permille,
            &gpu.earned_usd,
            &gpu.lease,
        )];
        let slices = gpu.slices.iter();
        let slices = slices.map(|it| {
            (
                it.resource.as_str(),
                it.idle_permille,
                &it.earned_usd,
                &it.lease,
            )
        });
        for (resource, idle_permille, money, lease) in whole.into_iter().chain(slices) {
            let labels = || vec![("resource", resource.to_owned())];
            if let Some(permille) = idle_permille {
                idle.get_or_create(&labels())
                    .set(f64::from(permille) / 1000.0);
            }
            if let Ok(money) = money.parse() {
                earned.get_or_create(&labels()).set(money);
            }
            set(&leased, labels(), u64::from(lease.is_some()));
        }
    }
    let help = "Share of the time since the agent started in which it was not leased";
    registry.register("host_gpu_idle_ratio", help, idle);
    let help = "What leases on record earned with it by running, before fees";
    registry.register("host_gpu_earned_usd", help, earned);
    registry.register("host_gpu_leased", "Whether it is leased", leased);
}

fn one(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge = Gauge::<f64, AtomicU64>::default();
    gauge.set(float(value));
    registry.register(name, help, gauge);
}

fn set(gauges: &Gauges, labels: Labels, value: u64) {
    gauges.get_or_create(&labels).set(float(value));
}

/// Exact up to 2⁵³, which no gauge here reaches.
fn float(value: u64) -> f64 {
    let high = u32::try_from(value >> 32).unwrap_or(u32::MAX);
    let low = u32::try_from(value & 0xffff_ffff).unwrap_or(u32::MAX);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
