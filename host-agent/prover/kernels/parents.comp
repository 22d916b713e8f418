// One level of the tree: BLAKE3 of 64 bytes for each invocation, 32 bytes out. See audit/src/tree.rs.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Below { uint below[]; };
layout(std430, binding = 1) writeonly buffer Above { uint above[]; };
layout(push_constant) uniform Push {
    uint count; // of nodes above
} push;

const uint IV[8] = uint[](
    0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
    0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u);
const uint ORDER[16] = uint[](
    2u, 6u, 3u, 10u, 7u, 0u, 4u, 13u, 1u, 11u, 12u, 5u, 9u, 14u, 15u, 8u);

uint v[16];

uint turn(uint word, uint by) { return (word >> by) | (word << (32u - by)); }

void mixed(uint a, uint b, uint c, uint d, uint first, uint second) {
    v[a] += v[b] + first; v[d] = turn(v[d] ^ v[a], 16u);
    v[c] += v[d]; v[b] = turn(v[b] ^ v[c], 12u);
    v[a] += v[b] + second; v[d] = turn(v[d] ^ v[a], 8u);
    v[c] += v[d]; v[b] = turn(v[b] ^ v[c], 7u);
}

void main() {
    uint at = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * 64u;
    if (at >= push.count) return;
    uint m[16];
    for (uint i = 0u; i < 16u; i++) m[i] = below[at * 16u + i];
    for (uint i = 0u; i < 8u; i++) v[i] = IV[i];
    for (uint i = 0u; i < 4u; i++) v[8u + i] = IV[i];
    v[12] = 0u; v[13] = 0u; // counter
    v[14] = 64u;            // bytes
    v[15] = 11u;            // first and last block of the only chunk, and the root
    for (uint round = 0u; round < 7u; round++) {
        mixed(0u, 4u, 8u, 12u, m[0], m[1]); mixed(1u, 5u, 9u, 13u, m[2], m[3]);
        mixed(2u, 6u, 10u, 14u, m[4], m[5]); mixed(3u, 7u, 11u, 15u, m[6], m[7]);
        mixed(0u, 5u, 10u, 15u, m[8], m[9]); mixed(1u, 6u, 11u, 12u, m[10], m[11]);
        mixed(2u, 7u, 8u, 13u, m[12], m[13]); mixed(3u, 4u, 9u, 14u, m[14], m[15]);
        uint other[16];
        for (uint i = 0u; i < 16u; i++) other[i] = m[ORDER[i]];
        m = other;
    }
    for (uint i = 0u; i < 8u; i++) above[at * 8u + i] = v[i] ^ v[8u + i];
}
