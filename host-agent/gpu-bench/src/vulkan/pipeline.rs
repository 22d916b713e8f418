//! A kernel with its buffers, ready to be run.

use super::device::Device;
use super::failed;
use super::memory::Buffer;
use crate::GpuError;
use ash::vk;
use std::io::Cursor;
use std::time::Duration;

/// The kernel's parameters: up to three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Push(pub(super) [u32; 3]);

impl Push {
    const BYTES: u32 = 12;

    fn bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        for (place, word) in bytes.chunks_exact_mut(4).zip(self.0) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// A kernel and its buffers. What is made for it is given back when it is dropped, also when it was not finished.
pub(super) struct Pipeline<'a> {
    device: &'a Device,
    module: vk::ShaderModule,
    bindings: vk::DescriptorSetLayout,
    pool: vk::DescriptorPool,
    set: vk::DescriptorSet,
    layout: vk::PipelineLayout,
    handle: vk::Pipeline,
}

impl<'a> Pipeline<'a> {
    /// `code` is SPIR-V whose entry is `main`, and whose storage buffers are bound from 0 on in the order of `buffers`.
    pub(super) fn new(
        device: &'a Device,
        code: &[u8],
        buffers: &[&'a Buffer<'a>],
    ) -> Result<Self, GpuError> {
        let mut pipeline = Self {
            device,
            module: vk::ShaderModule::null(),
            bindings: vk::DescriptorSetLayout::null(),
            pool: vk::DescriptorPool::null(),
            set: vk::DescriptorSet::null(),
            layout: vk::PipelineLayout::null(),
            handle: vk::Pipeline::null(),
        };
        let code =
            ash::util::read_spv(&mut Cursor::new(code)).map_err(|error| GpuError::Driver {
                doing: "read a kernel",
                reason: error.to_string(),
            })?;
        let create = vk::ShaderModuleCreateInfo::default().code(&code);
        // SAFETY: the code is this crate's own, and was checked by spirv-val.
        let module = unsafe { device.handle.create_shader_module(&create, None) };
        pipeline.module = module.map_err(failed("load a kernel"))?;
        pipeline.bind(buffers)?;
        pipeline.finish()?;
        Ok(pipeline)
    }

    fn bind(&mut self, buffers: &[&Buffer<'_>]) -> Result<(), GpuError> {
        let device = &self.device.handle;
        let slots: Vec<_> = (0..)
            .zip(buffers)
            .map(|(place, _)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(place)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let create = vk::DescriptorSetLayoutCreateInfo::default().bindings(&slots);
        // SAFETY: the structure is whole.
        let bindings = unsafe { device.create_descriptor_set_layout(&create, None) };
        self.bindings = bindings.map_err(failed("bind buffers"))?;
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(u32::try_from(buffers.len()).unwrap_or(1).max(1))];
        let create = vk::DescriptorPoolCreateInfo::default()
            .max_sets(1)
            .pool_sizes(&sizes);
        // SAFETY: the structure is whole.
        let pool = unsafe { device.create_descriptor_pool(&create, None) };
        self.pool = pool.map_err(failed("bind buffers"))?;
        let layouts = [self.bindings];
        let allocate = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(self.pool)
            .set_layouts(&layouts);
        // SAFETY: the pool has room for exactly this set.
        let sets = unsafe { device.allocate_descriptor_sets(&allocate) };
        let sets = sets.map_err(failed("bind buffers"))?;
        self.set = sets.first().copied().unwrap_or_default();
        for (place, buffer) in (0..).zip(buffers) {
            let whole = [vk::DescriptorBufferInfo::default()
                .buffer(buffer.handle)
                .range(vk::WHOLE_SIZE)];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(self.set)
                .dst_binding(place)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&whole);
            // SAFETY: the set is not in use yet, and the buffer is of this device and outlives the pipeline.
            unsafe { device.update_descriptor_sets(&[write], &[]) };
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), GpuError> {
        let device = &self.device.handle;
        let layouts = [self.bindings];
        let push = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(Push::BYTES)];
        let create = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&layouts)
            .push_constant_ranges(&push);
        // SAFETY: the layout of the set is of this device.
        let layout = unsafe { device.create_pipeline_layout(&create, None) };
        self.layout = layout.map_err(failed("prepare a kernel"))?;
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(self.module)
            .name(c"main");
        let create = [vk::ComputePipelineCreateInfo::default()
            .stage(stage)
            .layout(self.layout)];
        let cache = vk::PipelineCache::null();
        // SAFETY: module and layout are of this device, and the kernel's buffers and parameters are those of the layout.
        let made = unsafe { device.create_compute_pipelines(cache, &create, None) };
        let made = made.map_err(|(_, error)| failed("prepare a kernel")(error))?;
        self.handle = made.first().copied().unwrap_or_default();
        Ok(())
    }

    /// Runs it `times` times, one after the other, each with so many groups of threads; how long all of them took.
    pub(super) fn run(&self, push: Push, groups: u32, times: u32) -> Result<Duration, GpuError> {
        self.device.run(|device, commands| {
            let compute = vk::PipelineBindPoint::COMPUTE;
            // SAFETY: the pipeline is of this device and outlives the run.
            unsafe { device.cmd_bind_pipeline(commands, compute, self.handle) };
            // SAFETY: the set has the pipeline's layout, and its buffers outlive the run.
            unsafe {
                device.cmd_bind_descriptor_sets(
                    commands,
                    compute,
                    self.layout,
                    0,
                    &[self.set],
                    &[],
                );
            }
            let stages = vk::ShaderStageFlags::COMPUTE;
            // SAFETY: the layout has a range of as many bytes for this stage.
            unsafe { device.cmd_push_constants(commands, self.layout, stages, 0, &push.bytes()) };
            for _ in 0..times {
                // SAFETY: all that the kernel uses is bound, and 65 535 groups are allowed everywhere.
                unsafe { device.cmd_dispatch(commands, groups, 1, 1) };
                let barrier = [vk::MemoryBarrier::default()
                    .src_access_mask(vk::AccessFlags::SHADER_WRITE)
                    .dst_access_mask(
                        vk::AccessFlags::SHADER_READ
                            | vk::AccessFlags::SHADER_WRITE
                            | vk::AccessFlags::HOST_READ,
                    )];
                // SAFETY: the stages are ones that every device has.
                unsafe {
                    device.cmd_pipeline_barrier(
                        commands,
                        vk::PipelineStageFlags::COMPUTE_SHADER,
                        vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::HOST,
                        vk::DependencyFlags::empty(),
                        &barrier,
                        &[],
                        &[],
                    );
                }
            }
        })
    }
}

impl Drop for Pipeline<'_> {
    fn drop(&mut self) {
        let device = &self.device.handle;
        // SAFETY: every run waits for its end, so nothing uses it; null is allowed, here and below.
        unsafe { device.destroy_pipeline(self.handle, None) };
        // SAFETY: its pipeline is gone.
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
        // SAFETY: no run uses its set, which goes with it.
        unsafe { device.destroy_descriptor_pool(self.pool, None) };
        // SAFETY: the set of this layout is gone.
        unsafe { device.destroy_descriptor_set_layout(self.bindings, None) };
        // SAFETY: its pipeline is gone.
        unsafe { device.destroy_shader_module(self.module, None) };
    }
}
