//! One small value of everything about money: receipts, terms, accounts.

use crate::sample::{gpu_offer, host, list, text};
use crate::samples::{ISSUED, LEASE, METERS, OFFER, RENTER, digest, image};
use protocol::terms::{ContractKind, Prices, Rates};
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerGb, PricePerHour, Timestamp};
use protocol::usage::{
    AccountStatement, Amounts, Balance, Earnings, Receipt, StatementLine, Term, Usage,
};

pub(crate) const AMOUNTS: Amounts = Amounts {
    compute: MicroUsd(600_000),
    storage: MicroUsd(10_416),
    upload: MicroUsd(123_456),
    download: MicroUsd(0),
};

/// The prices of the worked example M1.
fn receipt_prices() -> Prices {
    Prices {
        compute: PricePerHour(400_000),
        upload: PricePerGb(10_000),
        ..gpu_offer().prices
    }
}

/// The worked example X after 360 hours: a month at $1 an hour and 20 % off, cancelled half way.
pub(crate) const TERM: Term = Term {
    days: 30,
    prepaid: MicroUsd(576_000_000),
    discount: BasisPoints(2000),
    begins: Some(ISSUED),
    rate: PricePerHour(1_000_000),
    from: Millis(0),
    down: Millis(0),
    earned: MicroUsd(288_000_000),
    refunded: MicroUsd(212_400_000),
    clawed_back: (MicroUsd(72_000_000), MicroUsd(3_600_000)),
    from_bond: MicroUsd(0),
};

pub(crate) fn receipt() -> Receipt {
    Receipt {
        lease: LEASE,
        name: text("brave-otter"),
        renter: RENTER,
        host: host(),
        offer: OFFER,
        kind: ContractKind::OnDemand,
        image: image(),
        gpus: 1,
        disk: Bytes::from_gb(50),
        prices: receipt_prices(),
        rates: Rates::flat(PricePerHour(400_000)),
        term: None,
        ordered_at: ISSUED,
        started_at: Some(Timestamp(ISSUED.0 + 4000)),
        ended: None,
        usage: Usage {
            running: Millis(5_400_000),
            stored: Millis(5_400_000),
            uploaded: Bytes(12_345_678_901),
            downloaded: Bytes(0),
        },
        amounts: AMOUNTS,
        total: MicroUsd(733_872),
        refunded: MicroUsd(0),
        budget: MicroUsd(5_000_000),
        fee_rate: BasisPoints(1000),
        fee: MicroUsd(73_387),
        host_share: MicroUsd(660_485),
        meters: METERS,
        report: Some(digest(0x03)),
        order: digest(0x01),
        grant: None,
    }
}

pub(crate) fn account_statement() -> AccountStatement {
    AccountStatement {
        renter: RENTER,
        lines: list(vec![StatementLine {
            event: 8,
            at: ISSUED,
            lease: Some(LEASE),
            what: text("hold"),
            amount: MicroUsd(-406_944),
            balance: MicroUsd(9_593_056),
        }]),
        next: None,
    }
}

pub(crate) const BALANCE: Balance = Balance {
    available: MicroUsd(1),
    held: MicroUsd(2),
    prepaid: MicroUsd(3),
    spent: MicroUsd(4),
    burn_per_hour: MicroUsd(5),
};

pub(crate) const EARNINGS: Earnings = Earnings {
    pending: MicroUsd(1),
    available: MicroUsd(2),
    paid_out: MicroUsd(3),
    bond: MicroUsd(4),
    fees: MicroUsd(5),
    leases: 6,
    running: Millis(7),
};
