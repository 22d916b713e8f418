//! Why the library gave no answer.

use serde::{Deserialize, Serialize};

/// Why a call failed, as the library tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Fault {
    /// It is not installed.
    #[error("the NVIDIA library is not installed: {detail}")]
    LibraryMissing {
        /// What the loader said.
        detail: String,
    },
    /// It is there, and no driver is loaded (yet).
    #[error("the NVIDIA driver is not loaded")]
    DriverNotLoaded,
    /// The GPU fell off the bus, or is not there.
    #[error("the GPU is lost")]
    Lost,
    /// There is nothing of that number or name.
    #[error("there is no such thing on this GPU")]
    NotFound,
    /// The GPU or the driver cannot do that.
    #[error("this GPU or driver does not do that")]
    NotSupported,
    /// It takes root.
    #[error("the driver does not permit it to this user")]
    NoPermission,
    /// Something uses it.
    #[error("it is in use")]
    InUse,
    /// No room at that place, or in all.
    #[error("there is no room for it on this GPU")]
    NoRoom,
    /// First the GPU has to be reset.
    #[error("the GPU has to be reset first")]
    ResetRequired,
    /// The question made no sense to the library, or to this process.
    #[error("the question was wrong: {detail}")]
    Refused {
        /// What is wrong.
        detail: String,
    },
    /// Another error.
    #[error("the driver answers with an error: {detail}")]
    Other {
        /// Which.
        detail: String,
    },
}
