//! The words that names are made of: short, common, distinct, and nothing one would mind on a screen.

/// What it is like.
pub(super) const QUALITIES: [&str; 60] = [
    "agile", "amber", "bold", "brave", "brisk", "bright", "calm", "candid", "cheery", "clever",
    "cosy", "crisp", "daring", "deft", "eager", "early", "fair", "fancy", "fleet", "fond", "frank",
    "fresh", "gentle", "glad", "golden", "grand", "happy", "hardy", "honest", "humble", "jolly",
    "keen", "kind", "lively", "loyal", "lucky", "mellow", "merry", "mild", "modest", "neat",
    "noble", "patient", "plucky", "polite", "proud", "quick", "quiet", "ready", "sharp", "shy",
    "silent", "sleek", "snug", "steady", "sunny", "swift", "tidy", "warm", "wise",
];

/// What it is.
pub(super) const ANIMALS: [&str; 60] = [
    "badger", "bear", "beaver", "bison", "bobcat", "camel", "civet", "cobra", "condor", "coral",
    "crane", "dingo", "dolphin", "eagle", "egret", "falcon", "ferret", "finch", "fox", "gazelle",
    "gecko", "goose", "grouse", "hare", "hawk", "heron", "horse", "ibex", "jackal", "jaguar",
    "koala", "lark", "lemur", "lion", "lizard", "lynx", "magpie", "marmot", "marten", "mole",
    "moose", "newt", "ocelot", "okapi", "osprey", "otter", "owl", "panda", "pelican", "puffin",
    "quail", "raven", "robin", "salmon", "seal", "stork", "swan", "tapir", "walrus", "wren",
];
