//! The language in which images say what they need of NVIDIA's driver and GPUs, as NVIDIA's container library reads it
//! (`NVIDIA_REQUIRE_CUDA`): a space between constraints means "or", a comma "and", and the comma binds closer.
//!
//! ```text
//!   cuda>=12.4 brand=tesla,driver>=535,driver<536
//!   └──────────── either ────────────┘
//! ```
//!
//! A constraint is a property, an operator and a value. Properties: `cuda` (the highest version that the driver goes up
//! to), `driver`, `arch` (compute capability), `brand`. Operators: `=` `!=` `<` `<=` `>` `>=`; a brand is only equal or
//! not. What is not known of a GPU counts as met, as it does there.

use crate::version::Version;
use std::cmp::Ordering;

/// A requirement longer than this is not read.
const LENGTH_MAX: usize = 16_384;

/// What of a GPU can be asked for; nothing for what is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Highest CUDA version of its driver.
    pub cuda: Option<Version>,
    /// Driver version.
    pub driver: Option<Version>,
    /// Compute capability.
    pub capability: Option<Version>,
    /// Brand, in lower case and one word.
    pub brand: Option<&'static str>,
}

/// Why a requirement is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// The GPU is another than is needed.
    Not {
        /// What is needed, in words.
        needed: String,
        /// What is there, in words.
        found: String,
    },
    /// It is not of the language.
    Unreadable {
        /// The part that is not.
        part: String,
    },
}

/// Whether a GPU meets a requirement. All of it is read, also behind what is met.
///
/// # Errors
/// The first constraint that is in the way, of the alternative that is named first; or what cannot be read.
pub fn check(requirement: &str, card: &Card) -> Result<(), Unmet> {
    if requirement.len() > LENGTH_MAX {
        let part = requirement.chars().take(32).collect();
        return Err(Unmet::Unreadable { part });
    }
    let mut is_met = false;
    let mut first = None;
    for alternative in requirement.split(' ').filter(|it| !it.is_empty()) {
        let mut missing = None;
        for part in alternative.split(',').filter(|it| !it.is_empty()) {
            let constraint = Constraint::read(part).ok_or_else(|| Unmet::Unreadable {
                part: part.to_owned(),
            })?;
            missing = missing.or(constraint.missing(card));
        }
        match missing {
            None => is_met = true,
            Some(missing) => first = first.or(Some(missing)),
        }
    }
    match first {
        Some(missing) if !is_met => Err(missing),
        // Nothing is asked for by an empty one.
        Some(_) | None => Ok(()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Not,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Operator {
    const ALL: [(&'static str, Self); 6] = [
        ("=", Self::Equal),
        ("!=", Self::Not),
        ("<", Self::Less),
        ("<=", Self::AtMost),
        (">", Self::More),
        (">=", Self::AtLeast),
    ];

    const fn holds(self, found: Ordering) -> bool {
        match self {
            Self::Equal => found.is_eq(),
            Self::Not => found.is_ne(),
            Self::Less => found.is_lt(),
            Self::AtMost => found.is_le(),
            Self::More => found.is_gt(),
            Self::AtLeast => found.is_ge(),
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Equal => "",
            Self::Not => "other than ",
            Self::Less => "below ",
            Self::AtMost => "at most ",
            Self::More => "above ",
            Self::AtLeast => "at least ",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    Cuda,
    Driver,
    Capability,
}

impl Property {
    const fn words(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA",
            Self::Driver => "driver",
            Self::Capability => "compute capability",
        }
    }

    const fn of(self, card: &Card) -> Option<&Version> {
        match self {
            Self::Cuda => card.cuda.as_ref(),
            Self::Driver => card.driver.as_ref(),
            Self::Capability => card.capability.as_ref(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Constraint {
    Version(Property, Operator, Version),
    Brand { is_wanted: bool, brand: String },
}

impl Constraint {
    fn read(part: &str) -> Option<Self> {
        let is_sign = |letter: char| "<>=!".contains(letter);
        let start = part.find(is_sign)?;
        let (name, rest) = part.split_at_checked(start)?;
        let end = rest.find(|letter| !is_sign(letter))?;
        let (sign, value) = rest.split_at_checked(end)?;
        let operator = Operator::ALL.iter().find(|(text, _)| *text == sign);
        let operator = operator.map(|(_, operator)| *operator)?;
        let property = match name.to_lowercase().as_str() {
            "cuda" => Property::Cuda,
            "driver" => Property::Driver,
            "arch" => Property::Capability,
            "brand" => {
                let brand = value.to_lowercase();
                let is_wanted = match operator {
                    Operator::Equal => true,
                    Operator::Not => false,
                    Operator::Less | Operator::AtMost | Operator::More | Operator::AtLeast => {
                        return None;
                    }
                };
                return Some(Self::Brand { is_wanted, brand });
            }
            _ => return None,
        };
        Some(Self::Version(property, operator, Version::parse(value)?))
    }

    /// What is in the way of it, if anything is.
    fn missing(&self, card: &Card) -> Option<Unmet> {
        match self {
            Self::Version(property, operator, wanted) => {
                let found = property.of(card)?;
                let is_met = operator.holds(found.cmp(wanted));
                (!is_met).then(|| Unmet::Not {
                    needed: format!("{} {}{wanted}", property.words(), operator.words()),
                    found: format!("{} {found}", property.words()),
                })
            }
            Self::Brand { is_wanted, brand } => {
                let found = card.brand?;
                let is_met = (found == brand) == *is_wanted;
                let other = if *is_wanted { "" } else { "other than " };
                (!is_met).then(|| Unmet::Not {
                    needed: format!("a GPU of the brand {other}{brand}"),
                    found: format!("the brand {found}"),
                })
            }
        }
    }
}
