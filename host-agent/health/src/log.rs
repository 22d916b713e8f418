//! Lines of the kernel's log about GPUs. Programs of renters choose a part of what stands there (`name=`), so a line
//! is read from its first character by a fixed grammar, and nothing after the number of the error is ever looked
//! at, but for one word that stands there before anything of a program's could. `amd`: what AMD's driver says.

mod amd;

use crate::input::AmdEvent;
use protocol::bounded::Text;

/// Where on the bus: domain, bus and device, as the kernel writes them, without the function.
pub type Slot = Text<16>;

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// `NVRM: Xid (PCI:0000:05:00 GPU-I:03): 94, …`.
    Xid {
        /// Which GPU.
        slot: Slot,
        /// The GPU instance it happened in, where the driver says.
        instance: Option<u32>,
        /// The number.
        xid: u32,
        /// Of an error of an NVLink unit: whether it is fatal.
        fatal: Option<bool>,
    },
    /// `NVRM: GPU 0000:18:00.0: GPU has fallen off the bus`.
    FellOff {
        /// Which GPU.
        slot: Slot,
    },
    /// `nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, …`.
    Switch {
        /// The number.
        sxid: u32,
        /// Whether it is fatal.
        fatal: bool,
    },
    /// `amdgpu 0000:03:00.0: amdgpu: GPU reset begin!`, and others of AMD's driver.
    Amd {
        /// Which GPU.
        slot: Slot,
        /// What it says.
        event: AmdEvent,
    },
}

/// Numbers of the errors of NVLink units, of which a line says how bad they are.
const UNITS: std::ops::RangeInclusive<u32> = 144..=150;

/// The message of a record of `/dev/kmsg`, if the kernel wrote it: programs may write there too, under another
/// facility. Lines that continue a record begin with a space, and are none.
#[must_use]
pub fn kernel_message(record: &str) -> Option<&str> {
    let (head, message) = record.split_once(';')?;
    let (priority, _) = head.split_once(',')?;
    // The facility is the priority without its three lowest bits; 0 is the kernel's.
    let priority: u32 = priority.parse().ok()?;
    (priority < 8).then_some(message)
}

/// What `message` says of a GPU; nothing for every other line.
#[must_use]
pub fn read(message: &str) -> Option<Line> {
    if let Some(rest) = message.strip_prefix("NVRM: Xid (PCI:") {
        return read_xid(rest);
    }
    if let Some(rest) = message.strip_prefix("NVRM: GPU ") {
        return read_fell_off(rest);
    }
    if let Some(rest) = message.strip_prefix("amdgpu ") {
        let (slot, event) = amd::read(rest)?;
        return Some(Line::Amd { slot, event });
    }
    read_switch(message.strip_prefix("nvidia-nvswitch")?)
}

/// The place on the bus of a PCI address of any length: `00000000:05:00.0`, `0000:05:00.0`, `0000:05:00`.
#[must_use]
pub fn slot(address: &str) -> Option<Slot> {
    let (place, rest) = read_slot(address)?;
    let is_function = |rest: &str| rest.len() == 2 && rest.starts_with('.');
    (rest.is_empty() || is_function(rest)).then_some(place)
}

fn read_xid(rest: &str) -> Option<Line> {
    let (slot, rest) = read_slot(rest)?;
    let rest = rest.strip_prefix(".0").unwrap_or(rest);
    let (instance, rest) = match rest.strip_prefix(" GPU-I:") {
        Some(rest) => {
            let (instance, rest) = read_number(rest)?;
            let rest = match rest.strip_prefix(" GPU-CI:") {
                Some(rest) => read_number(rest)?.1,
                None => rest,
            };
            (Some(instance), rest)
        }
        None => (None, rest),
    };
    let (xid, rest) = read_number(rest.strip_prefix("): ")?)?;
    if !rest.is_empty() && !rest.starts_with(',') {
        return None;
    }
    let fatal = UNITS.contains(&xid).then(|| severity(rest)).flatten();
    Some(Line::Xid {
        slot,
        instance,
        xid,
        fatal,
    })
}

/// `, NETIR_LINK_EVT Fatal …`: the unit and how bad it is, at once behind the number. A line that names a process
/// says `, pid=` there, so that no name can stand in for it.
fn severity(rest: &str) -> Option<bool> {
    let mut words = rest.strip_prefix(", ")?.split(' ');
    let unit = words.next()?;
    let is_unit = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if unit.is_empty() || !unit.chars().all(is_unit) {
        return None;
    }
    match words.next()? {
        "Fatal" => Some(true),
        "Nonfatal" => Some(false),
        _ => None,
    }
}

fn read_fell_off(rest: &str) -> Option<Line> {
    let rest = rest.strip_prefix("at ").unwrap_or(rest);
    let (slot, rest) = read_slot(rest)?;
    let rest = rest.strip_prefix(".0").unwrap_or(rest);
    let rest = rest.strip_prefix(": GPU").unwrap_or(rest);
    matches!(
        rest,
        " has fallen off the bus"
            | " has fallen off the bus."
            | " has fallen off the bus and is not responding to commands."
    )
    .then_some(Line::FellOff { slot })
}

fn read_switch(rest: &str) -> Option<Line> {
    let (_, rest) = read_number(rest)?;
    let (_, rest) = read_slot(rest.strip_prefix(": SXid (PCI:")?)?;
    let rest = rest.strip_prefix(".0").unwrap_or(rest);
    let (sxid, rest) = read_number(rest.strip_prefix("): ")?)?;
    let word = rest.strip_prefix(", ")?.split(',').next()?;
    let fatal = match word {
        "Fatal" => true,
        "Non-fatal" => false,
        _ => return None,
    };
    Some(Line::Switch { sxid, fatal })
}

/// `0000:05:00`, of which the domain may have eight digits.
fn read_slot(text: &str) -> Option<(Slot, &str)> {
    let (domain, rest) = read_hex(text, 4..=8)?;
    let (bus, rest) = read_hex(rest.strip_prefix(':')?, 2..=2)?;
    let (device, rest) = read_hex(rest.strip_prefix(':')?, 2..=2)?;
    let domain = domain.trim_start_matches('0');
    let slot = format!("{domain:0>4}:{bus}:{device}").to_lowercase();
    Some((Text::new(slot).ok()?, rest))
}

fn read_hex(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(text.len());
    digits.contains(&end).then(|| text.split_at(end))
}

/// At most nine digits: more is no number of an error.
fn read_number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    if end > 9 {
        return None;
    }
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests;
