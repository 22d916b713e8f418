//! A preview as programs read it.

use super::Preview;
use crate::commands::search::verification_json;
use crate::view::{kind_word, rfc3339, slice_json};
use protocol::bounded::{List, Text};
use protocol::order::Target;
use protocol::terms::Deal;
use protocol::units::{MicroUsd, PricePerHour, Timestamp};
use serde_json::{Value, json};

impl Preview<'_> {
    pub(super) fn json(&self) -> Value {
        let order = self.order;
        let mut json = json!({
            "schema": "feira.order/1",
            "offer": self.fixed().map(|offer| offer.id.to_string()),
            "host": self.fixed().and(self.known).map(|known| known.host().to_string()),
            "broker": self.broker.id.to_string(),
            "kind": kind_word(order.deal.kind()),
            "gpu_count": order.gpus,
            "partition": slice_json(self.fixed().and_then(|offer| offer.partition.as_ref())),
            "verification": self.known.map(|known| verification_json(&known.verification)),
            "cpu_millicores": order.cpu_millicores,
            "ram_bytes": order.ram.map(|ram| ram.0),
            "name": order.name.as_str(),
            "image": order.job.image.to_string(),
            "image_bytes": self.image.size.map(|size| size.0),
            "entrypoint": words(&order.job.entrypoint),
            "command": words(&order.job.command),
            "environment": order.job.environment.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
            "disk_bytes": order.disk.0,
            "price_usd_per_hour": self.hourly().decimal(),
            "price_usd_per_gpu_hour": dollars(self.each()),
            "price_max_usd_per_hour": order.price_max.amount().decimal(),
            "budget_usd": order.budget.decimal(),
            "hold_usd": self.hold().decimal(),
            "available_usd": self.balance.map(|balance| balance.available.decimal()),
            "max_seconds": order.duration_max.map(|most| most.0),
            "start_within_seconds": self.offer().map(|offer| offer.limits.start_within.0),
            "promised_until": self.offer().and_then(|offer| offer.limits.until).map(rfc3339),
            "fee_basis_points": self.broker.info.fee.0,
        });
        if let Some(fields) = json.as_object_mut() {
            let (terms, filter) = match &order.target {
                Target::Offer { terms, .. } => (json!(terms.to_string()), Value::Null),
                Target::Any(filter) => (Value::Null, json!(filter.to_string())),
            };
            fields.insert("terms".to_owned(), terms);
            fields.insert("filter".to_owned(), filter);
            fields.extend(self.deal_fields());
        }
        json
    }

    /// What is agreed beside the price: null where the kind has no such thing.
    fn deal_fields(&self) -> serde_json::Map<String, Value> {
        let (waits_until, fallback): (Option<Timestamp>, Option<PricePerHour>) =
            match self.order.deal {
                Deal::OnDemand | Deal::Reserved { .. } => (None, None),
                Deal::Bid { until, .. } => (Some(until), None),
                Deal::Interruptible {
                    until, fallback, ..
                } => (Some(until), fallback),
            };
        let bid = match self.order.deal {
            Deal::OnDemand | Deal::Reserved { .. } => None,
            Deal::Bid { limit: bid, .. } | Deal::Interruptible { bid, .. } => Some(bid),
        };
        let is_interruptible = matches!(self.order.deal, Deal::Interruptible { .. });
        let limits = self.offer().map(|offer| offer.limits);
        let notice = limits.filter(|_| is_interruptible).map(|l| l.notice.0);
        let quote = self.quote();
        let refunds = self.refunds().map(|three| three.map(MicroUsd::decimal));
        let refund = |at: usize| refunds.as_ref().and_then(|three| three.get(at)).cloned();
        let sales = self.offer().map(|offer| offer.sales);
        let fields = json!({
            "bid_usd_per_gpu_hour": bid.map(dollars),
            "fallback_usd_per_gpu_hour": fallback.map(dollars),
            "waits_until": waits_until.map(rfc3339),
            "to_win_usd_per_gpu_hour": self.needed().map(dollars),
            "floor_usd_per_gpu_hour": sales.and_then(|sales| sales.floor).map(dollars),
            "notice_seconds": notice,
            "days": quote.map(|(days, _)| days),
            "prepaid_usd": quote.map(|(_, quote)| quote.prepaid.decimal()),
            "discount_basis_points": quote.map(|(_, quote)| quote.discount.0),
            "refund_now_usd": refund(0),
            "refund_half_usd": refund(1),
            "refund_end_usd": refund(2),
        });
        fields.as_object().cloned().unwrap_or_default()
    }
}

fn dollars(price: PricePerHour) -> String {
    price.amount().decimal()
}

fn words(list: &Option<List<Text<4096>, 64>>) -> Option<Vec<String>> {
    list.as_ref()
        .map(|list| list.iter().map(ToString::to_string).collect())
}
