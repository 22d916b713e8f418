//! That the file is bounded, leaves nothing, and is refused with the reason where it cannot be.

use super::*;
use crate::control::Unwatched;
use crate::control::tests::After;
use std::path::PathBuf;

const SMALL_FILE: Settings = Settings {
    file: 8 * 1024 * 1024,
    reserve: 0,
    length: Duration::from_millis(100),
};

/// A folder on a file system with direct access: `/tmp` may be memory.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn bytes_are_counted_in_whole_blocks_and_nothing_is_left() {
    let folder = folder();
    let rates = rates(folder.path(), SMALL_FILE, &Unwatched).unwrap();
    for rate in [rates.write, rates.read] {
        assert!(rate.count > 0 && rate.count % 1_048_576 == 0, "{rate:?}");
        assert!(rate.elapsed >= Duration::from_millis(100), "{rate:?}");
    }
    assert!(rates.random.count > 0, "{:?}", rates.random);
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_is_written_is_what_is_read() {
    let folder = folder();
    let scratch = Scratch::make(folder.path(), 2 * 1024 * 1024, 0).unwrap();
    let mut block = Aligned::new(BLOCK);
    Pattern::new(9).fill(block.bytes());
    scratch.write(block.bytes(), 1024 * 1024).unwrap();
    let mut back = Aligned::new(BLOCK);
    scratch.read(back.bytes(), 1024 * 1024).unwrap();
    assert!(block.bytes() == back.bytes());
    assert_eq!(block.bytes().as_ptr().align_offset(4096), 0);
}

#[test]
fn no_space_is_refused_with_the_numbers_and_before_anything_is_written() {
    let folder = folder();
    let settings = Settings {
        file: 1 << 60,
        reserve: 5,
        ..SMALL_FILE
    };
    let refused = rates(folder.path(), settings, &Unwatched).unwrap_err();
    let MeasureError::NoSpace {
        needed, reserve, ..
    } = refused
    else {
        panic!("{refused}")
    };
    assert_eq!((needed, reserve), (1 << 60, 5));
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_file_system_that_may_not_be_written_in_is_refused_by_name() {
    // Nobody, not even root, makes files there.
    let refused = rates(Path::new("/proc"), SMALL_FILE, &Unwatched).unwrap_err();
    assert!(
        matches!(
            refused,
            MeasureError::NoSpace { .. } | MeasureError::Denied { .. }
        ),
        "{refused}"
    );
    let refused = Scratch::make(Path::new("/sys/kernel"), 0, 0).unwrap_err();
    assert_eq!(refused.to_string(), "may not write in /sys/kernel");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_that_names_it() {
    let refused = rates(Path::new("/no/such/folder"), SMALL_FILE, &Unwatched).unwrap_err();
    assert!(refused.to_string().contains("/no/such/folder"), "{refused}");
}

#[test]
fn it_stops_and_leaves_nothing() {
    let folder = folder();
    let control = After::looks(4);
    let stopped = rates(folder.path(), SMALL_FILE, &control).unwrap_err();
    assert!(matches!(stopped, MeasureError::Cancelled));
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
}
