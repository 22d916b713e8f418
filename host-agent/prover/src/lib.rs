//! The program that proves hardware: it speaks with a verifier over its standard input and output, and makes the
//! proof of the crate `audit` on the device it finds. It knows no network; whoever starts it connects the pipes.
//!
//! * [`pipe`]: the conversation.
//! * [`backend`]: through which driver the device is reached.
//! * [`cuda`], [`vulkan`]: the drivers, loaded when they are called for, and the kernels in `kernels/`.

pub mod backend;
pub mod pipe;

pub mod cuda;
pub mod vulkan;
