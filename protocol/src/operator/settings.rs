//! How a settings file is read, and how a mistake in it is named: by file, line and field.
//!
//! Must not know which fields there are.

use crate::net::named_file::{NamedFileError, read_file};
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};

/// Most bytes of a settings file: a thousand times what anybody writes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// There is no file.
    #[error("there is no {path}")]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("could not read {path}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{path}, line {line}, field `{field}`: {problem}")]
    Wrong {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Which field, or what stands in its place.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl SettingsError {
    /// What the file at `path` holds.
    ///
    /// # Errors
    /// When it is not there or cannot be read.
    pub fn read(path: &Path) -> Result<String, Self> {
        read_file(path, FILE_BYTES_MAX).map_err(|error| {
            let path = path.to_owned();
            match error {
                NamedFileError::Missing => Self::Missing { path },
                NamedFileError::Io(source) => Self::Read { path, source },
                NamedFileError::Special(_)
                | NamedFileError::TooLarge { .. }
                | NamedFileError::NotText => {
                    let source = io::Error::other(error);
                    Self::Read { path, source }
                }
            }
        })
    }

    /// `text`, which is what the file at `path` holds, as fields.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn fields<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Self> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let written = text.lines().nth(line - 1).unwrap_or_default();
            let field = written.split('=').next().unwrap_or_default();
            Self::Wrong {
                path: path.to_owned(),
                line,
                field: field.trim().to_owned(),
                problem: error.message().to_owned(),
            }
        })
    }

    /// A value that has the right type and cannot be used. Field names are unique over all sections.
    #[must_use]
    pub fn wrong_value(path: &Path, text: &str, field: &str, problem: String) -> Self {
        let sets = |line: &str| {
            let rest = line.trim_start().strip_prefix(field);
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let line = text.lines().position(sets).map_or(1, |index| index + 1);
        Self::Wrong {
            path: path.to_owned(),
            line,
            field: field.to_owned(),
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fields {
        #[expect(dead_code, reason = "only whether it is read is looked at")]
        size: u8,
    }

    #[track_caller]
    fn mistake(text: &str) -> String {
        let read = SettingsError::fields::<Fields>(Path::new("x.toml"), text);
        read.unwrap_err().to_string()
    }

    #[test]
    fn settings_are_a_small_file_of_text() {
        let folder = tempfile::tempdir().unwrap();
        let error = SettingsError::read(folder.path()).unwrap_err();
        let said = crate::operator::chain(&error);
        assert!(said.ends_with(": it is a folder, not a file"), "{said}");
        let error = SettingsError::read(Path::new("/dev/zero")).unwrap_err();
        let said = crate::operator::chain(&error);
        assert_eq!(said, "could not read /dev/zero: it is a device, not a file");
        let none = SettingsError::read(&folder.path().join("none"));
        assert!(matches!(none, Err(SettingsError::Missing { .. })));
    }

    #[test]
    fn a_mistake_is_named_by_line_and_field() {
        let unknown = mistake("size = 1\nsizes = 2\n");
        assert!(
            unknown.starts_with("x.toml, line 2, field `sizes`: unknown field"),
            "{unknown}"
        );
        let kind = mistake("\nsize = \"one\"\n");
        assert!(kind.starts_with("x.toml, line 2, field `size`: "), "{kind}");
    }

    #[test]
    fn a_value_that_cannot_be_used_is_named_where_it_is_set() {
        let text = "# size = 1\n[part]\n  size = 0\n";
        let wrong =
            SettingsError::wrong_value(Path::new("x.toml"), text, "size", "too small".to_owned());
        assert_eq!(wrong.to_string(), "x.toml, line 3, field `size`: too small");
        let absent =
            SettingsError::wrong_value(Path::new("x.toml"), "", "size", "not set".to_owned());
        assert_eq!(absent.to_string(), "x.toml, line 1, field `size`: not set");
    }
}
