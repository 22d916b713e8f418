//! One Ed25519 key for each party: its file, its name on the network, and the two forms libraries want it in.
//! The secret leaves this file only as a [`SigningKey`] or a libp2p key pair; it is never printed.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;
use libp2p::PeerId;
use libp2p::identity::Keypair;
use ssh_key::private::{Ed25519Keypair, Ed25519PrivateKey, KeypairData};
use ssh_key::public::Ed25519PublicKey;
use ssh_key::{LineEnding, PrivateKey};
use zeroize::Zeroizing;

use crate::ids::PublicKey;
use crate::net::dumps::leave_no_core_dumps;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// Any bit for group or others.
const OTHERS: u32 = 0o077;
/// An OpenSSH Ed25519 key is about 400 bytes; anything far bigger is not one.
const FILE_SIZE_MAX: u64 = 16 * 1024;
const FILE_SIZE_ROOM: usize = 16 * 1024;

/// What a mode protects, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protected {
    /// The key file.
    File,
    /// The folder it lies in.
    Folder,
}

impl fmt::Display for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "the key file",
            Self::Folder => "the key's folder",
        })
    }
}

/// Why a key was not made or not read.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A key file is already there; it is never overwritten.
    #[error("there is already a key at {path}; it is left as it is")]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// No key file.
    #[error("there is no key at {path}; `init` makes one")]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// Others than the owner may reach it.
    #[error(
        "others may reach {what} {path}: its mode is {found:04o}; run: chmod {allowed:04o} {path}"
    )]
    TooWide {
        /// File or folder.
        what: Protected,
        /// Where.
        path: PathBuf,
        /// The mode it has.
        found: u32,
        /// The widest mode it may have.
        allowed: u32,
    },
    /// It belongs to somebody else.
    #[error(
        "{what} {path} belongs to user {found}, this program runs as user {expected}; run: chown {expected} {path}"
    )]
    WrongOwner {
        /// File or folder.
        what: Protected,
        /// Where.
        path: PathBuf,
        /// The owner's user id.
        found: u32,
        /// This process's user id.
        expected: u32,
    },
    /// The file is protected by a passphrase, which a program without a terminal cannot ask for.
    #[error(
        "the key at {path} is protected by a passphrase; take it off with: ssh-keygen -p -f {path}"
    )]
    Encrypted {
        /// Where.
        path: PathBuf,
    },
    /// The file holds another kind of key.
    #[error("the key at {path} is of kind {found}; only Ed25519 keys are used")]
    WrongKind {
        /// Where.
        path: PathBuf,
        /// What kind it is.
        found: String,
    },
    /// The file does not hold a key.
    #[error("{path} is not an OpenSSH private key: {reason}")]
    NotAKey {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused.
    #[error("could not {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A party's key. The secret is wiped from memory when this is dropped.
pub struct Identity {
    key: SigningKey,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("public", &self.public())
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Makes a new key and writes it to `path`: folder 0700, file 0600, both on disk before this returns.
    ///
    /// # Errors
    /// [`IdentityError::Exists`] if anything is at `path`; [`IdentityError::TooWide`] if the folder is there and
    /// open to others; [`IdentityError::Io`].
    pub fn create(path: &Path) -> Result<Self, IdentityError> {
        leave_no_core_dumps();
        let folder = folder_of(path);
        DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(folder)
            .map_err(|source| failed("create the folder", folder, source))?;
        check_protection(Protected::Folder, folder, &metadata(folder)?)?;

        let identity = Self::from_signing_key(SigningKey::generate(&mut rand::rng()));
        let text = identity.openssh(path)?;
        write_new(path, text.as_bytes())?;
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| failed("sync the folder", folder, source))?;
        Ok(identity)
    }

    /// Reads the key at `path`, if it and its folder are closed to others and owned by this user or root; root may
    /// read everybody's.
    ///
    /// # Errors
    /// One [`IdentityError`] for each thing that can be wrong, naming the path and what mends it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        leave_no_core_dumps();
        let mut file = File::open(path).map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                IdentityError::Missing {
                    path: path.to_owned(),
                }
            } else {
                failed("open", path, source)
            }
        })?;
        // The open file is looked at, not the path again: nobody can swap it in between.
        let found = file
            .metadata()
            .map_err(|source| failed("look at", path, source))?;
        check_protection(Protected::File, path, &found)?;
        let folder = folder_of(path);
        check_protection(Protected::Folder, folder, &metadata(folder)?)?;
        if !found.is_file() || found.len() > FILE_SIZE_MAX {
            return Err(not_a_key(path, "it is not a small regular file"));
        }

        // With room for all of it from the start: growing would leave copies behind.
        let mut text = Zeroizing::new(Vec::with_capacity(FILE_SIZE_ROOM));
        Read::by_ref(&mut file)
            .take(FILE_SIZE_MAX)
            .read_to_end(&mut text)
            .map_err(|source| failed("read", path, source))?;
        Self::from_openssh(path, &text)
    }

    /// The identity of a key made elsewhere: tests, simulations, a key from a secret store.
    #[must_use]
    pub fn from_signing_key(key: SigningKey) -> Self {
        Self { key }
    }

    /// The public half: what others call this party.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.key.verifying_key().to_bytes())
    }

    /// The key that signs statements.
    #[must_use]
    pub fn signing_key(&self) -> &SigningKey {
        &self.key
    }

    /// The public half as libp2p names it.
    #[must_use]
    pub fn peer_id(&self) -> PeerId {
        peer_id_of(&self.public())
    }

    /// The same key as libp2p wants it.
    ///
    /// # Panics
    /// Never: 32 bytes are always an Ed25519 secret.
    #[must_use]
    #[expect(clippy::expect_used, reason = "any 32 bytes are an Ed25519 secret")]
    pub fn keypair(&self) -> Keypair {
        let mut secret = Zeroizing::new(self.key.to_bytes());
        Keypair::ed25519_from_bytes(secret.as_mut_slice()).expect("32 bytes")
    }

    fn openssh(&self, path: &Path) -> Result<Zeroizing<String>, IdentityError> {
        let keypair = Ed25519Keypair {
            public: Ed25519PublicKey(self.key.verifying_key().to_bytes()),
            private: Ed25519PrivateKey::from_bytes(&Zeroizing::new(self.key.to_bytes())),
        };
        PrivateKey::new(KeypairData::Ed25519(keypair), "feira")
            .and_then(|key| key.to_openssh(LineEnding::LF))
            .map_err(|error| not_a_key(path, &error.to_string()))
    }

    fn from_openssh(path: &Path, text: &[u8]) -> Result<Self, IdentityError> {
        let key =
            PrivateKey::from_openssh(text).map_err(|error| not_a_key(path, &error.to_string()))?;
        if key.is_encrypted() {
            return Err(IdentityError::Encrypted {
                path: path.to_owned(),
            });
        }
        let Some(pair) = key.key_data().ed25519() else {
            return Err(IdentityError::WrongKind {
                path: path.to_owned(),
                found: key.algorithm().to_string(),
            });
        };
        let secret = Zeroizing::new(pair.private.to_bytes());
        let key = SigningKey::from_bytes(&secret);
        if key.verifying_key().to_bytes() != pair.public.0 {
            return Err(not_a_key(path, "its two halves do not belong together"));
        }
        Ok(Self::from_signing_key(key))
    }
}

/// The network name of a key: the key itself, in libp2p's wrapping ("12D3KooW…").
///
/// # Panics
/// Never: the bytes always have the shape of a peer id.
#[must_use]
#[expect(clippy::expect_used, reason = "the shape of these bytes is fixed")]
pub fn peer_id_of(key: &PublicKey) -> PeerId {
    let mut bytes = PEER_ID_PREFIX.to_vec();
    bytes.extend_from_slice(key.as_bytes());
    PeerId::from_bytes(&bytes).expect("an identity multihash of 36 bytes")
}

/// Identity multihash (code 0) of 36 bytes: protobuf field 1 (key type) = 1 (Ed25519), field 2 = 32 bytes.
/// From the libp2p peer-id specification, "Keys" and "Peer IDs".
const PEER_ID_PREFIX: [u8; 6] = [0x00, 0x24, 0x08, 0x01, 0x12, 0x20];

/// A peer's id that does not hold an Ed25519 key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{peer} is not the id of an Ed25519 key")]
pub struct ForeignKey {
    /// The peer.
    pub peer: PeerId,
}

/// The key inside a peer's id.
///
/// # Errors
/// [`ForeignKey`] when the id is a hash, or of a key of another kind.
pub fn public_key_of(peer: &PeerId) -> Result<PublicKey, ForeignKey> {
    let bytes = peer.to_bytes();
    bytes
        .strip_prefix(&PEER_ID_PREFIX)
        .and_then(|key| <[u8; 32]>::try_from(key).ok())
        .map(PublicKey::from_bytes)
        .ok_or(ForeignKey { peer: *peer })
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

fn metadata(path: &Path) -> Result<fs::Metadata, IdentityError> {
    fs::metadata(path).map_err(|source| failed("look at", path, source))
}

fn check_protection(
    what: Protected,
    path: &Path,
    found: &fs::Metadata,
) -> Result<(), IdentityError> {
    let expected = rustix::process::geteuid().as_raw();
    // Root may read everything anyway: what root owns is no wider, and root may use what is another's, as when it
    // looks after a service that has a user of its own.
    if expected != 0 && found.uid() != expected && found.uid() != 0 {
        return Err(IdentityError::WrongOwner {
            what,
            path: path.to_owned(),
            found: found.uid(),
            expected,
        });
    }
    let mode = found.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(IdentityError::TooWide {
        what,
        path: path.to_owned(),
        found: mode,
        allowed: match what {
            Protected::File => FILE_MODE,
            Protected::Folder => FOLDER_MODE,
        },
    })
}

fn write_new(path: &Path, text: &[u8]) -> Result<(), IdentityError> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
        .map_err(|source| {
            if source.kind() == io::ErrorKind::AlreadyExists {
                IdentityError::Exists {
                    path: path.to_owned(),
                }
            } else {
                failed("create", path, source)
            }
        })?;
    file.write_all(text)
        .and_then(|()| file.sync_all())
        .map_err(|source| {
            // Half a key would only be in the way of the next attempt; the error already says enough.
            let _ = fs::remove_file(path);
            failed("write", path, source)
        })
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> IdentityError {
    IdentityError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

fn not_a_key(path: &Path, reason: &str) -> IdentityError {
    IdentityError::NotAKey {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
