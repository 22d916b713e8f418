//! Buffers: on the device, or where the machine can read them.

use super::device::Device;
use super::failed;
use crate::GpuError;
use ash::vk;

/// Where a buffer lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the device's own memory.
    Device,
    /// Where the machine can read it without being told that it changed.
    Readable,
}

/// A buffer of whole words.
pub(super) struct Buffer<'a> {
    device: &'a Device,
    pub(super) handle: vk::Buffer,
    memory: vk::DeviceMemory,
    bytes: u64,
}

impl<'a> Buffer<'a> {
    pub(super) fn new(device: &'a Device, bytes: u64, place: Place) -> Result<Self, GpuError> {
        let create = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(
                vk::BufferUsageFlags::STORAGE_BUFFER
                    | vk::BufferUsageFlags::TRANSFER_SRC
                    | vk::BufferUsageFlags::TRANSFER_DST,
            )
            .sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: the structure is whole and names no queue families.
        let handle = unsafe { device.handle.create_buffer(&create, None) };
        let handle = handle.map_err(failed("make a buffer"))?;
        // From here on, dropping it gives back what there is of it.
        let mut buffer = Self {
            device,
            handle,
            memory: vk::DeviceMemory::null(),
            bytes,
        };
        // SAFETY: the buffer is of this device.
        let needs = unsafe { device.handle.get_buffer_memory_requirements(handle) };
        let kind = kind_of_memory(device, needs.memory_type_bits, place).ok_or_else(|| {
            failed("find memory for a buffer")(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)
        })?;
        let allocate = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(kind);
        // SAFETY: the kind is one of the device's.
        let memory = unsafe { device.handle.allocate_memory(&allocate, None) };
        buffer.memory = memory.map_err(failed("set memory aside"))?;
        // SAFETY: the memory is as large as the buffer needs, of a kind it allows, and bound to nothing else.
        let bound = unsafe { device.handle.bind_buffer_memory(handle, buffer.memory, 0) };
        bound.map_err(failed("set memory aside"))?;
        Ok(buffer)
    }

    /// Sets every word of it.
    pub(super) fn fill(&self, word: u32) -> Result<(), GpuError> {
        self.device
            .run(|device, commands| {
                // SAFETY: the buffer is of this device, outlives the run, and takes transfers.
                unsafe {
                    device.cmd_fill_buffer(commands, self.handle, 0, vk::WHOLE_SIZE, word);
                }
            })
            .map(drop)
    }

    /// Copies as much as it holds from `at` of another one.
    pub(super) fn copy_from(&self, from: &Buffer<'_>, at: u64) -> Result<(), GpuError> {
        let region = [vk::BufferCopy {
            src_offset: at,
            dst_offset: 0,
            size: self.bytes.min(from.bytes.saturating_sub(at)),
        }];
        self.device
            .run(|device, commands| {
                // SAFETY: both buffers are of this device, outlive the run, and hold the region.
                unsafe { device.cmd_copy_buffer(commands, from.handle, self.handle, &region) };
            })
            .map(drop)
    }

    /// All its words; for one that is [`Place::Readable`], while nothing runs.
    pub(super) fn read(&self) -> Result<Vec<u32>, GpuError> {
        let device = &self.device.handle;
        // SAFETY: the memory is mapped nowhere else: this is the only place that maps it, and it takes it back.
        let mapped =
            unsafe { device.map_memory(self.memory, 0, self.bytes, vk::MemoryMapFlags::empty()) };
        let mapped = mapped.map_err(failed("read a result back"))?;
        let words = usize::try_from(self.bytes / 4).unwrap_or(0);
        // SAFETY: the driver mapped that many bytes, aligned to more than a word, and no work that writes them runs.
        let words = unsafe { std::slice::from_raw_parts(mapped.cast::<u32>(), words) }.to_vec();
        // SAFETY: it is mapped, and nothing borrows it any more.
        unsafe { device.unmap_memory(self.memory) };
        Ok(words)
    }
}

impl Drop for Buffer<'_> {
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
        Place::Readable => {
            vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT
        }
    };
    let memory = device.memory();
    let kinds = memory.memory_types_as_slice();
    (0..)
        .zip(kinds)
        .find(|(place, kind)| {
            allowed & (1_u32 << place) != 0 && kind.property_flags.contains(wanted)
        })
        .map(|(place, _)| place)
}
