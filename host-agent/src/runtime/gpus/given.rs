//! What a container was given of GPUs, in one line that is its label: the way, the devices, and the nodes that must be
//! in it. Another line means another container.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// How GPUs come into a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// By name from the engine's own list of devices (CDI).
    Cdi,
    /// By the engine's request to NVIDIA's runtime.
    Request,
    /// By our own list of device nodes and read-only libraries.
    Nodes,
}

impl Way {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cdi => "cdi",
            Self::Request => "request",
            Self::Nodes => "nodes",
        }
    }

    /// In words for an owner.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Cdi => "by name through the engine's device list (CDI)",
            Self::Request => "by the engine's request to NVIDIA's runtime",
            Self::Nodes => "by device node, with the driver's libraries mounted read-only",
        }
    }
}

/// The nodes of single GPUs and slices that must be in a container: these and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// By their names below `/dev`.
    Nodes(BTreeSet<String>),
    /// So many nodes of NVIDIA GPUs: on a machine whose kernel does not show which is which.
    Count(usize),
}

/// What a container was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// How.
    pub way: Way,
    /// Which devices, by the driver's names.
    pub devices: Vec<String>,
    /// What must be seen of them inside.
    pub expected: Expected,
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.way.word(), self.devices.join(","))?;
        match &self.expected {
            Expected::Count(count) => write!(f, "{count}"),
            Expected::Nodes(nodes) => {
                let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
                write!(f, "/dev/{}", nodes.join(",/dev/"))
            }
        }
    }
}

/// A label that this program did not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it does not say which GPUs the container was given")]
pub struct NotGiven;

impl FromStr for Given {
    type Err = NotGiven;

    fn from_str(text: &str) -> Result<Self, NotGiven> {
        let mut words = text.split(' ');
        let (Some(way), Some(devices), Some(expected), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(NotGiven);
        };
        let ways = [Way::Cdi, Way::Request, Way::Nodes];
        let way = ways.into_iter().find(|it| it.word() == way);
        let expected = match expected.parse() {
            Ok(count) => Expected::Count(count),
            Err(_) => {
                let nodes = expected.split(',').map(|node| node.strip_prefix("/dev/"));
                let nodes = nodes.map(|node| node.map(str::to_owned));
                Expected::Nodes(nodes.collect::<Option<_>>().ok_or(NotGiven)?)
            }
        };
        Ok(Self {
            way: way.ok_or(NotGiven)?,
            devices: devices.split(',').map(str::to_owned).collect(),
            expected,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_what_was_given() {
        let nodes = ["nvidia0", "nvidia-caps/nvidia-cap30"].map(str::to_owned);
        let given = Given {
            way: Way::Cdi,
            devices: vec!["MIG-1".to_owned()],
            expected: Expected::Nodes(BTreeSet::from(nodes)),
        };
        let text = "cdi MIG-1 /dev/nvidia-caps/nvidia-cap30,/dev/nvidia0";
        assert_eq!(given.to_string(), text);
        assert_eq!(text.parse(), Ok(given.clone()));
        let counted = Given {
            expected: Expected::Count(2),
            ..given
        };
        assert_eq!(counted.to_string(), "cdi MIG-1 2");
        assert_eq!("cdi MIG-1 2".parse(), Ok(counted));
        for wrong in [
            "",
            "cdi",
            "cdi a",
            "other a 1",
            "cdi a nvidia0",
            "cdi a 1 b",
        ] {
            assert_eq!(wrong.parse::<Given>(), Err(NotGiven), "{wrong}");
        }
    }
}
