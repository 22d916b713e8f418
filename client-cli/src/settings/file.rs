//! The user's `config.toml`: its keys, its errors with line and key, and how `init` writes it.

use crate::failure::{Code, Failure, file_failed};
use crate::files::{place_in, unread};
use protocol::net::named_file::{NamedFileError, read_file};
use protocol::units::{AmountError, MicroUsd};
use serde::{Deserialize, Deserializer};
use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of the file: a thousand times what anybody writes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What the file says. Unknown keys are errors, so that a misspelt limit is not a limit that is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConfigFile {
    /// Addresses of brokers.
    pub brokers: Vec<String>,
    /// The key file, if it is elsewhere.
    pub key: Option<PathBuf>,
    /// Limits on spending.
    pub limits: Limits,
}

/// Limits on spending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// What one lease may cost when the command line does not say.
    #[serde(deserialize_with = "amount")]
    pub budget_usd: Option<MicroUsd>,
}

/// Dollars as a whole number or a text; a float would be a rounded amount of money.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "an amount is a text like \"12.50\" or a whole number of dollars"
)]
enum Typed {
    Text(String),
    Dollars(u32),
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MicroUsd>, D::Error> {
    let parsed: Result<MicroUsd, AmountError> = match Typed::deserialize(deserializer)? {
        Typed::Text(text) => text.parse(),
        Typed::Dollars(dollars) => dollars.to_string().parse(),
    };
    parsed.map(Some).map_err(serde::de::Error::custom)
}

impl ConfigFile {
    /// Reads the file; one that is not there says nothing.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        match read_file(path, FILE_BYTES_MAX) {
            Ok(text) => Self::parse(&text, path),
            Err(NamedFileError::Missing) => Ok(Self::default()),
            Err(error) => Err(unread(path, &error, (Code::BadConfig, "settings"))),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| place_in(text, span.start));
            let place = place.unwrap_or_default();
            let what = format!("{}{place}: {}", path.display(), error.message());
            Failure::new(Code::BadConfig, what)
                .help("known keys: brokers, key, limits.budget_usd")
                .help(format!("mend it in an editor: {}", path.display()))
        })
    }

    /// Writes the file: a new one beside it first, then in its place.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|error| file_failed("create", folder, &error))?;
        let new = path.with_extension("toml.new");
        fs::write(&new, self.text()).map_err(|error| file_failed("write", &new, &error))?;
        fs::rename(&new, path).map_err(|error| file_failed("replace", path, &error))
    }

    fn text(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let mut text = String::from("# Written by feira init; safe to edit.\nbrokers = [\n");
        for broker in &self.brokers {
            text.push_str(&format!("  {},\n", quoted(broker)));
        }
        text.push_str("]\n");
        if let Some(key) = &self.key {
            text.push_str(&format!("key = {}\n", quoted(&key.to_string_lossy())));
        }
        if let Some(budget) = self.limits.budget_usd {
            text.push_str("\n[limits]\n# What one lease may cost when --budget is not given.\n");
            text.push_str(&format!("budget_usd = \"{}\"\n", budget.decimal()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let failure = ConfigFile::parse(text, Path::new("config.toml")).unwrap_err();
        assert_eq!(failure.code(), Code::BadConfig);
        failure.what().to_owned()
    }

    #[test]
    fn errors_name_the_line_and_the_key() {
        let unknown = wrong("brokers = []\n[limits]\nbudget = \"3\"\n");
        assert!(
            unknown.contains("line 3") && unknown.contains("budget"),
            "{unknown}"
        );
        let kind = wrong("\n\nbrokers = 5\n");
        assert!(kind.contains("line 3 (brokers = 5)"), "{kind}");
        let syntax = wrong("brokers = [\n");
        assert!(syntax.starts_with("config.toml, line"), "{syntax}");
    }

    #[test]
    fn money_is_never_a_float() {
        let float = wrong("[limits]\nbudget_usd = 12.5\n");
        assert!(
            float.contains("line 2") && float.contains("12.50"),
            "{float}"
        );
        for text in [
            "budget_usd = 12",
            "budget_usd = \"12.00\"",
            "budget_usd = \"$12\"",
        ] {
            let file = ConfigFile::parse(&format!("[limits]\n{text}\n"), Path::new("c")).unwrap();
            assert_eq!(file.limits.budget_usd, Some(MicroUsd(12_000_000)), "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("config.toml");
        let file = ConfigFile {
            brokers: vec!["/ip4/127.0.0.1/tcp/1".into()],
            key: Some("/tmp/a \"quoted\" key".into()),
            limits: Limits {
                budget_usd: Some(MicroUsd(5_000_001)),
            },
        };
        file.write(&path).unwrap();
        assert_eq!(ConfigFile::read(&path).unwrap(), file);
        assert_eq!(
            ConfigFile::read(&folder.path().join("none")).unwrap(),
            ConfigFile::default()
        );
    }
}
