//! The environment as data, so that a test can have one of its own.

use crate::failure::{Code, Failure};
use clap::ValueEnum;
use etcetera::base_strategy::{BaseStrategy, Xdg};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every variable that is read, for `feira help environment`.
pub(crate) const VARIABLES: [(&str, &str); 17] = [
    (
        "FEIRA_BROKER",
        "addresses of brokers, comma between them, instead of the configured ones",
    ),
    ("FEIRA_KEY", "the key file"),
    (
        "FEIRA_OUTPUT",
        "form of answers: table, wide, json, ndjson, tsv, id",
    ),
    ("FEIRA_COLOR", "auto, always, never"),
    ("FEIRA_NO_INPUT", "set: never ask"),
    (
        "FEIRA_LOG",
        "what to log on stderr, like debug or protocol=debug",
    ),
    (
        "FEIRA_CONFIG_DIR",
        "folder of config.toml, instead of the XDG one",
    ),
    (
        "XDG_CONFIG_HOME",
        "…/feira/config.toml is the configuration (default ~/.config)",
    ),
    (
        "XDG_DATA_HOME",
        "…/feira/keys/default is the key (default ~/.local/share)",
    ),
    (
        "XDG_STATE_HOME",
        "…/feira/orders has orders being placed (default ~/.local/state)",
    ),
    (
        "XDG_CACHE_HOME",
        "…/feira has what can be lost (default ~/.cache)",
    ),
    ("NO_COLOR", "set: no colours"),
    (
        "CLICOLOR_FORCE, FORCE_COLOR",
        "set and not 0: colours even into a pipe",
    ),
    (
        "TERM",
        "dumb: no colours; passed on to terminals in containers",
    ),
    ("CI", "set: never ask"),
    ("TZ", "time zone in which times are shown"),
    ("HOME", "where the folders above are by default"),
];

/// The variables that a run of the program sees.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    folders: Option<Folders>,
}

/// Where the program keeps things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// `config.toml`.
    pub config: PathBuf,
    /// Keys.
    pub data: PathBuf,
    /// Orders being placed.
    pub state: PathBuf,
    /// What can be lost.
    pub cache: PathBuf,
}

impl Folders {
    /// All below one folder: for tests, and for several renters on one machine.
    #[must_use]
    pub fn under(folder: &Path) -> Self {
        Self {
            config: folder.join("config"),
            data: folder.join("data"),
            state: folder.join("state"),
            cache: folder.join("cache"),
        }
    }
}

impl Environment {
    /// That of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self {
            variables,
            folders: None,
        }
    }

    /// One of these variables, with these folders.
    #[must_use]
    pub fn of(variables: &[(&str, &str)], folders: Folders) -> Self {
        let owned = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Self {
            variables: owned.collect(),
            folders: Some(folders),
        }
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Whether a variable is set and not empty.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A variable as a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// A variable that is one of several words.
    pub(crate) fn choice<T: ValueEnum>(&self, name: &str) -> Result<Option<T>, Failure> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        if let Ok(choice) = T::from_str(value, true) {
            return Ok(Some(choice));
        }
        let words: Vec<_> = T::value_variants()
            .iter()
            .filter_map(|variant| Some(variant.to_possible_value()?.get_name().to_owned()))
            .collect();
        let what = format!("{name} is '{value}'; it can be {}", words.join(", "));
        Err(Failure::new(Code::BadEnvironment, what))
    }

    /// Whether a stream takes colours when no flag says: off when it is not a terminal, with `NO_COLOR` or
    /// `TERM=dumb`; on when forced.
    pub(crate) fn allows_colour(&self, is_terminal: bool) -> bool {
        let forces = |name| self.get(name).is_some_and(|value| value != "0");
        if self.is_set("NO_COLOR") {
            return false;
        }
        if forces("CLICOLOR_FORCE") || forces("FORCE_COLOR") {
            return true;
        }
        is_terminal && self.get("TERM") != Some("dumb")
    }

    /// Where to keep things.
    pub(crate) fn folders(&self) -> Result<Folders, Failure> {
        let mut folders = match &self.folders {
            Some(folders) => folders.clone(),
            None => xdg_folders()?,
        };
        if let Some(config) = self.path("FEIRA_CONFIG_DIR") {
            folders.config = config;
        }
        Ok(folders)
    }
}

fn xdg_folders() -> Result<Folders, Failure> {
    let base = Xdg::new().map_err(|_| {
        Failure::new(Code::BadEnvironment, "there is no home folder")
            .help("set HOME, or XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME and XDG_CACHE_HOME")
    })?;
    let state = base
        .state_dir()
        .unwrap_or_else(|| base.home_dir().join(".local/state"));
    Ok(Folders {
        config: base.config_dir().join("feira"),
        data: base.data_dir().join("feira"),
        state: state.join("feira"),
        cache: base.cache_dir().join("feira"),
    })
}
