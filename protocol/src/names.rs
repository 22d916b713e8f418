//! Names of leases that nobody chose: two random words, short, common, distinct, and nothing one would mind on a
//! screen.

/// The name that these random bytes give: 60 × 60 of them.
#[must_use]
pub fn of_random(random: [u8; 8]) -> String {
    let [a, b, c, d, e, f, g, h] = random;
    let pick = |bytes: [u8; 4], words: &[&'static str; 60]| {
        let number = usize::try_from(u32::from_be_bytes(bytes) % 60).unwrap_or(0);
        words.get(number).copied().unwrap_or("plain")
    };
    format!(
        "{}-{}",
        pick([a, b, c, d], &QUALITIES),
        pick([e, f, g, h], &ANIMALS)
    )
}

/// What it is like.
const QUALITIES: [&str; 60] = [
    "agile", "amber", "bold", "brave", "brisk", "bright", "calm", "candid", "cheery", "clever",
    "cosy", "crisp", "daring", "deft", "eager", "early", "fair", "fancy", "fleet", "fond", "frank",
    "fresh", "gentle", "glad", "golden", "grand", "happy", "hardy", "honest", "humble", "jolly",
    "keen", "kind", "lively", "loyal", "lucky", "mellow", "merry", "mild", "modest", "neat",
    "noble", "patient", "plucky", "polite", "proud", "quick", "quiet", "ready", "sharp", "shy",
    "silent", "sleek", "snug", "steady", "sunny", "swift", "tidy", "warm", "wise",
];

/// What it is.
const ANIMALS: [&str; 60] = [
    "badger", "bear", "beaver", "bison", "bobcat", "camel", "civet", "cobra", "condor", "coral",
    "crane", "dingo", "dolphin", "eagle", "egret", "falcon", "ferret", "finch", "fox", "gazelle",
    "gecko", "goose", "grouse", "hare", "hawk", "heron", "horse", "ibex", "jackal", "jaguar",
    "koala", "lark", "lemur", "lion", "lizard", "lynx", "magpie", "marmot", "marten", "mole",
    "moose", "newt", "ocelot", "okapi", "osprey", "otter", "owl", "panda", "pelican", "puffin",
    "quail", "raven", "robin", "salmon", "seal", "stork", "swan", "tapir", "walrus", "wren",
];
