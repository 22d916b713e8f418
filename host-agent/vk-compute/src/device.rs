//! One device of Vulkan's, opened for computing, and the queue that takes its work.

use crate::clock::now;
use crate::{VulkanError, failed};
use ash::vk;
use std::ffi::CStr;
use std::fmt;
use std::time::Duration;

/// A run takes a tenth of a second, and on a slow device a few of them; one that takes this long has hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The first that is no program.
    Gpu,
    /// The one at this address of the PCI bus, like `0000:05:00.0`.
    Pci(&'a str),
    /// The first that is a program.
    Software,
}

/// An open device. What is made of it holds it, so it goes last.
pub struct Device {
    /// Kept because the library must outlive all that came out of it.
    _entry: ash::Entry,
    instance: ash::Instance,
    pub(crate) handle: ash::Device,
    physical: vk::PhysicalDevice,
    properties: vk::PhysicalDeviceProperties,
    queue: vk::Queue,
    commands: vk::CommandPool,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.name()).finish()
    }
}

impl Device {
    /// Opens the device that is wanted.
    ///
    /// # Errors
    /// When there is no loader or no such device, or it cannot be opened.
    pub fn open(wanted: Wanted<'_>) -> Result<Self, VulkanError> {
        // SAFETY: it loads the system's Vulkan loader, whose start code may run before anything else of it is used.
        let entry = unsafe { ash::Entry::load() };
        let entry = entry.map_err(|error| VulkanError::NoLoader(error.to_string()))?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let create = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: `create` and what it points to outlive the call, and it names no layer or extension.
        let instance = unsafe { entry.create_instance(&create, None) };
        let instance = instance.map_err(failed("start Vulkan"))?;
        let found = find(&instance, wanted).and_then(|physical| {
            let opened = open(&instance, physical)?;
            Ok((physical, opened))
        });
        let (physical, (handle, queue, commands)) = match found {
            Ok(found) => found,
            Err(error) => {
                // SAFETY: nothing that came out of the instance is left.
                unsafe { instance.destroy_instance(None) };
                return Err(error);
            }
        };
        // SAFETY: `physical` is of this instance.
        let properties = unsafe { instance.get_physical_device_properties(physical) };
        Ok(Self {
            _entry: entry,
            instance,
            handle,
            physical,
            properties,
            queue,
            commands,
        })
    }

    /// Its name, as its driver says it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.properties
            .device_name_as_c_str()
            .ok()
            .and_then(|name| name.to_str().ok())
            .unwrap_or("unknown")
    }

    /// Whether it is a program and no GPU.
    #[must_use]
    pub const fn is_software(&self) -> bool {
        is_software(&self.properties)
    }

    /// Most bytes of one buffer that a kernel can have.
    #[must_use]
    pub fn largest_buffer(&self) -> u64 {
        self.properties.limits.max_storage_buffer_range.into()
    }

    /// Bytes of the largest heap that is the device's own.
    #[must_use]
    pub fn own_memory(&self) -> u64 {
        let memory = self.memory();
        let own = |heap: &&vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
        let heaps = memory.memory_heaps_as_slice();
        heaps
            .iter()
            .filter(own)
            .map(|heap| heap.size)
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn memory(&self) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: `physical` is of this instance.
        unsafe {
            self.instance
                .get_physical_device_memory_properties(self.physical)
        }
    }

    /// Records work and runs it to its end; how long that took from handing it over.
    pub(crate) fn run(
        &self,
        record: impl FnOnce(&ash::Device, vk::CommandBuffer),
    ) -> Result<Duration, VulkanError> {
        let device = &self.handle;
        let allocate = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.commands)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is of this device and used by this thread alone.
        let buffers = unsafe { device.allocate_command_buffers(&allocate) };
        let buffers = buffers.map_err(failed("record work"))?;
        let Some(&buffer) = buffers.first() else {
            return Err(failed("record work")(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
        };
        let begin = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the buffer is new, so it is not being recorded or run.
        unsafe { device.begin_command_buffer(buffer, &begin) }.map_err(failed("record work"))?;
        record(device, buffer);
        // SAFETY: the buffer is being recorded.
        unsafe { device.end_command_buffer(buffer) }.map_err(failed("record work"))?;
        let time = self.submit(buffer);
        // SAFETY: the work of the buffer is done, or the device is lost and will not touch it any more.
        unsafe { device.free_command_buffers(self.commands, &buffers) };
        time
    }

    fn submit(&self, buffer: vk::CommandBuffer) -> Result<Duration, VulkanError> {
        let device = &self.handle;
        // SAFETY: the structure asks for nothing special.
        let fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) };
        let fence = fence.map_err(failed("run work"))?;
        let buffers = [buffer];
        let submit = [vk::SubmitInfo::default().command_buffers(&buffers)];
        let began = now();
        // SAFETY: the buffer is recorded, the fence is new, and this thread alone uses the queue.
        let ran = unsafe { device.queue_submit(self.queue, &submit, fence) }.and_then(|()| {
            let nanos = u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
            // SAFETY: the fence is of this device and was handed over.
            unsafe { device.wait_for_fences(&[fence], true, nanos) }
        });
        let time = now().saturating_duration_since(began);
        if ran == Err(vk::Result::TIMEOUT) {
            // What still runs cannot be taken back; the process ends with it.
            return Err(failed("run work within a minute")(vk::Result::TIMEOUT));
        }
        // SAFETY: nothing waits for the fence any more.
        unsafe { device.destroy_fence(fence, None) };
        ran.map_err(failed("run work"))?;
        Ok(time)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: buffers and kernels hold this device, so they are gone; the pool is its last child.
        unsafe { self.handle.destroy_command_pool(self.commands, None) };
        // SAFETY: nothing of the device is left.
        unsafe { self.handle.destroy_device(None) };
        // SAFETY: nothing of the instance is left.
        unsafe { self.instance.destroy_instance(None) };
    }
}

const fn is_software(properties: &vk::PhysicalDeviceProperties) -> bool {
    properties.device_type.as_raw() == vk::PhysicalDeviceType::CPU.as_raw()
}

fn find(instance: &ash::Instance, wanted: Wanted<'_>) -> Result<vk::PhysicalDevice, VulkanError> {
    // SAFETY: the instance lives.
    let all = unsafe { instance.enumerate_physical_devices() };
    let all = all.map_err(failed("list its devices"))?;
    let mut found = Vec::new();
    for physical in all {
        // SAFETY: `physical` is of this instance.
        let properties = unsafe { instance.get_physical_device_properties(physical) };
        let address = pci_address(instance, physical);
        let is_wanted = match wanted {
            Wanted::Gpu => !is_software(&properties),
            Wanted::Software => is_software(&properties),
            Wanted::Pci(wanted) => address
                .as_deref()
                .is_some_and(|address| address.eq_ignore_ascii_case(wanted)),
        };
        if is_wanted {
            return Ok(physical);
        }
        let name = properties.device_name_as_c_str().unwrap_or(c"unknown");
        let at = address.unwrap_or_else(|| "no PCI address".to_owned());
        found.push(format!("{} ({at})", name.to_string_lossy()));
    }
    if found.is_empty() {
        found.push("none".to_owned());
    }
    let wanted = match wanted {
        Wanted::Gpu => "a GPU".to_owned(),
        Wanted::Software => "a program".to_owned(),
        Wanted::Pci(address) => format!("at {address}"),
    };
    Err(VulkanError::NoDevice {
        wanted,
        found: found.join(", "),
    })
}

/// Like `0000:05:00.0`; nothing when the driver does not say.
fn pci_address(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Option<String> {
    // SAFETY: `physical` is of this instance.
    let extensions = unsafe { instance.enumerate_device_extension_properties(physical) }.ok()?;
    let says = |name: &CStr| {
        let named = |one: &vk::ExtensionProperties| one.extension_name_as_c_str() == Ok(name);
        extensions.iter().any(named)
    };
    if !says(ash::ext::pci_bus_info::NAME) {
        return None;
    }
    let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut pci);
    // SAFETY: `physical` is of this instance, which is of 1.1, and the driver knows the chained structure.
    unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
    Some(format!(
        "{:04x}:{:02x}:{:02x}.{:x}",
        pci.pci_domain, pci.pci_bus, pci.pci_device, pci.pci_function
    ))
}

type Opened = (ash::Device, vk::Queue, vk::CommandPool);

fn open(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<Opened, VulkanError> {
    // SAFETY: `physical` is of this instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let computes = |family: &vk::QueueFamilyProperties| {
        family.queue_flags.contains(vk::QueueFlags::COMPUTE) && family.queue_count > 0
    };
    let family = families.iter().position(computes);
    let family = family.and_then(|place| u32::try_from(place).ok());
    let family = family.ok_or_else(|| failed("compute")(vk::Result::ERROR_FEATURE_NOT_PRESENT))?;
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&[1.0])];
    let create = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    // SAFETY: `physical` is of this instance, the family is one of its own, and no extension is named.
    let device = unsafe { instance.create_device(physical, &create, None) };
    let device = device.map_err(failed("open the device"))?;
    // SAFETY: one queue of this family was asked for.
    let queue = unsafe { device.get_device_queue(family, 0) };
    let pool = vk::CommandPoolCreateInfo::default()
        .flags(vk::CommandPoolCreateFlags::TRANSIENT)
        .queue_family_index(family);
    // SAFETY: the family is the queue's.
    match unsafe { device.create_command_pool(&pool, None) } {
        Ok(commands) => Ok((device, queue, commands)),
        Err(error) => {
            // SAFETY: nothing of the device is left.
            unsafe { device.destroy_device(None) };
            Err(failed("make a pool of commands")(error))
        }
    }
}
