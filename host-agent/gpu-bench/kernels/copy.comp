#version 450
// Device memory: the twin of copy.ptx. Compiled by: glslangValidator -V --target-env vulkan1.0 copy.comp -o copy.spv
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer From { uvec4 from[]; };
layout(std430, binding = 1) writeonly buffer To { uvec4 to[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
    uint step = gl_NumWorkGroups.x * 256u;
    for (uint at = gl_GlobalInvocationID.x; at < count; at += step) {
        to[at] = from[at];
    }
}
