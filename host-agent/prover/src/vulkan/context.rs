//! One device of Vulkan's, opened for computing, and the queue that takes its work.

use super::failed;
use ash::vk;
use audit::prover::Unable;
use std::fmt;

/// A run is one part of a tile; one that takes this long has hung.
const PATIENCE_NANOS: u64 = 60_000_000_000;

/// An open device. What is made of it holds it, so it goes last.
pub(super) struct Context {
    /// Kept because the library must outlive all that came out of it.
    _entry: ash::Entry,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    pub(super) device: ash::Device,
    queue: vk::Queue,
    commands: vk::CommandPool,
    pub(super) properties: vk::PhysicalDeviceProperties,
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.properties.device_name_as_c_str();
        formatter.debug_tuple("Context").field(&name).finish()
    }
}

impl Context {
    /// Opens the first device that is a GPU, or the first that is a program.
    pub(super) fn open(software: bool) -> Result<Self, Unable> {
        // SAFETY: it loads the system's Vulkan loader, whose start code may run before anything else of it.
        let entry = unsafe { ash::Entry::load() }
            .map_err(|error| Unable(format!("there is no Vulkan here: {error}")))?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let create = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: `create` and what it points to outlive the call, and it names no layer or extension.
        let instance = unsafe { entry.create_instance(&create, None) }
            .map_err(|error| failed("start Vulkan", error))?;
        let opened = find(&instance, software)
            .and_then(|physical| open(&instance, physical).map(|opened| (physical, opened)));
        let (physical, (device, queue, commands)) = match opened {
            Ok(opened) => opened,
            Err(unable) => {
                // SAFETY: nothing that came out of the instance is left.
                unsafe { instance.destroy_instance(None) };
                return Err(unable);
            }
        };
        // SAFETY: `physical` is of this instance.
        let properties = unsafe { instance.get_physical_device_properties(physical) };
        Ok(Self {
            _entry: entry,
            instance,
            physical,
            device,
            queue,
            commands,
            properties,
        })
    }

    pub(super) fn memory(&self) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: `physical` is of this instance.
        unsafe {
            self.instance
                .get_physical_device_memory_properties(self.physical)
        }
    }

    /// Bytes of the device's largest heap of its own.
    pub(super) fn own_memory(&self) -> u64 {
        let memory = self.memory();
        let own = |heap: &&vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
        let heaps = memory.memory_heaps_as_slice().iter().filter(own);
        heaps.map(|heap| heap.size).max().unwrap_or(0)
    }

    /// Records work and runs it to its end.
    pub(super) fn run(
        &self,
        record: impl FnOnce(&ash::Device, vk::CommandBuffer),
    ) -> Result<(), Unable> {
        let device = &self.device;
        let allocate = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.commands)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is of this device and used by this thread alone.
        let buffers = unsafe { device.allocate_command_buffers(&allocate) }
            .map_err(|error| failed("record work", error))?;
        let ran = buffers
            .first()
            .ok_or(vk::Result::ERROR_OUT_OF_HOST_MEMORY)
            .and_then(|buffer| self.record_and_submit(*buffer, record));
        // SAFETY: the work of the buffers is done, or the process ends because of it.
        unsafe { device.free_command_buffers(self.commands, &buffers) };
        ran.map_err(|error| failed("run work", error))
    }

    fn record_and_submit(
        &self,
        buffer: vk::CommandBuffer,
        record: impl FnOnce(&ash::Device, vk::CommandBuffer),
    ) -> Result<(), vk::Result> {
        let device = &self.device;
        let begin = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the buffer is new, so it is not being recorded or run.
        unsafe { device.begin_command_buffer(buffer, &begin) }?;
        record(device, buffer);
        // SAFETY: the buffer is being recorded.
        unsafe { device.end_command_buffer(buffer) }?;
        // SAFETY: the structure asks for nothing special.
        let fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }?;
        let buffers = [buffer];
        let submit = [vk::SubmitInfo::default().command_buffers(&buffers)];
        // SAFETY: the buffer is recorded, the fence is new, and this thread alone uses the queue.
        let ran = unsafe { device.queue_submit(self.queue, &submit, fence) }
            // SAFETY: the fence is of this device and was handed over.
            .and_then(|()| unsafe { device.wait_for_fences(&[fence], true, PATIENCE_NANOS) });
        // SAFETY: nothing waits for the fence any more.
        unsafe { device.destroy_fence(fence, None) };
        ran
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: buffers and kernels hold this context, so they are gone; the pool is the device's last child.
        unsafe { self.device.destroy_command_pool(self.commands, None) };
        // SAFETY: nothing of the device is left.
        unsafe { self.device.destroy_device(None) };
        // SAFETY: nothing of the instance is left.
        unsafe { self.instance.destroy_instance(None) };
    }
}

fn find(instance: &ash::Instance, software: bool) -> Result<vk::PhysicalDevice, Unable> {
    // SAFETY: the instance lives.
    let all = unsafe { instance.enumerate_physical_devices() }
        .map_err(|error| failed("list the devices", error))?;
    let mut seen = Vec::new();
    for physical in all {
        // SAFETY: `physical` is of this instance.
        let properties = unsafe { instance.get_physical_device_properties(physical) };
        if (properties.device_type == vk::PhysicalDeviceType::CPU) == software {
            return Ok(physical);
        }
        let name = properties.device_name_as_c_str().unwrap_or(c"unknown");
        seen.push(name.to_string_lossy().into_owned());
    }
    let kind = if software { "a program" } else { "a GPU" };
    Err(Unable(format!(
        "Vulkan has no device that is {kind}; it has: {}",
        if seen.is_empty() {
            "none".to_owned()
        } else {
            seen.join(", ")
        }
    )))
}

type Opened = (ash::Device, vk::Queue, vk::CommandPool);

fn open(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<Opened, Unable> {
    // SAFETY: `physical` is of this instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let computes = |family: &vk::QueueFamilyProperties| {
        family.queue_flags.contains(vk::QueueFlags::COMPUTE) && family.queue_count > 0
    };
    let family = families
        .iter()
        .position(computes)
        .and_then(|place| u32::try_from(place).ok())
        .ok_or_else(|| Unable("the device computes nothing".to_owned()))?;
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&[1.0])];
    let create = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    // SAFETY: `physical` is of this instance, the family is one of its own, and no extension is named.
    let device = unsafe { instance.create_device(physical, &create, None) }
        .map_err(|error| failed("open the device", error))?;
    // SAFETY: one queue of this family was asked for.
    let queue = unsafe { device.get_device_queue(family, 0) };
    let pool = vk::CommandPoolCreateInfo::default()
        .flags(vk::CommandPoolCreateFlags::TRANSIENT)
        .queue_family_index(family);
    // SAFETY: the family is the queue's.
    match unsafe { device.create_command_pool(&pool, None) } {
        Ok(commands) => Ok((device, queue, commands)),
        Err(error) => {
            // SAFETY: nothing was made of the device.
            unsafe { device.destroy_device(None) };
            Err(failed("open the device", error))
        }
    }
}
