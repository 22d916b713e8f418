//! The page on fields: every name that an offer can be searched and sorted by, with its unit.
//!
//! Made from the protocol's own table, so that it cannot lag behind it.

use protocol::filter::{FieldInfo, fields};

const INTRODUCTION: &str = "\
A search expression is a list of conditions, FIELD OPERATOR VALUE, all of which must hold:

  feira search 'gpu_name=RTX_4090 num_gpus>=2 dph<0.5'

Operators: < <= = != >= > in notin (also lt lte eq neq gte gt nin). Lists: gpu in [RTX_4090,RTX_5090].
Names of GPUs meet in any form (RTX 4090, rtx4090, RTX_4090, NVIDIA GeForce RTX 4090); a name without form
means all forms (H100 is PCIe, SXM and NVL). The value any is no condition. What is not known of an offer
(not measured, not said) meets no condition. Slices of GPUs are found where partition is named, and only there. --sort takes the same names, with a - behind one for the largest first.
";

const CLOSING: &str = "\
What was measured is the host's own word, signed, to three digits; a broker refuses what its model cannot do, and
verified says whether it has proof. Vast's other fields (dlperf, geolocation, …) are refused with the reason.
";

/// The whole page.
pub(crate) fn fields_help() -> String {
    let infos = fields();
    let width = |text: fn(&FieldInfo) -> &str| {
        infos
            .iter()
            .map(|info| text(info).chars().count())
            .max()
            .unwrap_or(0)
    };
    let (names, units) = (width(|info| info.name), width(|info| info.unit));
    let mut page = format!(
        "{INTRODUCTION}\n{:<names$}  {:<units$}  MEANING\n",
        "FIELD", "UNIT"
    );
    for info in infos {
        let also = if info.aliases.is_empty() {
            String::new()
        } else {
            format!(" (also {})", info.aliases.join(", "))
        };
        let line = format!(
            "{:<names$}  {:<units$}  {}{also}\n",
            info.name, info.unit, info.meaning
        );
        page.push_str(&line);
    }
    format!("{page}\n{CLOSING}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_line_with_unit_and_other_names() {
        let page = fields_help();
        for info in fields() {
            let line = page
                .lines()
                .find(|line| line.starts_with(&format!("{} ", info.name)));
            let line = line.unwrap_or_else(|| panic!("{}", info.name));
            assert!(
                line.contains(info.unit) && line.contains(info.meaning),
                "{line}"
            );
            assert!(
                info.aliases.iter().all(|alias| line.contains(alias)),
                "{line}"
            );
        }
    }
}
