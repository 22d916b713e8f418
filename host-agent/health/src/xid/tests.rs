//! The table against the rules of the market, number by number.

use super::*;
use FaultClass::{Driver, Hardware, Link, Program};
use OnGpu::{Nothing, ResetWhenIdle, Waits};
use OnLease::{Ends, GoesOn};
use std::collections::BTreeSet;

const NO: OnLease = GoesOn;
const STRUCK: OnLease = Ends(Reach::Struck);
const ALL: OnLease = Ends(Reach::Gpu);
const TOGETHER: OnLease = Ends(Reach::Together);

/// Class (first letter of the likeliest, `-` for a message), what it does to leases, to the GPU, and when it repeats.
type Wanted = (char, OnLease, OnGpu, Repeat);

/// The table, number by number, as it is written in the rules of the market.
fn table() -> Vec<(Vec<u32>, Wanted)> {
    use Repeat::{AcrossLeases, FirstIsNoted, IfCoherent, Pair, Same, WithinADay, WithinAnHour};
    use Until::{Checked, Reboot, Reset, Tested};
    let all = |range: std::ops::RangeInclusive<u32>| range.collect::<Vec<u32>>();
    vec![
        (vec![8], ('D', NO, Nothing, WithinAnHour(3, Reset))),
        (
            vec![11, 25, 32, 80],
            ('U', NO, Nothing, AcrossLeases(Tested)),
        ),
        (vec![13], ('U', NO, Nothing, AcrossLeases(Tested))),
        (vec![31], ('U', NO, Nothing, AcrossLeases(Tested))),
        (vec![37, 66, 67], ('D', NO, Nothing, Same)),
        (vec![38, 44], ('D', NO, Nothing, WithinADay(Reset))),
        (
            vec![39, 40, 41, 70, 71, 72, 75, 76, 77, 85],
            ('U', NO, Nothing, AcrossLeases(Tested)),
        ),
        (all(126..=135), ('U', NO, Nothing, AcrossLeases(Tested))),
        (vec![43], ('U', NO, Nothing, Same)),
        (vec![45], ('-', NO, Nothing, Same)),
        (vec![46, 62, 158], ('H', STRUCK, Waits(Reset), Same)),
        (vec![109], ('H', STRUCK, Waits(Reset), FirstIsNoted)),
        (vec![48], ('H', STRUCK, Waits(Reset), Same)),
        (vec![54], ('H', NO, Waits(Checked), Same)),
        (
            vec![60, 68, 82, 83, 84, 86, 88, 89, 139, 142],
            ('U', NO, Nothing, Same),
        ),
        (all(96..=105), ('U', NO, Nothing, Same)),
        (vec![63], ('H', NO, ResetWhenIdle, Same)),
        (vec![64], ('H', STRUCK, Waits(Checked), Same)),
        (vec![69], ('U', NO, Nothing, Same)),
        (vec![74], ('L', TOGETHER, Nothing, Pair(Reset))),
        (vec![78], ('D', NO, Nothing, Same)),
        (vec![79], ('H', ALL, Waits(Reboot), Same)),
        (vec![92, 93], ('H', NO, Nothing, Same)),
        (vec![94], ('H', STRUCK, ResetWhenIdle, Same)),
        (
            vec![95, 140, 167, 169, 171, 172, 173],
            ('H', ALL, Waits(Reset), Same),
        ),
        (vec![106, 107], ('-', NO, Nothing, Same)),
        (vec![110], ('H', STRUCK, Waits(Reset), Same)),
        (
            vec![119, 120],
            ('D', STRUCK, Waits(Reset), WithinADay(Reboot)),
        ),
        (vec![121], ('L', NO, Nothing, IfCoherent)),
        (vec![136], ('L', NO, Waits(Reset), Same)),
        (vec![137], ('U', NO, Nothing, Same)),
        (vec![141], ('D', NO, Nothing, Same)),
        (vec![143], ('H', NO, Waits(Checked), Same)),
        (all(144..=150), ('L', TOGETHER, Nothing, Same)),
        (vec![151], ('D', STRUCK, Nothing, Same)),
        (vec![154], ('-', NO, Nothing, Same)),
        (vec![155, 156], ('L', NO, Waits(Reset), Same)),
        (vec![152, 153, 157, 160, 161], ('-', NO, Nothing, Same)),
        (vec![168], ('H', NO, Waits(Checked), Same)),
    ]
}

#[test]
fn every_row_of_the_table() {
    let mut seen = BTreeSet::new();
    for (xids, (class, lease, gpu, repeat)) in table() {
        for xid in xids {
            let row = row(xid).unwrap_or_else(|| panic!("Xid {xid} is missing"));
            let letter = match row.classes.first() {
                None => '-',
                Some(Program) => 'U',
                Some(Hardware) => 'H',
                Some(Driver) => 'D',
                Some(Link) => 'L',
            };
            assert_eq!(
                (letter, row.lease, row.gpu, row.repeat),
                (class, lease, gpu, repeat),
                "Xid {xid}"
            );
            assert!(seen.insert(xid));
        }
    }
    // And nothing besides: what has no row is asked of the driver, these among them.
    let known: BTreeSet<u32> = (0..1000).filter(|xid| row(*xid).is_some()).collect();
    assert_eq!(known, seen);
    for unknown in [1, 163, 166, 170, 175, 176, 999] {
        assert!(row(unknown).is_none(), "Xid {unknown}");
    }
}

#[test]
fn what_is_special_is_of_these_alone() {
    let special = |wanted: fn(Special) -> bool| -> Vec<u32> {
        let has = |xid: &u32| row(*xid).is_some_and(|row| wanted(row.special));
        (0..1000).filter(has).collect()
    };
    assert_eq!(special(|special| special == Special::Collateral), [45]);
    assert_eq!(special(|special| special == Special::Followed), [48]);
    assert_eq!(special(|special| special == Special::Verdict), [154]);
    assert_eq!(
        special(|special| special == Special::Severity),
        (144..=150).collect::<Vec<_>>()
    );
    assert_eq!(
        special(|special| matches!(special, Special::Alarm(_))),
        [54, 64, 110, 168]
    );
    assert_eq!(
        special(|special| matches!(special, Special::AlarmIfShared(_))),
        [137]
    );
}

#[test]
fn no_number_has_two_rows() {
    for xid in 0..1000 {
        let rows = ROWS.iter().filter(|row| {
            let mut ranges = row.xids.iter();
            ranges.any(|(first, last)| (*first..=*last).contains(&xid))
        });
        assert!(rows.count() <= 1, "Xid {xid}");
    }
}
