//! What strangers send: random bytes, messages cut short, messages with a few bytes changed. The decoder
//! answers each with a value or an error, and what it accepts is the one encoding of that value.

use crate::sample::{cpu_offer, gpu_offer};
use crate::samples::{self, signed};
use crate::{Samples, messages};
use proptest::prelude::*;
use proptest::sample::Index;
use protocol::codec;
use protocol::message::{self, BrokerReply, BrokerRequest, HostReply, HostRequest};
use protocol::offer::Offer;
use protocol::order::Order;
use protocol::signed::{Signed, Statement};
use protocol::tunnel::{Downward, Opening, OpeningReply, Upward};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// As a message with its version, and as a part without.
fn decode_both<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    if let Ok(value) = message::decode::<T>(bytes) {
        assert_eq!(message::encode(&value).unwrap(), bytes);
    }
    if let Ok(value) = codec::decode::<T>(bytes) {
        assert_eq!(codec::encode(&value).unwrap(), bytes);
    }
}

/// Every type that is decoded from a stranger's bytes.
fn decode_all(bytes: &[u8]) {
    decode_both::<BrokerRequest>(bytes);
    decode_both::<BrokerReply>(bytes);
    decode_both::<HostRequest>(bytes);
    decode_both::<HostReply>(bytes);
    decode_both::<Opening>(bytes);
    decode_both::<OpeningReply>(bytes);
    decode_both::<Upward>(bytes);
    decode_both::<Downward>(bytes);
}

/// What a stranger's statement goes through; it must not verify.
fn verify<T: Statement>(bytes: &[u8]) {
    if let Ok(statement) = codec::decode::<Signed<T>>(bytes) {
        assert!(statement.verify().is_err(), "a changed statement verifies");
    }
}

fn encoded<T: Serialize>(samples: Samples<T>) -> impl Iterator<Item = Vec<u8>> {
    samples
        .into_iter()
        .map(|(_, value)| message::encode(&value).unwrap())
}

fn honest() -> Vec<Vec<u8>> {
    encoded(messages::broker_requests())
        .chain(encoded(messages::broker_replies()))
        .chain(encoded(messages::host_requests()))
        .chain(encoded(messages::host_replies()))
        .chain(encoded(messages::opening_replies()))
        .chain(encoded(messages::upwards()))
        .chain(encoded(messages::downwards()))
        .collect()
}

fn every_message_reads_as_itself<T>(samples: Samples<T>)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    for (name, value) in samples {
        let bytes = message::encode(&value).unwrap();
        assert_eq!(message::decode::<T>(&bytes).as_ref(), Ok(&value), "{name}");
        // Every shorter and every longer form is refused.
        for length in 0..bytes.len() {
            assert!(
                message::decode::<T>(&bytes[..length]).is_err(),
                "{name} cut to {length}"
            );
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(
            message::decode::<T>(&longer).is_err(),
            "{name} with one more"
        );
    }
}

#[test]
fn honest_messages_read_as_themselves_and_cut_ones_do_not() {
    every_message_reads_as_itself(messages::broker_requests());
    every_message_reads_as_itself(messages::broker_replies());
    every_message_reads_as_itself(messages::host_requests());
    every_message_reads_as_itself(messages::host_replies());
    every_message_reads_as_itself(messages::opening_replies());
    every_message_reads_as_itself(messages::upwards());
    every_message_reads_as_itself(messages::downwards());
}

#[test]
fn lengths_that_promise_more_than_there_is_cost_nothing() {
    // In every message, every eight bytes in turn become a length near 2^64.
    for bytes in honest() {
        for at in 0..bytes.len().saturating_sub(8) {
            let mut bomb = bytes.clone();
            bomb[at..at + 8].copy_from_slice(&[0xff; 8]);
            decode_all(&bomb);
        }
    }
}

/// What is done to an honest message.
#[derive(Debug, Clone)]
enum Harm {
    Set(Index, u8),
    Remove(Index),
    Insert(Index, u8),
    Cut(Index),
    Double(Index, Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), any::<u8>()).prop_map(|(at, byte)| Harm::Set(at, byte)),
        1 => index().prop_map(Harm::Remove),
        1 => (index(), any::<u8>()).prop_map(|(at, byte)| Harm::Insert(at, byte)),
        1 => index().prop_map(Harm::Cut),
        1 => (index(), index()).prop_map(|(from, to)| Harm::Double(from, to)),
    ]
}

fn harmed(mut bytes: Vec<u8>, harms: &[Harm]) -> Vec<u8> {
    for harm in harms {
        let length = bytes.len().max(1);
        match harm {
            Harm::Set(at, byte) => {
                if let Some(place) = bytes.get_mut(at.index(length)) {
                    *place = *byte;
                }
            }
            Harm::Remove(at) if !bytes.is_empty() => {
                bytes.remove(at.index(length));
            }
            Harm::Insert(at, byte) => bytes.insert(at.index(bytes.len() + 1), *byte),
            Harm::Cut(at) => bytes.truncate(at.index(length)),
            Harm::Double(from, to) => {
                let (from, to) = (from.index(length), to.index(length));
                let part = bytes
                    .get(from.min(to)..from.max(to))
                    .unwrap_or_default()
                    .to_vec();
                bytes.extend(part);
            }
            Harm::Remove(_) => {}
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        decode_all(&bytes);
    }

    #[test]
    fn random_bytes_behind_a_true_beginning_never_panic(
        variant in 0_u8..18,
        bytes in prop::collection::vec(any::<u8>(), 0..256),
    ) {
        decode_all(&[&[2, 0, variant, 0, 0, 0], bytes.as_slice()].concat());
        decode_all(&[&[variant, 0, 0, 0], bytes.as_slice()].concat());
    }

    #[test]
    fn harmed_messages_never_panic_and_have_one_encoding(
        which in any::<Index>(),
        harms in prop::collection::vec(harm(), 1..6),
    ) {
        let honest = honest();
        let bytes = harmed(honest[which.index(honest.len())].clone(), &harms);
        decode_all(&bytes);
        decode_all(bytes.get(2..).unwrap_or_default());
    }

    #[test]
    fn harmed_statements_never_verify(harms in prop::collection::vec(harm(), 1..6)) {
        let order = codec::encode(&signed(samples::order())).unwrap();
        let offer = codec::encode(&signed(gpu_offer())).unwrap();
        let (bad_order, bad_offer) = (harmed(order.clone(), &harms), harmed(offer.clone(), &harms));
        if bad_order != order {
            verify::<Order>(&bad_order);
        }
        if bad_offer != offer {
            verify::<Offer>(&bad_offer);
        }
        // An honest statement of one type is none of another.
        verify::<Order>(&offer);
        prop_assert!(signed(cpu_offer()).verify().is_ok());
    }
}
