//! Memory: on the device, or where the machine reads and writes it too.

use super::context::Context;
use super::failed;
use ash::vk;
use audit::prover::Unable;
use std::rc::Rc;

/// Where a buffer lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the device's own memory.
    Device,
    /// Where the machine sees what changes without being told.
    Shared,
}

/// A buffer of whole words.
#[derive(Debug)]
pub(super) struct Buffer {
    context: Rc<Context>,
    pub(super) handle: vk::Buffer,
    memory: vk::DeviceMemory,
    bytes: u64,
}

impl Buffer {
    pub(super) fn new(context: &Rc<Context>, bytes: u64, place: Place) -> Result<Self, Unable> {
        let create = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(
                vk::BufferUsageFlags::STORAGE_BUFFER
                    | vk::BufferUsageFlags::TRANSFER_SRC
                    | vk::BufferUsageFlags::TRANSFER_DST,
            )
            .sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: the structure is whole and names no queue families.
        let handle = unsafe { context.device.create_buffer(&create, None) }
            .map_err(|error| failed("make a buffer", error))?;
        // From here on, dropping it gives back what there is of it.
        let mut buffer = Self {
            context: Rc::clone(context),
            handle,
            memory: vk::DeviceMemory::null(),
            bytes,
        };
        // SAFETY: the buffer is of this device.
        let needs = unsafe { context.device.get_buffer_memory_requirements(handle) };
        let kind = kind_of_memory(context, needs.memory_type_bits, place)
            .ok_or_else(|| Unable("the device has no memory of the kind needed".to_owned()))?;
        let allocate = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(kind);
        // SAFETY: the kind is one of the device's.
        buffer.memory = unsafe { context.device.allocate_memory(&allocate, None) }
            .map_err(|error| failed("set memory aside", error))?;
        // SAFETY: the memory is as large as the buffer needs, of a kind it allows, and bound to nothing else.
        unsafe { context.device.bind_buffer_memory(handle, buffer.memory, 0) }
            .map_err(|error| failed("set memory aside", error))?;
        Ok(buffer)
    }

    /// Copies `bytes` bytes from `at` of another buffer to its beginning.
    pub(super) fn copy_from(&self, from: &Self, at: u64, bytes: u64) -> Result<(), Unable> {
        if bytes > self.bytes || at.saturating_add(bytes) > from.bytes {
            return Err(Unable("a copy goes beyond its buffer".to_owned()));
        }
        let region = [vk::BufferCopy {
            src_offset: at,
            dst_offset: 0,
            size: bytes,
        }];
        // SAFETY: both buffers are of this device, outlive the run, and hold the region.
        self.context.run(|device, commands| unsafe {
            device.cmd_copy_buffer(commands, from.handle, self.handle, &region);
        })
    }

    /// Its first bytes; for one that is [`Place::Shared`], while nothing runs.
    pub(super) fn read(&self, count: usize) -> Result<Vec<u8>, Unable> {
        let mapped = self.map(count)?;
        // SAFETY: the driver mapped as many bytes, and no work that writes them runs.
        let bytes = unsafe { std::slice::from_raw_parts(mapped, count) }.to_vec();
        self.unmap();
        Ok(bytes)
    }

    /// Sets its first bytes; for one that is [`Place::Shared`], while nothing runs.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), Unable> {
        let mapped = self.map(bytes.len())?;
        // SAFETY: the driver mapped as many bytes, no work uses them now, and they are not those of `bytes`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), mapped, bytes.len()) };
        self.unmap();
        Ok(())
    }

    fn map(&self, count: usize) -> Result<*mut u8, Unable> {
        let flags = vk::MemoryMapFlags::empty();
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if count > self.bytes {
            return Err(Unable("more is read than a buffer holds".to_owned()));
        }
        // SAFETY: it is mapped nowhere else: whoever maps it takes that back before returning.
        unsafe {
            self.context
                .device
                .map_memory(self.memory, 0, self.bytes, flags)
        }
        .map(|mapped| mapped.cast::<u8>())
        .map_err(|error| failed("reach a result", error))
    }

    fn unmap(&self) {
        // SAFETY: it is mapped, and nothing borrows it any more.
        unsafe { self.context.device.unmap_memory(self.memory) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: every run waits for its end, so nothing uses the buffer.
        unsafe { self.context.device.destroy_buffer(self.handle, None) };
        // SAFETY: its buffer is gone; none was set aside if it is null, which is allowed.
        unsafe { self.context.device.free_memory(self.memory, None) };
    }
}

fn kind_of_memory(context: &Context, allowed: u32, place: Place) -> Option<u32> {
    let wanted = match place {
        Place::Device => vk::MemoryPropertyFlags::DEVICE_LOCAL,
        Place::Shared => {
            vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT
        }
    };
    let memory = context.memory();
    (0..)
        .zip(memory.memory_types_as_slice())
        .find(|(place, kind)| {
            allowed & (1_u32 << place) != 0 && kind.property_flags.contains(wanted)
        })
        .map(|(place, _)| place)
}
