//! The key file: what its modes must be, what it is refused for, and that OpenSSH can read it.
#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use protocol::net::identity::Protected;
use protocol::net::{Identity, IdentityError, peer_id_of, public_key_of};

fn home() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("keys").join("identity.key");
    (root, path)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_new_key_is_closed_to_others_and_reads_back_the_same() {
    let (_root, path) = home();
    let made = Identity::create(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let read = Identity::load(&path).unwrap();
    assert_eq!(read.public(), made.public());
    assert_eq!(read.signing_key().to_bytes(), made.signing_key().to_bytes());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n"));
}

#[test]
fn two_keys_are_not_alike() {
    let (_root, path) = home();
    let one = Identity::create(&path).unwrap();
    let other = Identity::create(&path.with_file_name("other.key")).unwrap();
    assert_ne!(one.public(), other.public());
}

#[test]
fn a_key_is_never_overwritten() {
    let (_root, path) = home();
    Identity::create(&path).unwrap();
    let before = fs::read(&path).unwrap();
    let error = Identity::create(&path).unwrap_err();
    assert!(matches!(error, IdentityError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);

    // Not even through a link that leads nowhere.
    let dangling = path.with_file_name("dangling");
    symlink("/nonexistent/key", &dangling).unwrap();
    let error = Identity::create(&dangling).unwrap_err();
    assert!(matches!(error, IdentityError::Exists { .. }), "{error}");
}

#[test]
fn a_wider_file_or_folder_is_refused_with_the_command_that_mends_it() {
    let (_root, path) = home();
    Identity::create(&path).unwrap();
    let folder = path.parent().unwrap();
    for wide in [0o640, 0o604, 0o660, 0o601] {
        chmod(&path, wide);
        let error = Identity::load(&path).unwrap_err();
        let IdentityError::TooWide { what, found, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((*what, *found), (Protected::File, wide));
        let told = error.to_string();
        assert!(told.contains(&format!("{wide:04o}")), "{told}");
        assert!(
            told.ends_with(&format!("run: chmod 0600 {}", path.display())),
            "{told}"
        );
    }
    chmod(&path, 0o600);
    chmod(folder, 0o750);
    let error = Identity::load(&path).unwrap_err().to_string();
    assert!(
        error.ends_with(&format!("run: chmod 0700 {}", folder.display())),
        "{error}"
    );
    let error = Identity::create(&path.with_file_name("new.key")).unwrap_err();
    assert!(matches!(error, IdentityError::TooWide { .. }), "{error}");
    assert!(!path.with_file_name("new.key").exists());

    chmod(folder, 0o700);
    chmod(&path, 0o400);
    Identity::load(&path).unwrap();
}

#[test]
fn what_is_no_key_is_said_to_be_none() {
    let (_root, path) = home();
    let error = Identity::load(&path).unwrap_err();
    assert!(matches!(error, IdentityError::Missing { .. }), "{error}");

    Identity::create(&path).unwrap();
    let good = fs::read_to_string(&path).unwrap();
    for bad in ["", "hello", &good[..good.len() / 2], &good.to_lowercase()] {
        fs::write(&path, bad).unwrap();
        let error = Identity::load(&path).unwrap_err();
        assert!(matches!(error, IdentityError::NotAKey { .. }), "{error}");
    }
    fs::write(&path, "x".repeat(1 << 20)).unwrap();
    let error = Identity::load(&path).unwrap_err();
    assert!(matches!(error, IdentityError::NotAKey { .. }), "{error}");
}

#[test]
fn openssh_reads_our_key_and_we_read_its_keys() {
    let (root, path) = home();
    let ours = Identity::create(&path).unwrap();
    let Ok(output) = std::process::Command::new("ssh-keygen")
        .args(["-y", "-f"])
        .arg(&path)
        .output()
    else {
        return; // No OpenSSH on this machine.
    };
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .starts_with("ssh-ed25519 ")
    );

    let make = |name: &str, kind: &str, passphrase: &str| {
        let path = path.with_file_name(name);
        let done = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-N", passphrase, "-f"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(done.success());
        path
    };
    let theirs = Identity::load(&make("plain", "ed25519", "")).unwrap();
    assert_ne!(theirs.public(), ours.public());
    let error = Identity::load(&make("locked", "ed25519", "secret")).unwrap_err();
    assert!(matches!(error, IdentityError::Encrypted { .. }), "{error}");
    let error = Identity::load(&make("other", "ecdsa", "")).unwrap_err();
    assert!(
        matches!(
            error,
            IdentityError::WrongKind { .. } | IdentityError::NotAKey { .. }
        ),
        "{error}"
    );
    drop(root);
}

#[test]
fn a_peer_id_holds_the_key() {
    let (_root, path) = home();
    let identity = Identity::create(&path).unwrap();
    let peer = identity.peer_id();
    assert_eq!(peer, peer_id_of(&identity.public()));
    assert_eq!(peer, identity.keypair().public().to_peer_id());
    assert!(peer.to_string().starts_with("12D3KooW"));
    assert_eq!(public_key_of(&peer), Ok(identity.public()));
    assert!(public_key_of(&libp2p::PeerId::random()).is_err());
}

#[test]
fn the_secret_is_not_printed() {
    let (_root, path) = home();
    let identity = Identity::create(&path).unwrap();
    let printed = format!("{identity:?}");
    let secret = identity.signing_key().to_bytes();
    assert!(
        !printed.contains(&format!("{:?}", &secret[..4])[1..10]),
        "{printed}"
    );
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(!printed.contains(&hex));
}

#[test]
fn whoever_has_a_key_leaves_no_core_dump() {
    let (_root, path) = home();
    Identity::create(&path).unwrap();
    Identity::load(&path).unwrap();
    let limits = rustix::process::getrlimit(rustix::process::Resource::Core);
    assert_eq!((limits.current, limits.maximum), (Some(0), Some(0)));
    assert_eq!(
        rustix::process::dumpable_behavior().unwrap(),
        rustix::process::DumpableBehavior::NotDumpable
    );
}
