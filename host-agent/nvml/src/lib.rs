//! NVIDIA's management library (NVML), called in a process of its own and spoken of in plain types.
//!
//! The driver's code may hang or crash whoever calls it. So nothing here runs in the agent: it runs in a
//! child process for one GPU, which answers requests over its standard input and output and can be killed.
//! What crosses that line are the plain types of this crate; they hold no handle and no pointer, and the
//! agent's rules may use them freely. It decides nothing.
//!
//! * [`facts`]: what a GPU is. [`sample`]: how it is now. [`event`]: what happened to it.
//!   [`slices`]: its MIG mode, profiles and instances. [`news`]: all that the agent hears of its GPUs.
//! * [`library`]: the calls themselves. [`serve`]: the process around them. [`wire`]: what crosses the line.

extern crate protocol_pure as protocol;

pub mod event;
pub mod facts;
pub mod fault;
pub mod news;
pub mod sample;
pub mod slices;

pub mod library;
pub mod serve;
pub mod wire;
