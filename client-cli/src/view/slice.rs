//! A slice of a GPU, and what it shares with others.

use super::ram_in_words;
use protocol::offer::{Isolation, Partition};
use serde_json::{Value, json};

/// What a slice is: `3g.40gb: 39.5 GiB, 60 of 132 multiprocessors, 4 of 8 memory slices`.
pub(crate) fn slice_in_words(slice: &Partition) -> String {
    let (processors, all_processors) = slice.multiprocessors;
    let (slices, all_slices) = slice.memory_slices;
    format!(
        "{}: {}, {processors} of {all_processors} multiprocessors, {slices} of {all_slices} memory slices",
        slice.profile,
        ram_in_words(slice.vram)
    )
}

/// What keeps a slice apart from its neighbours, and what does not: everyone who takes one is told.
pub(crate) const fn apart_in_words(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Hardware => {
            "others may have the GPU's other slices: memory is apart by hardware, but a reset or a grave memory error \
             ends them all, and a neighbour can tell from timing which model runs and how many tokens it makes"
        }
        Isolation::Shared => {
            "nothing but the driver keeps it apart from others on this GPU: one fault can end all of them"
        }
    }
}

/// The same for programs; null for whole GPUs.
pub(crate) fn slice_json(slice: Option<&Partition>) -> Value {
    let Some(slice) = slice else {
        return Value::Null;
    };
    let isolation = match slice.isolation {
        Isolation::Hardware => "hardware",
        Isolation::Shared => "shared",
    };
    json!({
        "profile": slice.profile.as_str(),
        "vram_bytes": slice.vram.0,
        "multiprocessors": slice.multiprocessors.0,
        "multiprocessors_of_gpu": slice.multiprocessors.1,
        "memory_slices": slice.memory_slices.0,
        "memory_slices_of_gpu": slice.memory_slices.1,
        "isolation": isolation,
        "warning": apart_in_words(slice.isolation),
    })
}
