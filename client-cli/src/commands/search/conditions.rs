//! The conditions of `search` and `rent`: flags and expression, each with the words it was typed in.
//!
//! Must not ask anybody anything: what was typed becomes a filter here, or a failure that says where.

use crate::amounts::{in_gigabytes, parse_gigabytes, parse_percent, parse_price, shortened};
use crate::failure::{Code, Failure};
use protocol::filter::{Comparison, Field, Filter, ParseError, ParseProblem, Term, ValueProblem};
use protocol::units::{Bytes, PricePerHour};

/// Disk of a lease for which none is asked, in GB.
pub(crate) const DISK_GB_DEFAULT: u64 = 10;

/// What an offer must have; all that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct FilterArgs {
    /// Conditions like 'gpu_name=RTX_4090 num_gpus>=2 dph<0.5' (fields: feira help fields)
    #[arg(value_name = "EXPRESSION")]
    pub expression: Vec<String>,
    /// Model of the GPU, like rtx4090 or h100; several with commas between; none for a CPU machine
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub gpu: Vec<String>,
    /// Number of GPUs of the lease
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub gpus: Option<u16>,
    /// Memory of each GPU at least, in GB as sold
    #[arg(long, value_name = "GB")]
    pub min_vram: Option<String>,
    /// CPUs at least
    #[arg(long, value_name = "N")]
    pub min_cpus: Option<String>,
    /// System memory at least, in GB
    #[arg(long, value_name = "GB")]
    pub min_ram: Option<String>,
    /// CUDA version that the driver supports at least
    #[arg(long, value_name = "VERSION")]
    pub min_cuda: Option<String>,
    /// Probability at least that a lease of a day is carried through, in percent, like 99
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub reliability: Option<String>,
    /// All-in price of an hour at most, in dollars
    #[arg(long, value_name = "USD/H", value_parser = parse_price, allow_negative_numbers = true)]
    pub max_price: Option<PricePerHour>,
    /// Disk to rent, in GB [default: 10]
    #[arg(long, value_name = "GB", value_parser = parse_gigabytes, allow_negative_numbers = true)]
    pub disk: Option<Bytes>,
    /// Offers of this host only
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
}

/// One condition and the words that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub label: String,
    pub term: Term,
}

impl FilterArgs {
    /// The disk to price with, and to rent.
    pub(crate) fn disk(&self) -> Bytes {
        self.disk.unwrap_or(Bytes::from_gb(DISK_GB_DEFAULT))
    }

    /// The same without a ceiling.
    pub(crate) fn without_ceiling(&self) -> Self {
        Self {
            max_price: None,
            ..self.clone()
        }
    }

    /// Whether nothing is asked.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All conditions as one filter; the disk is among them, since an offer with less could not be rented.
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        let terms = self
            .conditions()?
            .into_iter()
            .map(|condition| condition.term)
            .collect();
        Filter::of(terms).map_err(|problem| Failure::new(Code::BadExpression, problem.to_string()))
    }

    /// The words that are read as these conditions.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = self.expression.clone();
        let mut flag = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        flag("--gpu", (!self.gpu.is_empty()).then(|| self.gpu.join(",")));
        flag("--gpus", self.gpus.map(|number| number.to_string()));
        flag("--min-vram", self.min_vram.clone());
        flag("--min-cpus", self.min_cpus.clone());
        flag("--min-ram", self.min_ram.clone());
        flag("--min-cuda", self.min_cuda.clone());
        let price = self.max_price.map(|price| price.amount().decimal());
        flag("--max-price", price.map(|price| shortened(&price)));
        flag("--disk", self.disk.map(in_gigabytes));
        flag("--reliability", self.reliability.clone());
        flag("--host", self.host.clone());
        words
    }

    /// Every condition in the order of the flags, then the expression, then the disk.
    pub(super) fn conditions(&self) -> Result<Vec<Condition>, Failure> {
        let mut conditions = Vec::new();
        if !self.gpu.is_empty() {
            let names: Vec<&str> = self.gpu.iter().map(String::as_str).collect();
            let label = format!("--gpu {}", names.join(","));
            let term = match names.as_slice() {
                [one] => Term::compare(Field::GpuName, Comparison::Equal, one),
                several => Term::one_of(Field::GpuName, several),
            };
            conditions.push(condition(label, term)?);
        }
        let gpus = self.gpus.map(|number| number.to_string());
        let price = self.max_price.map(|price| price.amount().decimal());
        let flags = [
            ("--gpus", Field::NumGpus, Comparison::Equal, &gpus),
            (
                "--min-vram",
                Field::GpuRam,
                Comparison::AtLeast,
                &self.min_vram,
            ),
            (
                "--min-cpus",
                Field::CpuCoresEffective,
                Comparison::AtLeast,
                &self.min_cpus,
            ),
            (
                "--min-ram",
                Field::CpuRam,
                Comparison::AtLeast,
                &self.min_ram,
            ),
            (
                "--min-cuda",
                Field::CudaVersion,
                Comparison::AtLeast,
                &self.min_cuda,
            ),
            ("--max-price", Field::DphTotal, Comparison::AtMost, &price),
            ("--host", Field::HostId, Comparison::Equal, &self.host),
        ];
        if let Some(percent) = &self.reliability {
            let least = format!("{percent}%");
            let term = Term::compare(Field::Reliability, Comparison::AtLeast, &least);
            conditions.push(condition(format!("--reliability {percent}"), term)?);
        }
        for (flag, field, comparison, value) in flags {
            if let Some(value) = value {
                let label = format!("{flag} {}", shortened(value));
                conditions.push(condition(label, Term::compare(field, comparison, value))?);
            }
        }
        let expression = self.expression.join(" ");
        let written: Filter = expression
            .parse()
            .map_err(|error| of_parse_error(&error, &expression))?;
        let terms = written.terms.into_vec();
        conditions.extend(terms.into_iter().map(|term| Condition {
            label: term.to_string(),
            term,
        }));
        conditions.push(self.disk_condition()?);
        Ok(conditions)
    }

    fn disk_condition(&self) -> Result<Condition, Failure> {
        let gigabytes = in_gigabytes(self.disk());
        let default = if self.disk.is_none() {
            " (default)"
        } else {
            ""
        };
        let term = Term::compare(Field::DiskSpace, Comparison::AtLeast, &gigabytes);
        condition(format!("--disk {gigabytes}{default}"), term)
    }
}

fn condition(label: String, term: Result<Term, ValueProblem>) -> Result<Condition, Failure> {
    match term {
        Ok(term) => Ok(Condition { label, term }),
        Err(problem) => Err(Failure::new(Code::BadValue, format!("{label}: {problem}"))),
    }
}

/// What is wrong with an expression, with what was meant where that can be guessed.
pub(super) fn of_parse_error(error: &ParseError, written: &str) -> Failure {
    let is_field = matches!(
        error.problem,
        ParseProblem::UnknownField { .. } | ParseProblem::NotKnown { .. }
    );
    let failure = if is_field {
        Failure::new(Code::UnknownField, error.problem.to_string())
    } else {
        let place = format!("{} (at character {} of {written})", error.problem, error.at);
        Failure::new(Code::BadExpression, place)
    };
    let failure = match error.problem.tip() {
        Some(tip) => failure.help(tip),
        None => failure,
    };
    failure.help("all fields: feira help fields")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        filter: FilterArgs,
    }

    fn typed(words: &[&str]) -> FilterArgs {
        Line::try_parse_from(std::iter::once(&"feira").chain(words))
            .unwrap()
            .filter
    }

    // peers 3.1 #12: a disk is asked for as at least so much.
    #[test]
    fn flags_and_expression_become_one_filter() {
        let args = typed(&[
            "--gpu",
            "rtx4090,h100",
            "--gpus",
            "2",
            "--min-vram",
            "24",
            "--max-price",
            "0.40",
            "--disk",
            "60",
            "cuda_vers>=12.4",
            "has_avx=true",
        ]);
        let filter = args.filter().unwrap();
        assert_eq!(
            filter.to_string(),
            "gpu_name in [RTX4090,H100] num_gpus=2 gpu_ram>=24 dph_total<=0.4 cuda_max_good>=12.4 \
             has_avx=true disk_space>=60"
        );
        let labels: Vec<String> = args
            .conditions()
            .unwrap()
            .into_iter()
            .map(|condition| condition.label)
            .collect();
        assert_eq!(
            labels,
            [
                "--gpu rtx4090,h100",
                "--gpus 2",
                "--min-vram 24",
                "--max-price 0.4",
                "cuda_max_good>=12.4",
                "has_avx=true",
                "--disk 60",
            ]
        );
        assert_eq!(args.disk(), Bytes::from_gb(60));
    }

    #[test]
    fn nothing_typed_asks_for_the_default_disk_alone() {
        let args = typed(&[]);
        assert!(args.is_empty());
        assert_eq!(args.filter().unwrap().to_string(), "disk_space>=10");
        assert_eq!(args.conditions().unwrap()[0].label, "--disk 10 (default)");
        assert!(!typed(&["--gpus", "1"]).is_empty());
    }

    #[test]
    fn a_mistyped_field_is_refused_with_the_one_that_was_meant() {
        let failure = typed(&["gpu=h100 dph_totl<10"]).filter().unwrap_err();
        assert_eq!(failure.code(), Code::UnknownField);
        assert_eq!(failure.what(), "unknown field 'dph_totl'");
        assert_eq!(
            failure.help_lines(),
            [
                "a similar field exists: 'dph_total' (here also: dph, price)",
                "all fields: feira help fields",
            ]
        );
        let failure = typed(&["dlperf>99"]).filter().unwrap_err();
        assert_eq!(failure.code(), Code::UnknownField);
        let failure = typed(&["num_gpus>=two"]).filter().unwrap_err();
        assert_eq!(failure.code(), Code::BadExpression);
        assert!(
            failure
                .what()
                .ends_with("(at character 11 of num_gpus>=two)"),
            "{failure:?}"
        );
        let failure = typed(&["--min-vram", "lots"]).filter().unwrap_err();
        assert_eq!(failure.code(), Code::BadValue);
        assert!(
            failure
                .what()
                .starts_with("--min-vram lots: 'lots' is not a value"),
            "{failure:?}"
        );
    }

    #[test]
    fn what_was_typed_can_be_typed_again() {
        let words = [
            "--gpu",
            "rtx4090,h100",
            "--gpus",
            "2",
            "--min-vram",
            "24",
            "--min-cpus",
            "4",
            "--min-ram",
            "16",
            "--min-cuda",
            "12.4",
            "--max-price",
            "0.4",
            "--disk",
            "60",
            "--host",
            "h-7k3f",
            "has_avx=true",
        ];
        let args = typed(&words);
        let again = args.words();
        let again: Vec<&str> = again.iter().map(String::as_str).collect();
        assert_eq!(typed(&again), args);
        assert_eq!(again.first(), Some(&"has_avx=true"));
        assert!(typed(&[]).words().is_empty());
    }
}
