//! The lines of questions and answers, as they are written and read.

use super::*;

#[test]
fn a_deposit_reads_like_one() {
    let request = AdminRequest::Deposit(Deposit {
        id: DepositId::from_bytes([0; 16]),
        renter: RenterId::from_bytes([255; 32]),
        amount: MicroUsd(10_250_000),
        memo: Text::new("wire 7").unwrap(),
        stranger: false,
    });
    let line = serde_json::to_string(&request).unwrap();
    // 32 bytes of ones are 51 z and one bit padded to 10000 = g.
    let expected = format!(
        r#"{{"ask":"deposit","id":"t-{}","renter":"r-{}g","amount_usd":"10.250000","memo":"wire 7","stranger":false}}"#,
        "0".repeat(26),
        "z".repeat(51)
    );
    assert_eq!(line, expected);
    assert_eq!(
        serde_json::from_str::<AdminRequest>(&line).unwrap(),
        request
    );
}

#[test]
fn unknown_questions_and_fields_are_refused() {
    for line in [
        r#"{"ask":"shutdown"}"#,
        r#"{"ask":"leases","all":true,"of":"me"}"#,
        r#"{"ask":"leases"}"#,
    ] {
        assert!(
            serde_json::from_str::<AdminRequest>(line).is_err(),
            "{line}"
        );
    }
}

#[test]
fn times_are_utc_and_money_may_be_owed() {
    let row = HostRow {
        host: HostId::from_bytes([1; 32]),
        connected: false,
        heard_at: Some(Timestamp(1_000_000_000_000)),
        proofs: Vec::new(),
        offers: 0,
        leases: 0,
        pending: MicroUsd(-1),
        addresses: Vec::new(),
        suspended: None,
    };
    let text = serde_json::to_string(&row).unwrap();
    assert!(text.contains(r#""pending_usd":"-0.000001""#), "{text}");
    assert!(
        text.contains(r#""heard_at":"2001-09-09T01:46:40Z""#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<HostRow>(&text).unwrap(), row);
}
