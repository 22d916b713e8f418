//! The value of `partition`: whole GPUs, slices of one kind, or whatever there is.
//!
//! A filter that does not name `partition` looks at whole GPUs alone. So "whatever there is" is a condition here
//! and nowhere else, and the word for it is one that is sent.

use super::field::Field;
use super::{Comparison, Filter, Test, Value, ValueProblem};
use crate::bounded::Text;

/// What whole GPUs have in `partition`, and machines without one.
pub(super) const WHOLE: &str = "none";

/// What asks for whole GPUs and slices alike.
pub(super) const EITHER: &str = "any";

/// Compute partitions of AMD: their names have no number of gigabytes.
const MODES: [&str; 5] = ["spx", "dpx", "tpx", "qpx", "cpx"];

/// A kind of slice in the form in which offers have it, if `text` is one: `mig-3g.40gb` is `3g.40gb`.
pub(super) fn checked(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let name = lower.strip_prefix("mig-").unwrap_or(&lower);
    let name = match name {
        WHOLE | "whole" => WHOLE,
        EITHER => EITHER,
        other => other,
    };
    let is_known = name == WHOLE || name == EITHER || mig::name::is_profile_name(name);
    let is_mode = MODES.iter().any(|mode| name.starts_with(mode));
    (is_known || is_mode).then(|| name.to_owned())
}

/// The same as a value, or why it is none.
pub(super) fn value(field: Field, text: &str) -> Result<Value, ValueProblem> {
    let wrong = || ValueProblem::Wrong {
        field,
        text: text.to_owned(),
    };
    let form = checked(text.trim()).ok_or_else(wrong)?;
    Ok(Value::Text(Text::new(form).map_err(|_| wrong())?))
}

/// Whether a test may hold its values: "whatever there is" is no member of a list, and nothing can be without it.
pub(super) fn is_sound(test: &Test) -> bool {
    let is_either = |value: &Value| matches!(value, Value::Text(text) if text.as_str() == EITHER);
    match test {
        Test::Compare(Comparison::Equal, _) => true,
        Test::Compare(_, value) => !is_either(value),
        Test::In(values) | Test::NotIn(values) => !values.iter().any(is_either),
    }
}

impl Filter {
    /// Whether it says which slices, if any, are looked at. Without that whole GPUs are, and no slices.
    #[must_use]
    pub fn names_partition(&self) -> bool {
        let mut terms = self.terms.iter();
        terms.any(|term| term.field() == Field::Partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_written_in_the_vendor_s_words_and_in_sagemaker_s() {
        let form = |text: &str| checked(text);
        assert_eq!(form("3g.40gb").as_deref(), Some("3g.40gb"));
        assert_eq!(
            form("MIG-1g.24gb+ME.all").as_deref(),
            Some("1g.24gb+me.all")
        );
        assert_eq!(form("whole").as_deref(), Some("none"));
        assert_eq!(form("None").as_deref(), Some("none"));
        assert_eq!(form("ANY").as_deref(), Some("any"));
        assert_eq!(form("CPX").as_deref(), Some("cpx"));
        for wrong in ["3g40gb", "3g", "half", "", "mig-"] {
            assert_eq!(form(wrong), None, "{wrong}");
        }
    }
}
