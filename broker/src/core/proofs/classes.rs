//! To which class of hardware an offer is held: those of the operator's own before those that come with the program.

use audit::class::{self, ClassError};
use protocol::bounded::Text;
use protocol::offer::Offer;
use protocol::units::Bytes;
use protocol::verify::Parameters;

/// Most classes of an operator's own.
pub const CLASSES_MAX: usize = 256;

/// A class of an operator's own: measured on cards that it has, or for hardware that has no class yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnClass {
    /// What it is called in verdicts.
    pub name: Text<48>,
    /// What the drivers call such devices; a machine without a GPU goes by its processor.
    pub models: Vec<String>,
    /// The least memory of one.
    pub memory_min: Bytes,
    /// What such a device has to do.
    pub parameters: Parameters,
}

/// All classes that a broker knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes {
    /// The operator's own.
    pub own: Vec<OwnClass>,
}

impl Classes {
    /// The class of the hardware of `offer`, and what it has to do.
    ///
    /// # Errors
    /// When there is none for it, so that it cannot be put to the proof.
    pub fn find(&self, offer: &Offer) -> Result<(Text<48>, Parameters), ClassError> {
        let (model, memory) = described(offer);
        let own = self.own.iter().find(|class| class.models.contains(&model));
        if let Some(class) = own {
            if memory < class.memory_min {
                return Err(ClassError::MemoryShort {
                    model,
                    wanted: class.memory_min,
                    has: memory,
                });
            }
            return Ok((class.name.clone(), class.parameters));
        }
        let class = class::find(&model, memory)?;
        Ok((Text::cut(&class.name), class.parameters()))
    }
}

/// What the hardware of an offer is called, as classes know it, and the memory that it is said to have.
#[must_use]
pub fn described(offer: &Offer) -> (String, Bytes) {
    match (offer.share.gpus.first(), &offer.partition) {
        (Some(gpu), Some(slice)) => (format!("{} MIG {}", gpu.model, slice.profile), slice.vram),
        (Some(gpu), None) => (gpu.model.to_string(), gpu.vram),
        (None, _) => (offer.machine.cpu_model.to_string(), offer.share.ram),
    }
}
