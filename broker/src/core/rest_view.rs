//! What the market shows of orders that wait: the lease that each would be, without a place.
//!
//! Must not check who asks, and must not change anything.

use crate::core::desk::Desk;
use crate::core::rest::{Resting, rest_phase};
use protocol::bounded::List;
use protocol::lease::{Access, LeaseView};
use protocol::terms::{Prices, Rates};
use protocol::units::{Millis, Timestamp};
use protocol::usage::Amounts;

impl Desk {
    /// An order that waits, or waited and became no lease, as the lease that it would be.
    pub(super) fn rest_view(&self, now: Timestamp, rest: &Resting) -> LeaseView {
        let order = rest.order.body();
        let phase = rest_phase(rest);
        let waits = phase.is_open();
        LeaseView {
            id: rest.lease,
            order: order.id,
            name: order.name.clone(),
            renter: rest.renter(),
            place: None,
            kind: rest.kind(),
            bid: Some(rest.bid),
            to_win: waits.then(|| self.rest_to_win(now, rest)).flatten(),
            rests_until: waits.then_some(rest.until),
            gpu_count: order.gpus,
            phase,
            since: rest.ended.as_ref().map_or(rest.at, |(at, _)| *at),
            progress: None,
            revision: self.revision(rest.lease),
            image: order.job.image.clone(),
            gpus: List::default(),
            partition: None,
            cpu_millicores: order.cpu_millicores.unwrap_or(0),
            ram: order.ram.unwrap_or_default(),
            disk: order.disk,
            prices: Prices::default(),
            rates: Rates::default(),
            term: None,
            fee: self.settings.fee,
            ordered_at: rest.at,
            started_at: None,
            running: Millis(0),
            charged: Amounts::default(),
            held: self.market.held(rest.lease),
            budget: order.budget,
            duration_max: order.duration_max,
            until: None,
            disk_until: None,
            low_balance: false,
            grant: None,
            access: Access::default(),
            container: None,
        }
    }
}
