//! Golden bytes of every message and statement: whoever changes one changes what other versions of the
//! programs understand, and sees it here.
//!
//! The files hold `[name]` and then the bytes in hexadecimal. After a change that is meant, the new files lie
//! in the folder that the failure names, to be looked at and copied here.
#![cfg(test)]

mod by_hand;
mod decoder;
mod hosts;
mod messages;
mod money;
mod proofs;
#[path = "../sample/mod.rs"]
mod sample;
mod samples;
mod states;

use protocol::message;
use protocol::signed::Statement;
use protocol::{codec, lease, offer, order, reliability, tunnel, usage, verify};
use samples::signed;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// Values with their variants' names.
pub(crate) type Samples<T> = Vec<(&'static str, T)>;

/// One value of each variant. There is no arm for the rest: a new variant does not compile until it is
/// named, and what stands under a name is of that variant.
#[macro_export]
macro_rules! samples {
    ($type:ident { $($variant:ident => $value:expr),* $(,)? }) => {{
        const fn name(value: &$type) -> &'static str {
            match value { $($type::$variant { .. } => stringify!($variant)),* }
        }
        let samples: Samples<$type> = vec![$((stringify!($variant), $value)),*];
        assert!(samples.iter().all(|(given, value)| name(value) == *given));
        samples
    }};
}

/// A file of golden bytes as it should be.
struct Golden(String);

impl Golden {
    fn new() -> Self {
        Self(String::new())
    }

    fn add(&mut self, name: &str, bytes: &[u8]) {
        writeln!(self.0, "[{name}]").unwrap();
        for line in bytes.chunks(40) {
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(self.0, "{hex}").unwrap();
        }
    }

    /// Messages with their version in front.
    fn messages<T: Serialize>(mut self, samples: &Samples<T>) -> Self {
        for (name, value) in samples {
            self.add(name, &message::encode(value).unwrap());
        }
        self
    }

    /// Values as they stand inside messages.
    fn parts<T: Serialize>(mut self, kind: &str, samples: &Samples<T>) -> Self {
        for (name, value) in samples {
            self.add(&format!("{kind} {name}"), &codec::encode(value).unwrap());
        }
        self
    }

    /// A signed statement: length of the payload, payload, signature.
    fn statement<T: Statement>(mut self, body: T) -> Self {
        self.add(T::TYPE, &codec::encode(&signed(body)).unwrap());
        self
    }

    #[track_caller]
    fn check(self, file: &str) {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(file);
        let wanted = std::fs::read_to_string(&golden).unwrap_or_default();
        if self.0 == wanted {
            return;
        }
        let actual = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
        std::fs::write(&actual, &self.0).unwrap();
        let mut name = String::new();
        for (now, before) in self
            .0
            .lines()
            .zip(wanted.lines().chain(std::iter::repeat("")))
        {
            if now.starts_with('[') {
                name = now.to_owned();
            }
            assert_eq!(
                now,
                before,
                "{name} of {file} changed; all of it: {}",
                actual.display()
            );
        }
        panic!(
            "{file} holds more than there is; what there is: {}",
            actual.display()
        );
    }
}

#[test]
fn requests_to_brokers() {
    Golden::new()
        .messages(&messages::broker_requests())
        .check("broker_request.hex");
}

#[test]
fn answers_of_brokers() {
    Golden::new()
        .messages(&messages::broker_replies())
        .check("broker_reply.hex");
}

#[test]
fn what_brokers_and_hosts_say_to_each_other() {
    Golden::new()
        .messages(&messages::host_requests())
        .messages(&messages::host_replies())
        .check("host.hex");
}

#[test]
fn what_crosses_a_tunnel() {
    Golden::new()
        .parts("Purpose", &messages::purposes())
        .parts("OpeningReply", &messages::opening_replies())
        .parts("TunnelRefusal", &messages::tunnel_refusals())
        .parts("Upward", &messages::upwards())
        .parts("Downward", &messages::downwards())
        .check("tunnel.hex");
}

#[test]
fn signed_statements() {
    Golden::new()
        .statement::<offer::Offer>(sample::gpu_offer())
        .statement::<order::Order>(samples::order())
        .statement::<order::LeaseCommand>(samples::lease_command())
        .statement::<lease::Award>(samples::award())
        .statement::<lease::Grant>(samples::grant())
        .statement::<lease::Refusal>(samples::refusal())
        .statement::<lease::Report>(samples::report())
        .statement::<usage::Receipt>(samples::receipt())
        .statement::<usage::AccountStatement>(samples::account_statement())
        .statement::<tunnel::TunnelRequest>(samples::tunnel_request())
        .statement::<reliability::Outcome>(hosts::outcome())
        .statement::<reliability::Standing>(hosts::standing())
        .check("statements.hex");
}

#[test]
fn proofs_of_hardware() {
    Golden::new()
        .statement::<verify::Verdict>(proofs::verdict())
        .parts("Finding", &proofs::findings())
        .parts("Flaw", &proofs::flaws())
        .parts("VerificationLevel", &proofs::levels())
        .parts("Withdrawal", &proofs::withdrawals())
        .check("proofs.hex");
}

#[test]
fn parts_of_messages() {
    Golden::new()
        .parts("Rejection", &messages::rejections())
        .parts("Phase", &states::phases())
        .parts("PauseCause", &states::pause_causes())
        .parts("EndCause", &states::end_causes())
        .parts("RefusalReason", &states::refusal_reasons())
        .parts("ProblemKind", &states::problem_kinds())
        .parts("Stage", &states::stages())
        .parts("ContainerState", &states::container_states())
        .parts("StopReason", &states::stop_reasons())
        .parts("Want", &states::wants())
        .parts("LeaseAction", &states::lease_actions())
        .parts("Start", &hosts::starts())
        .parts("Fault", &hosts::faults())
        .parts("LeaseScope", &states::lease_scopes())
        .parts("ContractKind", &states::contract_kinds())
        .parts("Deal", &states::deals())
        .parts("Target", &states::targets())
        .parts("Chunks", &states::chunks())
        .parts("ContainerNetwork", &states::container_networks())
        .parts("Comparison", &states::comparisons())
        .parts("Value", &states::values())
        .parts("Test", &states::tests())
        .parts("Direction", &states::directions())
        .parts("Precision", &states::precisions())
        .parts("Field", &states::search_fields())
        .check("parts.hex");
}
