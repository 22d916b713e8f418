//! The text of the CUDA kernels, compiled for the processor. What this does not show is how fast they are, and that
//! the driver's translation of the PTX is right.

use crate::{NONCE, SEED, parameters};
use audit::hash::RowKey;
use audit::processor::Processor;
use audit::prover::Device;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn compile(folder: &Path, architecture: &str) -> PathBuf {
    let program = folder.join(format!("emulated_{architecture}"));
    let compiled = Command::new("g++")
        .args(["-O1", "-std=c++17", "-Wno-unknown-pragmas", "-o"])
        .arg(&program)
        .arg(format!("-DARCH={architecture}"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proof/emulated.cpp"))
        .status()
        .expect("g++ is needed: install Debian's g++");
    assert!(compiled.success());
    program
}

/// The bytes of a tile, its leaves and its root, as the kernels make them.
fn run(program: &Path, arguments: [u32; 3]) -> Vec<u8> {
    let side = usize::try_from(arguments[0]).unwrap();
    let mut input = SEED.0.to_vec();
    for word in RowKey::new(&NONCE, side).words() {
        input.extend(word.to_le_bytes());
    }
    let mut child = Command::new(program)
        .args(arguments.map(|number| number.to_string()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[track_caller]
fn check(architecture: &str) {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), architecture);
    // Below and above what one block of threads makes, in one step of the inner length and in several.
    for (side, inner, tile) in [(16, 64, 0), (128, 192, 2), (256, 256, 1)] {
        let parameters = parameters(side, inner, 3);
        let mut reference = Processor::new();
        reference.fill(&SEED, &parameters).unwrap();
        let mut right = Vec::new();
        for row in 0..side {
            right.extend(reference.row(tile, row).unwrap());
        }
        for leaf in reference.leaves(&NONCE, tile).unwrap() {
            right.extend(leaf.0);
        }
        let roots = reference.pass(&NONCE).unwrap();
        right.extend(roots[usize::try_from(tile).unwrap()].0);
        assert!(run(&program, [side, inner, tile]) == right, "side {side}");
    }
}

#[test]
fn the_kernels_for_ordinary_threads_give_the_bits_of_the_reference() {
    check("70");
}

#[test]
fn the_kernels_for_turing_give_the_bits_of_the_reference() {
    check("75");
}

#[test]
fn the_kernels_for_ampere_and_later_give_the_bits_of_the_reference() {
    check("80");
}
