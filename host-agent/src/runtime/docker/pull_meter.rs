//! How far a pull is, from what the engine says of each layer. Pure.

use std::collections::BTreeMap;

use bollard::models::CreateImageInfo;
use protocol::units::Bytes;

use super::super::PullProgress;

/// More layers than this are not counted; the engine takes no image with as many.
const LAYERS_MAX: usize = 512;

/// Sums up the layers of one pull.
#[derive(Debug, Default)]
pub(super) struct PullMeter {
    layers: BTreeMap<String, Layer>,
    shown: PullProgress,
}

#[derive(Debug, Default)]
struct Layer {
    size: u64,
    fetched: u64,
    unpacked: u64,
}

impl PullMeter {
    /// Notes one message of the engine.
    pub(super) fn note(&mut self, message: &CreateImageInfo) {
        let (Some(id), Some(status)) = (&message.id, &message.status) else {
            return;
        };
        let detail = message.progress_detail.as_ref();
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let current = detail
            .and_then(|detail| number(detail.current))
            .unwrap_or(0);
        let total = detail.and_then(|detail| number(detail.total));
        if !self.layers.contains_key(id) && (self.layers.len() >= LAYERS_MAX || total.is_none()) {
            return;
        }
        let layer = self.layers.entry(id.clone()).or_default();
        layer.size = layer.size.max(total.unwrap_or(0)).max(current);
        match status.as_str() {
            "Downloading" => layer.fetched = layer.fetched.max(current),
            "Verifying Checksum" | "Download complete" => layer.fetched = layer.size,
            "Extracting" => {
                layer.fetched = layer.size;
                layer.unpacked = layer.unpacked.max(current);
            }
            "Pull complete" => {
                layer.fetched = layer.size;
                layer.unpacked = layer.size;
            }
            _ => {}
        }
    }

    /// How far it is.
    pub(super) fn progress(&mut self) -> PullProgress {
        let half = |layer: &Layer| (layer.fetched.saturating_add(layer.unpacked)) / 2;
        let done = self.layers.values().map(half).fold(0, u64::saturating_add);
        let total = self
            .layers
            .values()
            .map(|layer| layer.size)
            .fold(0, u64::saturating_add);
        let total = Bytes(total.max(self.shown.total.0));
        let done = Bytes(done.max(self.shown.done.0).min(total.0));
        self.shown = PullProgress { done, total };
        self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::ProgressDetail;

    fn message(id: &str, status: &str, progress: Option<(i64, i64)>) -> CreateImageInfo {
        CreateImageInfo {
            id: Some(id.to_owned()),
            status: Some(status.to_owned()),
            progress_detail: progress.map(|(current, total)| ProgressDetail {
                current: Some(current),
                total: Some(total),
            }),
            ..CreateImageInfo::default()
        }
    }

    fn after(messages: &[CreateImageInfo]) -> Vec<(u64, u64)> {
        let mut meter = PullMeter::default();
        let read = |message: &CreateImageInfo| {
            meter.note(message);
            let PullProgress { done, total } = meter.progress();
            (done.0, total.0)
        };
        messages.iter().map(read).collect()
    }

    #[test]
    fn a_layer_counts_half_when_fetched_and_whole_when_unpacked() {
        let messages = [
            message("a", "Pulling fs layer", None),
            message("a", "Downloading", Some((40, 100))),
            message("b", "Downloading", Some((10, 50))),
            message("a", "Download complete", None),
            message("a", "Extracting", Some((60, 100))),
            message("a", "Pull complete", None),
            message("b", "Pull complete", None),
        ];
        let expected = [
            (0, 0),
            (20, 100),
            (25, 150),
            (55, 150),
            (85, 150),
            (105, 150),
            (150, 150),
        ];
        assert_eq!(after(&messages), expected);
    }

    #[test]
    fn it_never_goes_back() {
        let messages = [
            message("a", "Downloading", Some((80, 100))),
            message("a", "Downloading", Some((5, 90))),
        ];
        assert_eq!(after(&messages), [(40, 100), (40, 100)]);
    }

    #[test]
    fn a_layer_that_is_there_costs_nothing() {
        assert_eq!(after(&[message("a", "Already exists", None)]), [(0, 0)]);
    }
}
