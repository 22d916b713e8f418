//! The conditions of `search` and `rent`: flags and expression, each with the words it was typed in.
//!
//! Must not ask anybody anything: what was typed becomes a filter here, or a failure that says where.

use crate::amounts::{in_gigabytes, parse_percent, parse_price, parse_room, shortened};
use crate::failure::{Code, Failure};
use protocol::filter::{
    Comparison, Field, Filter, ParseError, ParseProblem, Term, Test, Value, ValueProblem,
};
use protocol::units::{Bytes, PricePerHour};
use protocol::whole::whole;

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
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u16>(0..=u16::MAX.into()))]
    pub gpus: Option<u16>,
    /// A slice of a GPU of this kind, like 3g.40gb; any for slices and GPUs alike [default: whole GPUs]
    #[arg(long, value_name = "PROFILE")]
    pub partition: Option<String>,
    /// Memory of each GPU at least, in GB as sold
    #[arg(long, value_name = "GB", allow_negative_numbers = true)]
    pub min_vram: Option<String>,
    /// CPUs at least
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub min_cpus: Option<String>,
    /// System memory at least, in GB
    #[arg(long, value_name = "GB", allow_negative_numbers = true)]
    pub min_ram: Option<String>,
    /// CUDA version that the driver supports at least
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
    pub min_cuda: Option<String>,
    /// Probability at least that a lease of a day is carried through, in percent, like 99
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, allow_negative_numbers = true)]
    pub reliability: Option<String>,
    /// All-in price of an hour at most, in dollars
    #[arg(long, value_name = "USD/H", value_parser = parse_price, allow_negative_numbers = true)]
    pub max_price: Option<PricePerHour>,
    /// Disk to rent, in GB [default: 10]
    #[arg(long, value_name = "GB", value_parser = parse_room, allow_negative_numbers = true)]
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
        flag("--partition", self.partition.clone());
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
                "--partition",
                Field::Partition,
                Comparison::Equal,
                &self.partition,
            ),
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
        check_alone(&conditions)?;
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

/// A slice is leased alone: a program can use one of them, and no two of one GPU reach each other.
fn check_alone(conditions: &[Condition]) -> Result<(), Failure> {
    let equal = |field: Field| {
        let mut of_it = conditions
            .iter()
            .filter(move |one| one.term.field() == field);
        of_it.find_map(|one| match one.term.test() {
            Test::Compare(Comparison::Equal, value) => Some((one, value)),
            Test::Compare(..) | Test::In(_) | Test::NotIn(_) => None,
        })
    };
    let is_slice = |value: &Value| match value {
        Value::Text(profile) => !matches!(profile.as_str(), "any" | "none"),
        Value::Number(_) | Value::Flag(_) | Value::Version(_) => false,
    };
    match (equal(Field::Partition), equal(Field::NumGpus)) {
        (Some((slice, profile)), Some((gpus, number)))
            if is_slice(profile) && *number != Value::Number(1) =>
        {
            let what = format!(
                "{} and {}: a slice is leased alone, since a program can use one of them",
                slice.label, gpus.label
            );
            Err(Failure::new(Code::BadValue, what)
                .help("rent several leases, or whole GPUs: leave --partition out"))
        }
        _ => Ok(()),
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
mod tests;
