//! `[offer]` of `host.toml`: each key is a flag of `list` with `_` for `-`, and is read as the flag is.

use super::Wishes;
use clap::Parser;
use clap::error::ErrorKind;
use std::error::Error;

/// One flag, read by itself, so that a mistake is named by its key.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Key {
    #[command(flatten)]
    wishes: Wishes,
}

impl Wishes {
    /// What the table says.
    ///
    /// # Errors
    /// The first key that is none or has a value that cannot be used, and what is wrong.
    pub fn of_table(table: &toml::Table) -> Result<Self, (String, String)> {
        let mut wishes = Self::default();
        for (key, value) in table {
            let read = of_key(key, value).map_err(|problem| (key.clone(), problem))?;
            wishes = wishes.or(read);
        }
        Ok(wishes)
    }
}

fn of_key(key: &str, value: &toml::Value) -> Result<Wishes, String> {
    let unknown =
        || "unknown field: `feira-host list --help` names those that there are".to_owned();
    if key.contains('-') {
        return Err(unknown());
    }
    let flag = format!("--{}", key.replace('_', "-"));
    let text = match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Datetime(moment) => moment.to_string(),
        toml::Value::Boolean(false) if key == "free" => return Ok(Wishes::default()),
        toml::Value::Boolean(true) if key == "free" => String::new(),
        toml::Value::Boolean(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
            return Err("a number or a text in quotes is wanted".to_owned());
        }
    };
    let words = if key == "free" {
        vec![flag]
    } else {
        vec![format!("{flag}={text}")]
    };
    match Key::try_parse_from(words) {
        Ok(read) => Ok(read.wishes),
        Err(error) if error.kind() == ErrorKind::UnknownArgument => Err(unknown()),
        Err(error) => Err(problem(&error)),
    }
}

/// What is wrong with the value, without the flag and its use.
fn problem(error: &clap::Error) -> String {
    if let Some(source) = error.source() {
        return source.to_string();
    }
    let said = error.to_string();
    let first = said.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wishes::{ChunksWord, GpuChoice, Limit, Network};
    use protocol::units::{BasisPoints, PricePerHour, Seconds, Timestamp};

    fn read(text: &str) -> Result<Wishes, (String, String)> {
        Wishes::of_table(&text.parse().unwrap())
    }

    #[test]
    fn keys_are_the_flags() {
        let wishes = read(
            "price = 0.35\nfloor = \"0.1\"\nmax_discount = 40\nchunks = \"powers-of-two\"\nmin_gpus = 2\n\
             until = 2027-01-01\nnotice = 60\nmax_duration = \"none\"\ngpus = \"0,1\"\nnetwork = \"bridge\"",
        )
        .unwrap();
        let gpus = ["0", "1"].map(str::to_owned).to_vec();
        let wanted = Wishes {
            price: Some(PricePerHour(350_000)),
            floor: Some(Limit::At(PricePerHour(100_000))),
            max_discount: Some(Limit::At(BasisPoints(4000))),
            chunks: Some(ChunksWord::PowersOfTwo),
            min_gpus: Some(2),
            until: Some(Limit::At(Timestamp(1_798_761_600_000))),
            notice: Some(Seconds(60)),
            max_duration: Some(Limit::None),
            gpus: Some(GpuChoice::Some(gpus)),
            network: Some(Network::Bridge),
            ..Wishes::default()
        };
        assert_eq!(wishes, wanted);
        let given_away = read("price = 0\nfree = true").unwrap();
        assert!(given_away.free && given_away.price == Some(PricePerHour(0)));
        assert!(!read("free = false").unwrap().free);
    }

    #[test]
    fn a_mistake_is_named_by_its_key() {
        for (text, key, words) in [
            ("prise = 1", "prise", "unknown field"),
            ("help = \"x\"", "help", "unknown field"),
            ("min-gpus = 1", "min-gpus", "unknown field"),
            ("price = -1", "price", "nothing or more"),
            ("price = nan", "price", "not an amount"),
            ("price = inf", "price", "not an amount"),
            ("price = true", "price", "a number or a text"),
            ("price = [1]", "price", "a number or a text"),
            ("notice = 20", "notice", "30 to 600"),
            ("min_gpus = 0", "min_gpus", "0 is not in 1..=16"),
            ("chunks = \"halves\"", "chunks", "invalid value 'halves'"),
            ("max_discount = 95", "max_discount", "more than 90 %"),
        ] {
            let (named, problem) = read(text).unwrap_err();
            assert_eq!(named, key);
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    #[test]
    fn what_is_typed_comes_before_what_the_file_says() {
        let typed = Wishes {
            price: Some(PricePerHour(1)),
            floor: Some(Limit::None),
            ..Wishes::default()
        };
        let file = read("price = 0\nfree = true\nfloor = 0.1\nnotice = 30").unwrap();
        let both = typed.or(file);
        assert_eq!(both.price, Some(PricePerHour(1)));
        assert_eq!((both.floor, both.free), (Some(Limit::None), false));
        assert_eq!(both.notice, Some(Seconds(30)));
    }
}
