//! Names of what a lease holds alone, and which two of them cannot be held by two leases at once.
//!
//! Names come from strangers. A text that is not exactly a slice's name is a plain name, which only an
//! equal name excludes, so whoever takes names from others refuses one that holds a `/` and is no slice:
//! see [`is_well_formed`].

use std::error::Error;
use std::fmt;

/// The resource of a machine that is leased as a whole.
pub const WHOLE_MACHINE: &str = "machine";

/// Most bytes of a name.
pub const NAME_BYTES_MAX: usize = 64;

/// Most units of a memory axis: the longest known one has 12.
pub const AXIS_MAX: u8 = 16;

/// What stands before the UUID of a GPU.
const GPU_PREFIX: &str = "GPU-";

/// A slice of one GPU by name: `GPU-<uuid>/<profile>@<start>+<size>`, like
/// `GPU-8f6d…/3g.40gb@4+4`. Start and size are in units of the GPU's memory axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceName<'a> {
    gpu: &'a str,
    profile: &'a str,
    start: u8,
    size: u8,
}

/// Why a text, or the parts of one, are not the name of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameError {
    /// No `/` after a GPU, no `@` after a profile, or no `+` after a start.
    Form,
    /// More than [`NAME_BYTES_MAX`] bytes.
    Length,
    /// The GPU is not `GPU-` with letters, digits and dashes after it.
    Gpu,
    /// The profile is not like `3g.40gb` or `1g.24gb+me.all`.
    Profile,
    /// The span is empty, ends after [`AXIS_MAX`], or its numbers are not plain decimal digits.
    Span,
}

impl<'a> SliceName<'a> {
    /// The name of the slice of `gpu` with `profile` at `[start, start + size)`.
    ///
    /// # Errors
    /// Says which part is wrong.
    pub fn new(gpu: &'a str, profile: &'a str, start: u8, size: u8) -> Result<Self, NameError> {
        if !is_gpu(gpu) {
            return Err(NameError::Gpu);
        }
        if !is_profile_name(profile) {
            return Err(NameError::Profile);
        }
        let end = start.checked_add(size).ok_or(NameError::Span)?;
        if size == 0 || end > AXIS_MAX {
            return Err(NameError::Span);
        }
        let digits = |number: u8| if number < 10 { 1 } else { 2 };
        if gpu.len() + profile.len() + digits(start) + digits(size) + 3 > NAME_BYTES_MAX {
            return Err(NameError::Length);
        }
        Ok(Self {
            gpu,
            profile,
            start,
            size,
        })
    }

    /// The slice that `text` names. One slice has one text: no spaces, signs or leading zeros.
    ///
    /// # Errors
    /// Says which part is wrong.
    pub fn parse(text: &'a str) -> Result<Self, NameError> {
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::Length);
        }
        let (gpu, slice) = text.split_once('/').ok_or(NameError::Form)?;
        let (profile, span) = slice.split_once('@').ok_or(NameError::Form)?;
        let (start, size) = span.split_once('+').ok_or(NameError::Form)?;
        let start = number(start).ok_or(NameError::Span)?;
        let size = number(size).ok_or(NameError::Span)?;
        Self::new(gpu, profile, start, size)
    }

    /// The GPU it is a slice of: the name of that whole GPU.
    #[must_use]
    pub const fn gpu(&self) -> &'a str {
        self.gpu
    }

    /// Its profile, like `3g.40gb`.
    #[must_use]
    pub const fn profile(&self) -> &'a str {
        self.profile
    }

    /// Its first unit on the memory axis.
    #[must_use]
    pub const fn start(&self) -> u8 {
        self.start
    }

    /// How many units it takes; never 0.
    #[must_use]
    pub const fn size(&self) -> u8 {
        self.size
    }

    /// Whether both are of one GPU and have a unit in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        // Ends are at most AXIS_MAX, so the sums do not leave a byte.
        self.gpu == other.gpu
            && self.start < other.start + other.size
            && other.start < self.start + self.size
    }
}

impl fmt::Display for SliceName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            gpu,
            profile,
            start,
            size,
        } = self;
        write!(f, "{gpu}/{profile}@{start}+{size}")
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Form => "not of the form GPU-…/3g.40gb@4+4",
            Self::Length => "longer than 64 bytes",
            Self::Gpu => "its GPU is not 'GPU-' with letters, digits and dashes after it",
            Self::Profile => "its profile is not like 3g.40gb or 1g.24gb+me",
            Self::Span => "its start and size are not a span of at most 16 units",
        };
        write!(f, "not the name of a slice: {what}")
    }
}

impl Error for NameError {}

/// Whether no two leases may hold resources of these names at once: the names are equal, or one is the
/// machine, or one is a whole GPU and the other a slice of it, or they are slices of one GPU whose spans
/// overlap. The same whichever comes first.
#[must_use]
pub fn excludes(a: &str, b: &str) -> bool {
    if a == b || a == WHOLE_MACHINE || b == WHOLE_MACHINE {
        return true;
    }
    match (SliceName::parse(a), SliceName::parse(b)) {
        (Ok(a), Ok(b)) => a.overlaps(&b),
        (Ok(slice), Err(_)) => slice.gpu == b,
        (Err(_), Ok(slice)) => slice.gpu == a,
        (Err(_), Err(_)) => false,
    }
}

/// Whether `name` is a slice's, or a plain one that nobody could take for a slice's: not empty, not too
/// long, and without a `/`. A host that sells `GPU-a/3g.40gb@04+4` beside `GPU-a` sells one thing twice.
#[must_use]
pub fn is_well_formed(name: &str) -> bool {
    let plain = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains('/');
    plain || SliceName::parse(name).is_ok()
}

/// Whether `text` is a profile's name as the driver writes them:
/// `[0-9]+g\.[0-9]+gb([+-][a-z0-9.]+)*`.
#[must_use]
pub fn is_profile_name(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((compute, rest)) = text.split_once("g.") else {
        return false;
    };
    let Some((memory, marks)) = rest.split_once("gb") else {
        return false;
    };
    let is_mark = |mark: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.';
        !mark.is_empty() && mark.bytes().all(plain)
    };
    let mut marks = marks.split(['+', '-']);
    digits(compute) && digits(memory) && marks.next() == Some("") && marks.all(is_mark)
}

fn is_gpu(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.strip_prefix(GPU_PREFIX)
        .is_some_and(|uuid| !uuid.is_empty() && uuid.bytes().all(plain))
}

/// A number of one or two digits without a leading zero.
fn number(digits: &str) -> Option<u8> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let leads = digits.len() > 1 && digits.starts_with('0');
    (plain && !leads).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GPU: &str = "GPU-8f6d2a31-7b1c-4c8e-9a45-0d3e5f6a7b8c";
    const OTHER: &str = "GPU-11111111-2222-3333-4444-555555555555";

    fn of(gpu: &str, slice: &str) -> String {
        format!("{gpu}/{slice}")
    }

    #[test]
    fn a_name_is_read_and_written_alike() {
        let text = of(GPU, "1g.24gb+me.all@9+3");
        let slice = SliceName::parse(&text).unwrap();
        let parts = (slice.gpu(), slice.profile(), slice.start(), slice.size());
        assert_eq!(parts, (GPU, "1g.24gb+me.all", 9, 3));
        assert_eq!(slice.to_string(), text);
        // The longest that there is: 40 + 1 + 14 + 1 + 2 + 1 + 2.
        assert_eq!(of(GPU, "1g.24gb+me.all@12+12").len(), 61);
    }

    #[test]
    fn what_is_not_a_slice_says_why() {
        let long = of(GPU, "1g.24gb+me.all+gfx.all@9+3");
        for (text, wanted) in [
            ("", NameError::Form),
            ("machine", NameError::Form),
            (GPU, NameError::Form),
            ("GPU-a/3g.40gb", NameError::Form),
            ("GPU-a/3g.40gb@4", NameError::Form),
            (&*long, NameError::Length),
            ("GPU-/3g.40gb@4+4", NameError::Gpu),
            ("gpu-a/3g.40gb@4+4", NameError::Gpu),
            ("GPU-a b/3g.40gb@4+4", NameError::Gpu),
            ("GPU-a/3g.40@4+4", NameError::Profile),
            ("GPU-a/3g.40gb+@4+4", NameError::Profile),
            ("GPU-a/3g.40gb+ME@4+4", NameError::Profile),
            ("GPU-a/g.gb@4+4", NameError::Profile),
            ("GPU-a/3g.40gb@4+0", NameError::Span),
            ("GPU-a/3g.40gb@04+4", NameError::Span),
            ("GPU-a/3g.40gb@4++4", NameError::Span),
            ("GPU-a/3g.40gb@4+4 ", NameError::Span),
            ("GPU-a/3g.40gb@-1+4", NameError::Span),
            ("GPU-a/3g.40gb@13+4", NameError::Span),
            ("GPU-a/3g.40gb@255+255", NameError::Span),
            ("GPU-a/3g.40gb@+", NameError::Span),
        ] {
            assert_eq!(SliceName::parse(text), Err(wanted), "{text}");
        }
    }

    #[test]
    fn two_leases_cannot_have_the_same_memory() {
        for (a, b, wanted) in [
            (GPU.to_owned(), GPU.to_owned(), true),
            (GPU.to_owned(), OTHER.to_owned(), false),
            (WHOLE_MACHINE.to_owned(), GPU.to_owned(), true),
            (WHOLE_MACHINE.to_owned(), of(GPU, "1g.10gb@6+1"), true),
            (WHOLE_MACHINE.to_owned(), WHOLE_MACHINE.to_owned(), true),
            (GPU.to_owned(), of(GPU, "1g.10gb@6+1"), true),
            (OTHER.to_owned(), of(GPU, "1g.10gb@6+1"), false),
            (of(GPU, "3g.40gb@4+4"), of(GPU, "1g.10gb@6+1"), true),
            (of(GPU, "3g.40gb@4+4"), of(GPU, "4g.40gb@0+4"), false),
            (of(GPU, "3g.40gb@4+4"), of(OTHER, "3g.40gb@4+4"), false),
            (of(GPU, "1g.10gb@6+1"), of(GPU, "1g.20gb@6+2"), true),
            (of(GPU, "1g.10gb@5+1"), of(GPU, "1g.20gb@6+2"), false),
            // Garbage is a plain name.
            (of(GPU, "3g.40gb@04+4"), GPU.to_owned(), false),
            (of(GPU, "@+"), of(GPU, "@+"), true),
        ] {
            assert_eq!(excludes(&a, &b), wanted, "{a} {b}");
            assert_eq!(excludes(&b, &a), wanted, "{b} {a}");
        }
    }

    #[test]
    fn a_plain_name_that_looks_like_a_slice_is_not_well_formed() {
        for (name, wanted) in [
            (WHOLE_MACHINE, true),
            (GPU, true),
            ("GPU-a/3g.40gb@4+4", true),
            ("GPU-a/3g.40gb@04+4", false),
            ("GPU-a/", false),
            ("/", false),
            ("", false),
        ] {
            assert_eq!(is_well_formed(name), wanted, "{name}");
        }
        assert!(!is_well_formed(&"a".repeat(65)));
    }

    proptest! {
        #[test]
        fn any_text_is_taken(
            a in ".{0,80}",
            b in "(GPU-[ab]{1,2}(/[0-9]g\\.[0-9]{1,2}gb(\\+me)?@[0-9]{1,3}\\+[0-9]{1,3})?)|machine",
        ) {
            prop_assert_eq!(excludes(&a, &b), excludes(&b, &a));
            prop_assert!(excludes(&a, &a) && excludes(&b, &b));
            if let Ok(slice) = SliceName::parse(&b) {
                prop_assert_eq!(&slice.to_string(), &b);
                prop_assert!(slice.start() + slice.size() <= AXIS_MAX);
            }
            let _ = (is_well_formed(&a), is_profile_name(&a));
        }
    }
}
