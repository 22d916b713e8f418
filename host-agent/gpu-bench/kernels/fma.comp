#version 450
// Single precision: the twin of fma_f32.ptx. Compiled by: glslangValidator -V --target-env vulkan1.0 fma.comp -o fma.spv
layout(local_size_x = 256) in;
layout(std430, binding = 0) writeonly buffer Out { float sums[]; };
layout(push_constant) uniform Push { uint rounds; float scale; float more; };

void main() {
    float x0 = float(gl_GlobalInvocationID.x);
    float x1 = x0 + 1.0;
    float x2 = x0 + 2.0;
    float x3 = x0 + 3.0;
    float x4 = x0 + 4.0;
    float x5 = x0 + 5.0;
    float x6 = x0 + 6.0;
    float x7 = x0 + 7.0;
    for (uint left = rounds; left != 0u; left--) {
        x0 = fma(x0, scale, more); x1 = fma(x1, scale, more); x2 = fma(x2, scale, more); x3 = fma(x3, scale, more); x4 = fma(x4, scale, more); x5 = fma(x5, scale, more); x6 = fma(x6, scale, more); x7 = fma(x7, scale, more);
        x0 = fma(x0, scale, more); x1 = fma(x1, scale, more); x2 = fma(x2, scale, more); x3 = fma(x3, scale, more); x4 = fma(x4, scale, more); x5 = fma(x5, scale, more); x6 = fma(x6, scale, more); x7 = fma(x7, scale, more);
        x0 = fma(x0, scale, more); x1 = fma(x1, scale, more); x2 = fma(x2, scale, more); x3 = fma(x3, scale, more); x4 = fma(x4, scale, more); x5 = fma(x5, scale, more); x6 = fma(x6, scale, more); x7 = fma(x7, scale, more);
        x0 = fma(x0, scale, more); x1 = fma(x1, scale, more); x2 = fma(x2, scale, more); x3 = fma(x3, scale, more); x4 = fma(x4, scale, more); x5 = fma(x5, scale, more); x6 = fma(x6, scale, more); x7 = fma(x7, scale, more);
        x0 = fma(x0, scale, more); x1 = fma(x1, scale, more); x2 = fma(x2, scale, more); x3 = fma(x3, scale, more); x4 = fma(x4, scale, more); x5 = fma(x5, scale, more); x6 = fma(x6, scale, more); x7 = fma(x7, scale, more);
        x0 = fma(x0, scale, more); x1 = fma(x1, scale, more); x2 = fma(x2, scale, more); x3 = fma(x3, scale, more); x4 = fma(x4, scale, more); x5 = fma(x5, scale, more); x6 = fma(x6, scale, more); x7 = fma(x7, scale, more);
        x0 = fma(x0, scale, more); x1 = fma(x1, scale, more); x2 = fma(x2, scale, more); x3 = fma(x3, scale, more); x4 = fma(x4, scale, more); x5 = fma(x5, scale, more); x6 = fma(x6, scale, more); x7 = fma(x7, scale, more);
        x0 = fma(x0, scale, more); x1 = fma(x1, scale, more); x2 = fma(x2, scale, more); x3 = fma(x3, scale, more); x4 = fma(x4, scale, more); x5 = fma(x5, scale, more); x6 = fma(x6, scale, more); x7 = fma(x7, scale, more);
    }
    sums[gl_GlobalInvocationID.x] = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
}
