//! Memory: on the device, or where the machine reads and writes it too.

use crate::device::Device;
use crate::{VulkanError, failed};
use ash::vk;
use std::rc::Rc;

/// Where a buffer lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the device's own memory.
    Device,
    /// Where the machine sees what changes without being told.
    Shared,
}

/// A buffer of whole words.
#[derive(Debug)]
pub struct Buffer {
    device: Rc<Device>,
    pub(crate) handle: vk::Buffer,
    memory: vk::DeviceMemory,
    bytes: u64,
}

impl Buffer {
    /// One of `bytes` bytes.
    ///
    /// # Errors
    /// When there is no such memory.
    pub fn new(device: &Rc<Device>, bytes: u64, place: Place) -> Result<Self, VulkanError> {
        let create = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(
                vk::BufferUsageFlags::STORAGE_BUFFER
                    | vk::BufferUsageFlags::TRANSFER_SRC
                    | vk::BufferUsageFlags::TRANSFER_DST,
            )
            .sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: the structure is whole and names no queue families.
        let handle = unsafe { device.handle.create_buffer(&create, None) }
            .map_err(failed("make a buffer"))?;
        // From here on, dropping it gives back what there is of it.
        let mut buffer = Self {
            device: Rc::clone(device),
            handle,
            memory: vk::DeviceMemory::null(),
            bytes,
        };
        // SAFETY: the buffer is of this device.
        let needs = unsafe { device.handle.get_buffer_memory_requirements(handle) };
        let kind = kind_of_memory(device, needs.memory_type_bits, place).ok_or_else(|| {
            failed("find memory of the kind needed")(vk::Result::ERROR_FEATURE_NOT_PRESENT)
        })?;
        let allocate = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(kind);
        // SAFETY: the kind is one of the device's.
        buffer.memory = unsafe { device.handle.allocate_memory(&allocate, None) }
            .map_err(failed("set memory aside"))?;
        // SAFETY: the memory is as large as the buffer needs, of a kind it allows, and bound to nothing else.
        unsafe { device.handle.bind_buffer_memory(handle, buffer.memory, 0) }
            .map_err(failed("set memory aside"))?;
        Ok(buffer)
    }

    /// Sets every word of it.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn fill(&self, word: u32) -> Result<(), VulkanError> {
        // SAFETY: the buffer is of this device, outlives the run, and takes transfers.
        let filled = self.device.run(|device, commands| unsafe {
            device.cmd_fill_buffer(commands, self.handle, 0, vk::WHOLE_SIZE, word);
        });
        filled.map(drop)
    }

    /// Copies `bytes` bytes from `at` of another buffer to its beginning.
    ///
    /// # Errors
    /// When that is beyond either of them, or the driver fails.
    pub fn copy_from(&self, from: &Self, at: u64, bytes: u64) -> Result<(), VulkanError> {
        self.within(bytes)?;
        from.within(at.saturating_add(bytes))?;
        let region = [vk::BufferCopy {
            src_offset: at,
            dst_offset: 0,
            size: bytes,
        }];
        // SAFETY: both buffers are of this device, outlive the run, and hold the region.
        let copied = self.device.run(|device, commands| unsafe {
            device.cmd_copy_buffer(commands, from.handle, self.handle, &region);
        });
        copied.map(drop)
    }

    /// Its first bytes; for one that is [`Place::Shared`], while nothing runs.
    ///
    /// # Errors
    /// When it has not as many, or they cannot be reached.
    pub fn read(&self, count: usize) -> Result<Vec<u8>, VulkanError> {
        let mapped = self.map(count)?;
        // SAFETY: the driver mapped as many bytes, and no work that writes them runs.
        let bytes = unsafe { std::slice::from_raw_parts(mapped, count) }.to_vec();
        self.unmap();
        Ok(bytes)
    }

    /// Sets its first bytes; for one that is [`Place::Shared`], while nothing runs.
    ///
    /// # Errors
    /// When it has not as many, or they cannot be reached.
    pub fn write(&self, bytes: &[u8]) -> Result<(), VulkanError> {
        let mapped = self.map(bytes.len())?;
        // SAFETY: the driver mapped as many bytes, no work uses them now, and they are not those of `bytes`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), mapped, bytes.len()) };
        self.unmap();
        Ok(())
    }

    fn within(&self, asked: u64) -> Result<(), VulkanError> {
        if asked <= self.bytes {
            return Ok(());
        }
        Err(VulkanError::Beyond {
            asked,
            holds: self.bytes,
        })
    }

    fn map(&self, count: usize) -> Result<*mut u8, VulkanError> {
        let flags = vk::MemoryMapFlags::empty();
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.within(count)?;
        // SAFETY: it is mapped nowhere else: whoever maps it takes that back before returning.
        unsafe {
            self.device
                .handle
                .map_memory(self.memory, 0, self.bytes, flags)
        }
        .map(|mapped| mapped.cast::<u8>())
        .map_err(failed("reach a result"))
    }

    fn unmap(&self) {
        // SAFETY: it is mapped, and nothing borrows it any more.
        unsafe { self.device.handle.unmap_memory(self.memory) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: every run waits for its end, so nothing uses the buffer.
        unsafe { self.device.handle.destroy_buffer(self.handle, None) };
        // SAFETY: its buffer is gone; none was set aside if it is null, which is allowed.
        unsafe { self.device.handle.free_memory(self.memory, None) };
    }
}

fn kind_of_memory(device: &Device, allowed: u32, place: Place) -> Option<u32> {
    let wanted = match place {
        Place::Device => vk::MemoryPropertyFlags::DEVICE_LOCAL,
        Place::Shared => {
            vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT
        }
    };
    let memory = device.memory();
    (0..)
        .zip(memory.memory_types_as_slice())
        .find(|(place, kind)| {
            allowed & (1_u32 << place) != 0 && kind.property_flags.contains(wanted)
        })
        .map(|(place, _)| place)
}
