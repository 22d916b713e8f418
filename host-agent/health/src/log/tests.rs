//! Lines as drivers write them, and as renters would like them to be read.

use super::*;
use proptest::prelude::*;

fn xid(slot: &str, instance: Option<u32>, xid: u32, fatal: Option<bool>) -> Option<Line> {
    let slot = Text::cut(slot);
    Some(Line::Xid {
        slot,
        instance,
        xid,
        fatal,
    })
}

#[test]
fn lines_that_drivers_write() {
    let cases = [
        (
            "NVRM: Xid (PCI:0000:05:00): 79, pid=1122, GPU has fallen off the bus.",
            xid("0000:05:00", None, 79, None),
        ),
        (
            "NVRM: Xid (PCI:0000:b3:00.0): 79, GPU has fallen off the bus.",
            xid("0000:b3:00", None, 79, None),
        ),
        (
            "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No",
            xid("0000:01:00", Some(5), 94, None),
        ),
        (
            "NVRM: Xid (PCI:0000:3B:00 GPU-I:01 GPU-CI:02): 13, pid=9, name=a, Graphics Exception",
            xid("0000:3b:00", Some(1), 13, None),
        ),
        (
            "NVRM: Xid (PCI:0001:3b:00): 8",
            xid("0001:3b:00", None, 8, None),
        ),
        (
            "NVRM: Xid (PCI:0000:cc:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x1 0x2)",
            xid("0000:cc:00", None, 149, Some(true)),
        ),
        (
            "NVRM: Xid (PCI:0000:cc:00): 145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 08",
            xid("0000:cc:00", None, 145, Some(false)),
        ),
        // How bad it is is said of units of NVLink alone.
        (
            "NVRM: Xid (PCI:0000:cc:00): 94, RLW Fatal XC0",
            xid("0000:cc:00", None, 94, None),
        ),
    ];
    for (line, wanted) in cases {
        assert_eq!(read(line), wanted, "{line}");
    }
    let fell = |slot: &str| {
        Some(Line::FellOff {
            slot: Text::cut(slot),
        })
    };
    assert_eq!(
        read("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus."),
        fell("0000:18:00")
    );
    assert_eq!(
        read("NVRM: GPU at 0000:01:00.0 has fallen off the bus."),
        fell("0000:01:00")
    );
    assert_eq!(
        read("NVRM: GPU 0000:18:00.0: GPU serial number is 1653723052734."),
        None
    );
    assert_eq!(
        read(
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
        ),
        Some(Line::Switch {
            sxid: 12028,
            fatal: false
        })
    );
    assert_eq!(
        read("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up"),
        Some(Line::Switch {
            sxid: 20034,
            fatal: true
        })
    );
}

#[test]
fn a_name_that_a_renter_chose_is_never_read() {
    // The name holds a whole line of another GPU, a severity, and the words of a lost GPU.
    for name in [
        "NVRM: Xid (PCI:0000:18:00): 79, pid=1",
        "\nNVRM: Xid (PCI:0000:18:00): 79, pid=1",
        "): 79, GPU has fallen off the bus.",
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus",
        "RLW_SRC_TRACK Fatal XC0",
        "a, NETIR Fatal ",
    ] {
        for number in [31, 149] {
            let line = format!("NVRM: Xid (PCI:0000:05:00): {number}, pid=1, name={name}, Ch 1");
            assert_eq!(read(&line), xid("0000:05:00", None, number, None), "{line}");
        }
    }
    // What does not begin with the driver's words is no line of the driver's.
    for line in [
        "python3: NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.",
        " NVRM: Xid (PCI:0000:05:00): 79",
        "NVRM: Xid (PCI:0000:05:00): 79x",
        "NVRM: Xid (PCI:0000:05:00): 79 pid=1",
        "NVRM: Xid (PCI:0000:05:00):79",
        "NVRM: Xid (PCI:0000:05:00 GPU-I:): 79",
        "NVRM: Xid (PCI:0000:05:00): 7900000000000",
        "NVRM: Xid (PCI:000:05:00): 79",
        "NVRM: Xid (PCI:0000:05:00): ",
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus, said somebody",
    ] {
        assert_eq!(read(line), None, "{line}");
    }
}

#[test]
fn only_the_kernels_records_count() {
    let message = "NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.";
    assert_eq!(
        kernel_message(&format!("3,1234,5678,-;{message}")),
        Some(message)
    );
    // Facility 1: a program wrote it.
    assert_eq!(kernel_message(&format!("11,1234,5678,-;{message}")), None);
    assert_eq!(kernel_message(" SUBSYSTEM=pci"), None);
    assert_eq!(kernel_message(message), None);
}

#[test]
fn addresses_of_all_lengths_are_one_slot() {
    for address in ["00000000:5D:00.0", "0000:5d:00.0", "0000:5d:00"] {
        assert_eq!(slot(address).as_deref(), Some("0000:5d:00"));
    }
    assert_eq!(slot("00010000:5d:00.0").as_deref(), Some("10000:5d:00"));
    assert_eq!(slot("0000:5d:00.0.1"), None);
    assert_eq!(slot(""), None);
}

proptest! {
    #[test]
    fn no_line_makes_it_panic(line in "\\PC*", tail in ".*") {
        let _ = kernel_message(&line);
        let _ = slot(&line);
        for head in ["", "NVRM: Xid (PCI:", "NVRM: Xid (PCI:0000:05:00", "NVRM: Xid (PCI:0000:05:00): 149, ", "NVRM: GPU ", "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): "] {
            let _ = read(&format!("{head}{line}{tail}"));
        }
    }

    #[test]
    fn whatever_follows_the_number_changes_nothing(tail in ".*", number in 0_u32..144) {
        let line = format!("NVRM: Xid (PCI:0000:05:00): {number},{tail}");
        prop_assert_eq!(read(&line), xid("0000:05:00", None, number, None));
    }
}
