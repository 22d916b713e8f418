//! What the machine is built on: the mainboard, by the firmware's tables.

use super::pci::text;
use std::path::Path;

/// What makers leave in a field that they did not fill in, in small letters.
const NOTHING: [&str; 10] = [
    "none",
    "n/a",
    "default string",
    "not specified",
    "not applicable",
    "to be filled by o.e.m.",
    "system manufacturer",
    "system product name",
    "base board product name",
    "unknown",
];

/// Maker and name of the mainboard under `root`, which is `/sys`: of the board where the firmware says it, else of the
/// machine, as of a guest, whose board is nobody's; the device tree's name on machines without such tables. Empty when
/// nobody says.
#[must_use]
pub fn mainboard(root: &Path) -> String {
    let tables = root.join("class/dmi/id");
    let said = |name: &str| {
        text(&tables.join(name)).filter(|it| !NOTHING.contains(&it.to_lowercase().as_str()))
    };
    let named = |maker: &str, name: &str| said(name).map(|name| with_maker(said(maker), name));
    named("board_vendor", "board_name")
        .or_else(|| named("sys_vendor", "product_name"))
        .or_else(|| text(&root.join("firmware/devicetree/base/model")))
        // The device tree ends its texts with a zero.
        .map(|name| name.trim_end_matches('\0').trim().to_owned())
        .unwrap_or_default()
}

/// `Supermicro H12SSL-i`; the maker once.
fn with_maker(maker: Option<String>, name: String) -> String {
    match maker {
        Some(maker) if !name.to_lowercase().starts_with(&maker.to_lowercase()) => {
            format!("{maker} {name}")
        }
        Some(_) | None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::super::pci::tree::plant;
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_board_is_called_by_its_maker_and_name() {
        let root = TempDir::new().unwrap();
        assert_eq!(mainboard(root.path()), "");
        plant(
            root.path(),
            &[("firmware/devicetree/base/model", "NVIDIA Jetson AGX Orin\0")],
        );
        assert_eq!(mainboard(root.path()), "NVIDIA Jetson AGX Orin");
        let tables = root.path().join("class/dmi/id");
        plant(
            &tables,
            &[("sys_vendor", "QEMU\n"), ("product_name", "Standard PC\n")],
        );
        assert_eq!(mainboard(root.path()), "QEMU Standard PC");
        plant(
            &tables,
            &[
                ("board_vendor", "Supermicro\n"),
                ("board_name", "H12SSL-i\n"),
            ],
        );
        assert_eq!(mainboard(root.path()), "Supermicro H12SSL-i");
    }

    #[test]
    fn what_a_maker_did_not_fill_in_is_no_name() {
        let root = TempDir::new().unwrap();
        let tables = root.path().join("class/dmi/id");
        plant(
            &tables,
            &[
                ("board_vendor", "To Be Filled By O.E.M.\n"),
                ("board_name", "Default string\n"),
                ("sys_vendor", "ASUS\n"),
                ("product_name", "ASUS ESC8000A\n"),
            ],
        );
        assert_eq!(mainboard(root.path()), "ASUS ESC8000A");
    }
}
