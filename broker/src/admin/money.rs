//! What a running broker answers its operator about hosts' money. Must not decide anything: the market does.

use super::desk::AdminDesk;
use super::wire::{
    AdminReply, AdminRequest, HostMoney, PaymentRow, PayoutNote, Refund, ReverseDeposit,
};
use crate::core::command::{Answer, Command};
use crate::core::payment::{MoneyOrder, Payment, PaymentKind, Payout, Reversal};
use protocol::ids::PaymentId;
use protocol::message::Rejection;

impl AdminDesk {
    /// Does what is asked with a host's money.
    pub(super) async fn money(&self, request: AdminRequest) -> Result<AdminReply, Rejection> {
        let Some(order) = order(request) else {
            return Ok(AdminReply::Noted);
        };
        let answer = self.api.market.command(Command::Money(order)).await?;
        Ok(match answer {
            Answer::Payment {
                id,
                payment,
                before,
            } => {
                let row = row(id, &payment, before);
                if !before {
                    let (kind, status) = (&row.kind, &row.status);
                    tracing::info!(%id, kind, status, amount = %row.amount, "payment is on the books");
                }
                AdminReply::Payment(Box::new(row))
            }
            Answer::Payouts(open) => {
                let rows = open.iter().map(|(id, payment)| row(*id, payment, false));
                AdminReply::Payouts(rows.collect())
            }
            Answer::Lease(_)
            | Answer::Deposited(_)
            | Answer::DepositedBefore(_)
            | Answer::Noted => AdminReply::Noted,
        })
    }
}

fn order(request: AdminRequest) -> Option<MoneyOrder> {
    Some(match request {
        AdminRequest::Bond(HostMoney {
            id,
            host,
            amount,
            note,
            stranger: _,
        }) => MoneyOrder::Bond {
            id,
            host,
            amount,
            note,
        },
        AdminRequest::ReturnBond(HostMoney {
            id,
            host,
            amount,
            note,
            stranger: _,
        }) => MoneyOrder::ReturnBond {
            id,
            host,
            amount,
            note,
        },
        AdminRequest::Refund(Refund {
            id,
            lease,
            amount,
            note,
        }) => MoneyOrder::Refund {
            id,
            lease,
            amount,
            note,
        },
        AdminRequest::Payouts { minimum } => MoneyOrder::MakePayouts { minimum },
        AdminRequest::PayoutPaid(PayoutNote { id, note }) => MoneyOrder::Paid { id, note },
        AdminRequest::PayoutDropped(PayoutNote { id, note }) => MoneyOrder::DropPayout { id, note },
        AdminRequest::Suspend { host, why, .. } => MoneyOrder::Suspend { host, why },
        AdminRequest::ReverseDeposit(ReverseDeposit {
            id,
            deposit,
            amount,
            note,
        }) => MoneyOrder::Reverse(Reversal {
            id,
            deposit,
            amount,
            note,
        }),
        AdminRequest::Status
        | AdminRequest::Deposit(_)
        | AdminRequest::Accounts
        | AdminRequest::Hosts
        | AdminRequest::Leases { .. }
        | AdminRequest::Verify { .. }
        | AdminRequest::LedgerCheck => return None,
    })
}

fn row(id: PaymentId, payment: &Payment, before: bool) -> PaymentRow {
    let (kind, about, status) = match payment.what {
        PaymentKind::Bond(host) => ("bond", host.to_string(), "done"),
        PaymentKind::BondReturned(host) => ("bond-returned", host.to_string(), "done"),
        PaymentKind::Refund(lease) => ("refund", lease.to_string(), "done"),
        PaymentKind::DepositReversed(deposit) => ("deposit-reversed", deposit.to_string(), "done"),
        PaymentKind::Payout(host, stands) => {
            let status = match stands {
                Payout::Open => "open",
                Payout::Paid(_) => "paid",
                Payout::Dropped(_) => "dropped",
            };
            ("payout", host.to_string(), status)
        }
    };
    PaymentRow {
        payment: id.to_string(),
        kind: kind.to_owned(),
        about,
        amount: payment.amount,
        at: payment.at,
        status: status.to_owned(),
        note: payment.note.to_string(),
        before,
    }
}
