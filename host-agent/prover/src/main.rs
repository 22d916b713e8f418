//! `feira-prover`: proves the hardware it runs on to whoever asks over its standard input.

use prover::backend::Backend;
use prover::pipe;
use std::io::{self, Write};
use std::process::ExitCode;

const USAGE: &str =
    "Proves the hardware it runs on, over standard input and output, to a broker that asks.

Usage: feira-prover [BACKEND [DEVICE]]

BACKEND is auto (the default), cuda, vulkan, software (Vulkan on a program) or processor.
DEVICE is the UUID of one of several of NVIDIA's, like GPU-... or MIG-...
Ends with 0 when all was answered, with 1 when the proof cannot be made, with 2 for wrong usage.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (backend, device) = match arguments.as_slice() {
        ["--help" | "-h"] => return say(USAGE),
        ["--version"] => return say(concat!("feira-prover ", env!("CARGO_PKG_VERSION"), "\n")),
        [] => (Ok(Backend::Automatic), "machine"),
        [backend] => (backend.parse(), "machine"),
        [backend, device] => (backend.parse(), *device),
        _ => return complain("at most a back end and a device can be named", 2),
    };
    let backend: Backend = match backend {
        Ok(backend) => backend,
        Err(wrong) => return complain(&wrong, 2),
    };
    let open = || backend.open(device);
    match pipe::converse(open, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error.to_string(), 1),
    }
}

fn say(text: &str) -> ExitCode {
    // Where standard output is closed there is nobody to tell.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn complain(text: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "feira-prover: {text}");
    ExitCode::from(code)
}
