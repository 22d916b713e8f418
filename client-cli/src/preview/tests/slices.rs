//! What is said of slices, and of hardware that nobody proved.

use super::Scene;
use crate::fixtures::offers;
use protocol::terms::Deal;
use serde_json::json;

/// Who takes a slice is told what it shares, and whoever takes what is not proved is told that.
#[test]
fn a_slice_and_what_is_not_proved_are_said_before_anything_is_signed() {
    let slice = Scene {
        offer: offers::sliced(1, 400_000),
        ..Scene::of(Deal::OnDemand)
    };
    assert_eq!(slice.line("GPU"), "1x H100 80GB HBM3 3g.40gb");
    assert_eq!(
        slice.line("Slice"),
        "3g.40gb: 39.5 GiB, 60 of 132 multiprocessors, 4 of 8 memory slices"
    );
    let lines = slice.see(|preview| preview.object()).lines;
    let place = lines
        .iter()
        .position(|(label, _)| label == "Slice")
        .unwrap();
    assert!(
        lines[place + 1].1.contains("ends them all"),
        "{:?}",
        lines[place + 1]
    );
    assert!(
        slice
            .see(|preview| preview.sentence())
            .starts_with("Renting 1 slice 3g.40gb of o-")
    );
    let json = slice.see(|preview| preview.object().json);
    assert_eq!(json["partition"]["isolation"], "hardware");
    assert_eq!(json["verification"]["level"], "unverified");
    let doubt = slice.see(|preview| preview.doubt()).unwrap();
    assert_eq!(
        doubt,
        "the hardware is not proved: the broker has its host's word for it"
    );
    assert_eq!(
        slice.line("Hardware"),
        "not proved: the broker has its host's word for it"
    );
    // A whole GPU has no such lines.
    let whole = Scene::of(Deal::OnDemand).see(|preview| preview.object());
    assert!(whole.lines.iter().all(|(label, _)| label != "Slice"));
    assert_eq!(whole.json["partition"], json!(null));
}
