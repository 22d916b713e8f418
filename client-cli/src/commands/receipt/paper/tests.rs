//! Honest receipts are read; every way of changing one is noticed.

use super::*;
use crate::fixtures::{lease, prices};
use crate::orders::hexadecimal;
use ed25519_dalek::SigningKey;
use protocol::bounded::Text;
use protocol::ids::{Digest, MessageId};
use protocol::job::PinnedImage;
use protocol::lease::{EndCause, Meters, Phase};
use protocol::signed::{ANYONE, Envelope};
use protocol::terms::{ContractKind, Rates};
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerHour, Seconds, Timestamp};
use protocol::usage::{Amounts, Term, Usage};

/// M1 of the market's rules without its traffic: 5400 s at $0.40/h, 50 GB at $0.10; fee 10 %.
fn receipt() -> Receipt {
    let view = lease(1, "brave-otter", Phase::Running).view;
    let (host, offer) = view.place.unwrap();
    Receipt {
        lease: view.id,
        name: view.name,
        renter: view.renter,
        host,
        offer,
        kind: view.kind,
        image: PinnedImage {
            name: Text::new("docker.io/library/debian").unwrap(),
            sha256: [4; 32],
        },
        gpus: view.gpu_count,
        disk: Bytes::from_gb(50),
        prices: prices(),
        rates: view.rates,
        term: None,
        ordered_at: Timestamp(1_796_000_000_000),
        started_at: Some(Timestamp(1_796_000_010_000)),
        ended: Some((Timestamp(1_796_005_410_000), EndCause::Renter)),
        usage: Usage {
            running: Millis(5_400_000),
            stored: Millis(5_400_000),
            ..Usage::default()
        },
        amounts: Amounts {
            compute: MicroUsd(600_000),
            storage: MicroUsd(10_416),
            ..Amounts::default()
        },
        total: MicroUsd(610_416),
        refunded: MicroUsd::ZERO,
        budget: MicroUsd(5_000_000),
        fee_rate: BasisPoints(1000),
        fee: MicroUsd(61_041),
        host_share: MicroUsd(549_375),
        meters: Meters {
            running: Millis(5_400_100),
            ..Meters::default()
        },
        report: Some(Digest::of(b"report")),
        order: Digest::of(b"order"),
        grant: Some(Digest::of(b"grant")),
    }
}

fn sign(receipt: Receipt) -> Signed<Receipt> {
    let envelope = Envelope {
        audience: ANYONE,
        message_id: MessageId::from_bytes([9; 16]),
        issued: Timestamp(1_796_005_411_000),
        validity: Seconds(60),
    };
    let key = SigningKey::from_bytes(&[7; 32]);
    Signed::sign(receipt, &key, envelope)
        .unwrap()
        .signed()
        .clone()
}

fn file() -> Value {
    Paper::of(&sign(receipt())).unwrap().json()
}

fn refusal(file: &Value) -> (Code, String) {
    let failure = Paper::read(&file.to_string()).unwrap_err();
    (failure.code(), failure.what().to_owned())
}

#[test]
fn an_honest_receipt_is_read_from_its_file() {
    let paper = Paper::read(&format!("{:#}", file())).unwrap();
    assert_eq!(paper.receipt(), &receipt());
    let key = SigningKey::from_bytes(&[7; 32]).verifying_key().to_bytes();
    assert_eq!(paper.signer(), PublicKey::from_bytes(key));
    let json = paper.json();
    assert_eq!(json["total_usd"], "0.610416");
    assert_eq!(json["final"], true);
    let lines = paper.lines();
    let total = lines.iter().find(|(label, _)| label == "Total").unwrap();
    assert_eq!(total.1, "$0.610416 of at most $5.000000");
}

#[test]
fn every_line_can_be_done_again_by_hand() {
    let mut short = receipt();
    // 4.694 s × 400 000 / 3600 s = 521.5; 50 GB × 100 000 × 4.694 / 2 592 000 = 9.05; both rounded down.
    short.usage.running = Millis(4_694);
    short.usage.stored = Millis(4_694);
    short.meters.running = Millis(4_694);
    short.amounts.compute = MicroUsd(521);
    short.amounts.storage = MicroUsd(9);
    // A tenth of 530 and the rest.
    (short.total, short.fee, short.host_share) = (MicroUsd(530), MicroUsd(53), MicroUsd(477));
    let shown = |receipt: Receipt, label: &str| {
        let lines = Paper::of(&sign(receipt)).unwrap().lines();
        lines.into_iter().find(|(l, _)| l == label).unwrap().1
    };
    let compute = "4.694 s × $0.40/h = $0.000521";
    assert_eq!(shown(short.clone(), "Compute"), compute);
    let disk = "4.694 s × 50 GB × $0.10/GB-month = $0.000009";
    assert_eq!(shown(short.clone(), "Disk"), disk);
    let total = "$0.000530 of at most $5.000000";
    assert_eq!(shown(short.clone(), "Total"), total);
    assert!(shown(short, "Of it").starts_with("$0.000053 to the broker (10.00 %), $0.000477 to"));
    let long = "5400.000 s (1h 30m) × $0.40/h = $0.600000";
    assert_eq!(shown(receipt(), "Compute"), long);
}

#[test]
fn every_readable_field_is_held_to_what_was_signed() {
    let honest = file();
    for name in honest
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| *name != "schema")
    {
        let mut changed = honest.clone();
        changed[name] = Value::String("00".into());
        assert!(
            Paper::read(&changed.to_string()).is_err(),
            "{name} was changed unnoticed"
        );
        changed.as_object_mut().unwrap().remove(name);
        assert!(
            Paper::read(&changed.to_string()).is_err(),
            "{name} was removed unnoticed"
        );
    }
    let mut added = honest;
    added["discount_usd"] = "1.000000".into();
    assert_eq!(refusal(&added).0, Code::ReceiptWrong);
}

#[test]
fn a_changed_total_names_itself() {
    let mut changed = file();
    changed["total_usd"] = "0.010416".into();
    let (code, what) = refusal(&changed);
    assert_eq!(code, Code::ReceiptWrong);
    assert!(
        what.contains("'total_usd' says \"0.010416\", but \"0.610416\" was signed"),
        "{what}"
    );
}

#[test]
fn every_flipped_bit_of_the_signed_part_is_noticed() {
    let honest = file();
    let bytes = from_hexadecimal(honest["signed"].as_str().unwrap()).unwrap();
    for index in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[index] ^= 1;
        let mut changed = honest.clone();
        changed["signed"] = Value::String(hexadecimal(&flipped));
        assert_eq!(refusal(&changed).0, Code::ReceiptWrong, "byte {index}");
    }
}

#[test]
fn a_signed_lie_is_still_a_lie() {
    // One micro-dollar more than 5400 s cost, signed by the broker all the same.
    let mut lie = receipt();
    lie.amounts.compute = MicroUsd(600_001);
    lie.total = MicroUsd(610_417);
    let failure = Paper::of(&sign(lie)).unwrap_err();
    assert_eq!(failure.code(), Code::ReceiptWrong);
    assert!(failure.what().contains("compute"), "{}", failure.what());
    let mut longer = receipt();
    longer.meters.running = Millis(5_399_999);
    assert!(Paper::of(&sign(longer)).is_err());
}

#[test]
fn other_files_are_no_receipts() {
    for text in [
        "",
        "{}",
        "[1]",
        "{\"schema\":\"feira.receipt/1\"}",
        "{\"schema\":\"other/1\"}",
    ] {
        assert_eq!(
            Paper::read(text).unwrap_err().code(),
            Code::NotAReceipt,
            "{text}"
        );
    }
}

/// 1200 s at $0.15, 120 s waived, 600 s at $0.16: (150 000 × 1200 + 160 000 × 600) / 3600 = 76 666.6…, rounded
/// down once; 50 GB × 100 000 × 1920 / 2 592 000 = 3 703.7.
fn stepped() -> Receipt {
    let rates = Rates::flat(PricePerHour(150_000));
    let rates = rates
        .changed(Millis(1_200_000), PricePerHour(0))
        .and_then(|rates| rates.changed(Millis(1_320_000), PricePerHour(160_000)))
        .unwrap();
    let running = Millis(1_920_000);
    let amounts = Amounts {
        compute: MicroUsd(76_666),
        storage: MicroUsd(3_703),
        ..Amounts::default()
    };
    Receipt {
        kind: ContractKind::Interruptible,
        gpus: 1,
        rates,
        usage: Usage {
            running,
            stored: running,
            ..Usage::default()
        },
        amounts,
        total: MicroUsd(80_369),
        fee: MicroUsd(8_036),
        host_share: MicroUsd(72_333),
        ..receipt()
    }
}

fn labelled(receipt: Receipt) -> Vec<(String, String)> {
    Paper::of(&sign(receipt)).unwrap().lines()
}

#[test]
fn rates_that_changed_are_shown_step_by_step_and_added_once() {
    let lines = labelled(stepped());
    let at = lines.iter().position(|(label, _)| label == "Compute");
    let values: Vec<&str> = lines[at.unwrap()..][..3]
        .iter()
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(
        values,
        [
            "1200.000 s (20m 00s) × $0.15/h",
            "+ 120.000 s (2m 00s) waived",
            "+ 600.000 s (10m 00s) × $0.16/h = $0.076666",
        ]
    );
    let json = Paper::of(&sign(stepped())).unwrap().json();
    assert_eq!(json["kind"], "interruptible");
    assert_eq!(json["rates"][1]["compute_usd_per_hour"], "0.000000");
    assert_eq!(json["rates"][2]["from_running_ms"], 1_320_000);
    // The waived stretch billed at the rate before it: 120 × 150 000 / 3600 = 5 000 more.
    let mut lie = stepped();
    lie.amounts.compute = MicroUsd(81_666);
    lie.total = MicroUsd(85_369);
    assert!(Paper::of(&sign(lie)).is_err());
}

/// Market rules, X: 30 days at $1, ended at half: 288 earned, 72 and 3.60 kept, 212.40 back.
fn cancelled_term() -> Receipt {
    let half = Millis(360 * 3_600_000);
    let term = Term {
        days: 30,
        prepaid: MicroUsd(576_000_000),
        discount: BasisPoints(2000),
        rate: PricePerHour(1_000_000),
        begins: Some(Timestamp(1_796_000_010_000)),
        from: Millis(0),
        down: Millis(0),
        earned: MicroUsd(288_000_000),
        refunded: MicroUsd(212_400_000),
        clawed_back: (MicroUsd(72_000_000), MicroUsd(3_600_000)),
        from_bond: MicroUsd::ZERO,
    };
    // 50 GB × 100 000 × 1 296 000 s / 2 592 000 = 2 500 000; the fee of a tenth is of that and of 360.
    Receipt {
        kind: ContractKind::Reserved,
        rates: Rates::flat(PricePerHour(0)),
        term: Some(term),
        usage: Usage {
            running: half,
            stored: half,
            ..Usage::default()
        },
        meters: Meters {
            running: half,
            ..Meters::default()
        },
        amounts: Amounts {
            storage: MicroUsd(2_500_000),
            ..Amounts::default()
        },
        total: MicroUsd(366_100_000),
        fee: MicroUsd(36_250_000),
        host_share: MicroUsd(326_250_000),
        ..receipt()
    }
}

#[test]
fn a_term_that_was_cancelled_says_what_became_of_what_was_prepaid() {
    let lines = labelled(cancelled_term());
    let value = |label: &str| lines.iter().find(|(l, _)| l == label).unwrap().1.clone();
    assert_eq!(
        value("Prepaid"),
        "$576.000000 for 30 days, 20.00 % less than on demand"
    );
    assert_eq!(value("Earned"), "$288.000000 of it");
    assert_eq!(
        value("Refunded"),
        "$212.400000 came back; $72.000000 to the host and $3.600000 to the broker as the price of ending early"
    );
    assert_eq!(
        value("Compute"),
        "1296000.000 s (15d 00h), prepaid = $0.000000"
    );
    assert_eq!(value("Total"), "$366.100000 of at most $581.000000");
    let json = Paper::of(&sign(cancelled_term())).unwrap().json();
    assert_eq!(json["term"]["refunded_usd"], "212.400000");
    assert_eq!(json["term"]["clawed_back_broker_usd"], "3.600000");
    // One micro-dollar of what was prepaid is nowhere.
    let mut lie = cancelled_term();
    if let Some(term) = &mut lie.term {
        term.refunded = MicroUsd(212_399_999);
    }
    let failure = Paper::of(&sign(lie)).unwrap_err();
    assert!(failure.what().contains("prepaid"), "{}", failure.what());
}
