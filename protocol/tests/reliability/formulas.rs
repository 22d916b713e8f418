//! Every vector, and every row of the table of histories.

use crate::{between, evidence, hour, near, outcome, payer};
use protocol::reliability::{
    Evidence, Fault, HALF_LIFE_HOURS, Score, cluster, counted, decay, decayed_hours, hazard,
    start_probability, survival,
};
use protocol::units::Timestamp;
use serde_json::Value;

/// The vectors have every digit of a double; powers of different libraries may differ in the last ones.
const EXACT: f64 = 1e-12;

fn vectors(name: &str) -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/vectors/market_vectors.json"
    );
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[name].clone()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {value}"))
}

fn count(value: &Value, name: &str) -> u32 {
    u32::try_from(value[name].as_u64().unwrap()).unwrap()
}

/// A host that renters had in turn, an hour each, from `from` to `to`.
fn leased_continuously(from: u64, to: u64) -> Evidence {
    let hours = |number: u8| -> Vec<_> {
        // Eight renters: none has more than a quarter. At most as many runs as a statement holds.
        let step = (to - from).div_ceil(8 * 100).max(1);
        (from..to)
            .step_by(usize::try_from(step).unwrap())
            .enumerate()
            .filter(|(index, _)| index % 8 == usize::from(number))
            .map(|(_, at)| between(hour(at), hour((at + step).min(to))))
            .collect()
    };
    evidence((0..8).map(|number| outcome(number, payer(number), &hours(number))))
}

#[test]
fn survival_is_what_the_vectors_say() {
    let vectors = vectors("reliability");
    near(number(&vectors, "half_life_h"), HALF_LIFE_HOURS, 0.0);
    let rows = vectors["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for row in rows {
        let (faults, exposure) = (number(row, "F"), number(row, "E"));
        near(survival(faults, exposure, 1.0), number(row, "R1"), EXACT);
        near(survival(faults, exposure, 24.0), number(row, "R24"), EXACT);
        near(
            survival(faults, exposure, 168.0),
            number(row, "R168"),
            EXACT,
        );
        let between_faults = 1.0 / hazard(faults, exposure);
        near(between_faults, number(row, "mtbf_h"), 1e-9);
    }
}

#[test]
fn start_probability_is_what_the_vectors_say() {
    let rows = vectors("start");
    assert_eq!(rows.as_array().unwrap().len(), 4);
    for row in rows.as_array().unwrap() {
        let probability = start_probability(count(row, "s"), count(row, "f"));
        near(probability, number(row, "p"), EXACT);
    }
    // Fifty clean starts.
    near(start_probability(50, 0), 0.9667, 5e-5);
}

#[test]
fn the_score_is_start_times_survival_as_the_vectors_say() {
    let rows = vectors("score");
    let now = hour(2160);
    let score = Score::from_counts(0.0, decayed_hours(hour(0), now, now), (50, 0));
    for row in rows.as_array().unwrap() {
        near(
            score.completes(number(row, "T")),
            number(row, "score"),
            EXACT,
        );
    }
    // .952328957… in millionths, rounded down.
    assert_eq!(score.ppm, 952_328);
}

#[test]
fn hours_of_one_renter_are_capped_as_the_vectors_say() {
    let rows = vectors("sybil");
    assert_eq!(rows.as_array().unwrap().len(), 4);
    for row in rows.as_array().unwrap() {
        let hours: Vec<f64> = row["ex"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hours| hours.as_f64().unwrap())
            .collect();
        near(counted(&hours), number(row, "counted"), 1e-6);
    }
}

#[test]
fn the_cap_is_the_largest_that_agrees_with_itself() {
    near(counted(&[]), 0.0, 0.0);
    near(counted(&[47.0]), 47.0, 0.0);
    // Four renters of 200: a quarter of 800 each. 48 each would agree with itself, too.
    near(counted(&[200.0; 4]), 800.0, 0.0);
    // Two large ones among 4 of 100: rest 400, two quarters: 800 in all, 200 of each large one.
    near(
        counted(&[100.0, 900.0, 100.0, 500.0, 100.0, 100.0]),
        800.0,
        1e-9,
    );
    // Three large ones beside 60: 240 in all.
    near(counted(&[900.0, 900.0, 900.0, 60.0]), 240.0, 1e-9);
    // Three large ones beside 40: 160 in all, a quarter is less than 48.
    near(
        counted(&[900.0, 900.0, 900.0, 40.0]),
        3.0 * 48.0 + 40.0,
        1e-9,
    );
}

#[test]
fn a_cluster_is_the_product_as_the_vectors_say() {
    let rows = vectors("cluster_rel");
    assert_eq!(rows.as_array().unwrap().len(), 4);
    for row in rows.as_array().unwrap() {
        let node = number(row, "R24_node");
        let nodes = usize::try_from(count(row, "n")).unwrap();
        near(
            cluster(vec![node; nodes]),
            number(row, "R24_cluster"),
            EXACT,
        );
    }
}

#[track_caller]
fn row(score: &Score, survives: [f64; 3], between_faults: f64) {
    near(score.survives_1h, survives[0], 5.1e-6);
    near(score.survives_24h, survives[1], 5.1e-6);
    near(score.survives_168h, survives[2], 5.1e-6);
    near(1.0 / score.hazard_per_hour, between_faults, 0.51);
}

#[test]
fn table_new() {
    let score = Score::of(&Evidence::new(crate::HOST), hour(0));
    row(&score, [0.97297, 0.60000, 0.17647], 36.0);
    // .8 · .6
    assert_eq!(score.ppm, 480_000);
    assert_eq!(score.ppm, Score::unknown().ppm);
    // 10⁹ / 36
    assert_eq!(score.hazard_in_billion_hours(), 27_777_777);
}

#[test]
fn table_100_hours_clean() {
    row(
        &Score::from_counts(0.0, 100.0, (0, 0)),
        [0.99270, 0.85000, 0.44737],
        136.0,
    );
}

#[test]
fn table_720_hours_clean_and_with_faults() {
    let with = |faults| Score::from_counts(faults, 720.0, (0, 0));
    row(&with(0.0), [0.99868, 0.96923, 0.81818], 756.0);
    row(&with(1.0), [0.99736, 0.93941, 0.66942], 378.0);
    // The table's last digits were cut: .882487924…, .448125128….
    row(&with(3.0), [0.99473, 0.882_488, 0.448_125], 189.0);
}

#[test]
fn table_90_days_continuous_clean() {
    let score = Score::of(&leased_continuously(0, 2160), hour(2160));
    near(score.exposure_hours, 1558.11, 0.005);
    row(&score, [0.99937, 0.98517, 0.90466], 1594.0);
}

#[test]
fn table_90_days_and_a_fault_45_days_ago() {
    let mut evidence = leased_continuously(0, 2160);
    add_fault(&mut evidence, hour(1080));
    let score = Score::of(&evidence, hour(2160));
    // Half a half-life: .7071.
    near(score.faults, 0.5_f64.sqrt(), 1e-15);
    row(&score, [0.99893, 0.97481, 0.84278], 934.0);
}

#[test]
fn table_90_days_and_a_fault_today() {
    let mut evidence = leased_continuously(0, 2160);
    add_fault(&mut evidence, hour(2160));
    let score = Score::of(&evidence, hour(2160));
    near(score.faults, 1.0, 0.0);
    row(&score, [0.99875, 0.97056, 0.81841], 797.0);
}

fn add_fault(evidence: &mut Evidence, at: Timestamp) {
    evidence.incidents.push(protocol::reliability::Incident {
        at,
        fault: Fault::Lost,
    });
}

#[test]
fn table_a_year_clean() {
    let score = Score::of(&leased_continuously(0, 365 * 24), hour(365 * 24));
    row(&score, [0.99966, 0.99197, 0.94637], 2965.0);
}

#[test]
fn table_the_limit() {
    // 2160 h / ln 2 = 3116.2; no history is longer than for ever.
    let forever = decayed_hours(Timestamp(0), hour(0), hour(0));
    near(forever, HALF_LIFE_HOURS / std::f64::consts::LN_2, 1e-6);
    row(
        &Score::from_counts(0.0, forever, (0, 0)),
        [0.99968, 0.99244, 0.94940],
        3152.0,
    );
}

#[test]
fn a_cluster_of_eight_after_90_days() {
    let now = hour(2160);
    let node = survival(0.0, decayed_hours(hour(0), now, now), 24.0);
    near(cluster([node; 8]), 0.8873, 5e-5);
}

#[test]
fn idle_hours_count_a_quarter() {
    let mut evidence = Evidence::new(crate::HOST);
    evidence.heard.push(between(hour(0), hour(2160)));
    let score = Score::of(&evidence, hour(2160));
    // 1558.11 / 4
    near(score.exposure_hours, 389.5, 0.05);
    near(score.idle_hours, 1558.11, 0.005);
}

#[test]
fn half_is_left_after_90_days_and_all_of_what_is_to_come() {
    near(decay(hour(0), hour(2160)), 0.5, 0.0);
    near(decay(hour(0), hour(4320)), 0.25, 0.0);
    near(decay(hour(9), hour(0)), 1.0, 0.0);
    near(decayed_hours(hour(3), hour(2), hour(9)), 0.0, 0.0);
    // Only what has passed was seen.
    near(decayed_hours(hour(0), hour(99), hour(1)), 1.0, 1e-3);
}

#[test]
fn a_score_is_the_same_bits_on_every_machine() {
    // Worked out once with this crate; another power function or order of sums would show here. Beside it,
    // 3116.2 h · (2^(-340/2160) - 2^(-2500/2160)) = 1397.0 and (1433.0/1601.0) = .8951.
    let score = Score::of(&leased_continuously(0, 2160), hour(2500));
    assert_eq!(
        (
            score.survives_168h.to_bits(),
            score.exposure_hours.to_bits()
        ),
        (0x3fec_a468_5564_0831, 0x4095_d439_c45c_19ee)
    );
}
