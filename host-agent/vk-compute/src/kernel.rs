//! Kernels, and lists of calls of them that run one after the other.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::{VulkanError, failed};
use ash::vk;
use std::io::Cursor;
use std::rc::Rc;
use std::time::Duration;

/// Most calls of one run.
pub const CALLS_MAX: usize = 40;
/// Most words of a kernel's parameters: 128 bytes are allowed everywhere.
const PUSH_WORDS_MAX: usize = 16;
/// Groups in one direction that every device allows.
const GROUPS_MAX: u32 = 65_535;

/// A kernel whose storage buffers are bound from 0 on.
#[derive(Debug)]
pub struct Kernel {
    device: Rc<Device>,
    module: vk::ShaderModule,
    bindings: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    /// Gives one set of buffers to each call of a run.
    pool: vk::DescriptorPool,
}

/// One call of a kernel.
#[derive(Debug)]
pub struct Call<'a> {
    /// Which.
    pub kernel: &'a Kernel,
    /// In the order of their bindings.
    pub buffers: Vec<&'a Buffer>,
    /// The kernel's parameters.
    pub push: Vec<u32>,
    /// Groups of threads in both directions.
    pub groups: (u32, u32),
    /// How often, one after the other.
    pub times: u32,
}

/// Groups in two directions that are at least `count` together.
#[must_use]
pub fn spread(count: u64) -> (u32, u32) {
    let rows = count.div_ceil(u64::from(GROUPS_MAX)).max(1);
    let columns = count.div_ceil(rows).max(1);
    let word = |number| u32::try_from(number).unwrap_or(GROUPS_MAX);
    (word(columns), word(rows))
}

impl Kernel {
    /// `code` is SPIR-V whose entry is `main`, with so many storage buffers. It is trusted: only code that
    /// `spirv-val` took is given here.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn new(device: &Rc<Device>, code: &[u8], buffers: u32) -> Result<Self, VulkanError> {
        let mut kernel = Self {
            device: Rc::clone(device),
            module: vk::ShaderModule::null(),
            bindings: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
            pool: vk::DescriptorPool::null(),
        };
        let code =
            ash::util::read_spv(&mut Cursor::new(code)).map_err(|error| VulkanError::Driver {
                doing: "read a kernel",
                reason: error.to_string(),
            })?;
        let create = vk::ShaderModuleCreateInfo::default().code(&code);
        // SAFETY: the code is the caller's own, and was checked by spirv-val.
        kernel.module = unsafe { device.handle.create_shader_module(&create, None) }
            .map_err(failed("load a kernel"))?;
        kernel.describe(buffers)?;
        kernel.finish()?;
        Ok(kernel)
    }

    fn describe(&mut self, buffers: u32) -> Result<(), VulkanError> {
        let device = &self.device.handle;
        let slots: Vec<_> = (0..buffers)
            .map(|place| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(place)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let create = vk::DescriptorSetLayoutCreateInfo::default().bindings(&slots);
        // SAFETY: the structure is whole.
        self.bindings = unsafe { device.create_descriptor_set_layout(&create, None) }
            .map_err(failed("prepare a kernel"))?;
        let sets = u32::try_from(CALLS_MAX).unwrap_or(1);
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(sets * buffers)];
        let create = vk::DescriptorPoolCreateInfo::default()
            .max_sets(sets)
            .pool_sizes(&sizes);
        // SAFETY: the structure is whole.
        self.pool = unsafe { device.create_descriptor_pool(&create, None) }
            .map_err(failed("prepare a kernel"))?;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), VulkanError> {
        let device = &self.device.handle;
        let layouts = [self.bindings];
        let words = u32::try_from(PUSH_WORDS_MAX).unwrap_or(0);
        let push = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(4 * words)];
        let create = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&layouts)
            .push_constant_ranges(&push);
        // SAFETY: the layout of the sets is of this device.
        self.layout = unsafe { device.create_pipeline_layout(&create, None) }
            .map_err(failed("prepare a kernel"))?;
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(self.module)
            .name(c"main");
        let create = [vk::ComputePipelineCreateInfo::default()
            .stage(stage)
            .layout(self.layout)];
        let cache = vk::PipelineCache::null();
        // SAFETY: module and layout are of this device; the kernel's buffers and parameters are those of the layout.
        let made = unsafe { device.create_compute_pipelines(cache, &create, None) }
            .map_err(|(_, error)| failed("prepare a kernel")(error))?;
        self.pipeline = made.first().copied().unwrap_or_default();
        Ok(())
    }

    fn bind(&self, buffers: &[&Buffer]) -> Result<vk::DescriptorSet, VulkanError> {
        let device = &self.device.handle;
        let layouts = [self.bindings];
        let allocate = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(self.pool)
            .set_layouts(&layouts);
        // SAFETY: the pool and the layout are of this device.
        let sets = unsafe { device.allocate_descriptor_sets(&allocate) }
            .map_err(failed("bind buffers"))?;
        let set = sets.first().copied().unwrap_or_default();
        for (place, buffer) in (0..).zip(buffers) {
            let whole = [vk::DescriptorBufferInfo::default()
                .buffer(buffer.handle)
                .range(vk::WHOLE_SIZE)];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(place)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&whole);
            // SAFETY: the set is not in use yet, and the buffer is of this device and outlives the run.
            unsafe { device.update_descriptor_sets(&[write], &[]) };
        }
        Ok(set)
    }
}

impl Call<'_> {
    fn record(&self, device: &ash::Device, commands: vk::CommandBuffer, set: vk::DescriptorSet) {
        let (compute, layout) = (vk::PipelineBindPoint::COMPUTE, self.kernel.layout);
        let words = self.push.iter().take(PUSH_WORDS_MAX);
        let push: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
        let (across, down) = self.groups;
        // SAFETY: the pipeline is of this device and outlives the run.
        unsafe { device.cmd_bind_pipeline(commands, compute, self.kernel.pipeline) };
        // SAFETY: the set has the pipeline's layout, and its buffers outlive the run.
        unsafe { device.cmd_bind_descriptor_sets(commands, compute, layout, 0, &[set], &[]) };
        let stages = vk::ShaderStageFlags::COMPUTE;
        // SAFETY: the layout has a range of at least as many bytes for this stage.
        unsafe { device.cmd_push_constants(commands, layout, stages, 0, &push) };
        let access = vk::AccessFlags::SHADER_READ
            | vk::AccessFlags::SHADER_WRITE
            | vk::AccessFlags::TRANSFER_READ
            | vk::AccessFlags::HOST_READ;
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::SHADER_READ)
            .dst_access_mask(access)];
        let before = vk::PipelineStageFlags::COMPUTE_SHADER;
        let after = before | vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::HOST;
        let none = vk::DependencyFlags::empty();
        for _ in 0..self.times {
            // SAFETY: all that the kernel uses is bound, and `spread` keeps to what is allowed everywhere.
            unsafe { device.cmd_dispatch(commands, across, down, 1) };
            // SAFETY: the stages are ones that every device has.
            unsafe {
                device.cmd_pipeline_barrier(commands, before, after, none, &barrier, &[], &[]);
            }
        }
    }
}

/// Runs the calls in their order, each after the one before is through; at most [`CALLS_MAX`]. How long they took from
/// being handed over.
///
/// # Errors
/// When they are too many, or the driver fails.
pub fn run(device: &Device, calls: &[Call<'_>]) -> Result<Duration, VulkanError> {
    let bound = calls
        .iter()
        .map(|call| call.kernel.bind(&call.buffers))
        .collect::<Result<Vec<_>, _>>();
    let ran = bound.and_then(|sets| {
        device.run(|device, commands| {
            for (call, set) in calls.iter().zip(&sets) {
                call.record(device, commands, *set);
            }
        })
    });
    for call in calls {
        let reset = vk::DescriptorPoolResetFlags::empty();
        // SAFETY: the run is through, so nothing uses the sets of the pool.
        let _ = unsafe { device.handle.reset_descriptor_pool(call.kernel.pool, reset) };
    }
    ran
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let device = &self.device.handle;
        // SAFETY: every run waits for its end, so nothing uses it; null is allowed, here and below.
        unsafe { device.destroy_pipeline(self.pipeline, None) };
        // SAFETY: its pipeline is gone.
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
        // SAFETY: no run uses its sets, which go with it.
        unsafe { device.destroy_descriptor_pool(self.pool, None) };
        // SAFETY: the sets of this layout are gone.
        unsafe { device.destroy_descriptor_set_layout(self.bindings, None) };
        // SAFETY: its pipeline is gone.
        unsafe { device.destroy_shader_module(self.module, None) };
    }
}
