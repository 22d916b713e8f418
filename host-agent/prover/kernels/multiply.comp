// A part of a tile: S[(A · B) mod 251] of some rows and some columns, both K bytes in a row. A work group makes
// 64 × 64 bytes, an invocation 4 × 4 of them. See audit/src/row.rs and substitution.rs.
#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(std430, binding = 0) readonly buffer Left { uint left[]; };
layout(std430, binding = 1) readonly buffer Right { uint right[]; };
layout(std430, binding = 2) writeonly buffer Tile { uint tile[]; };
layout(push_constant) uniform Push {
    uint inner;   // words of a row of either side
    uint rows;    // of the left side
    uint columns; // of the right side
    uint row;     // where they are in the tile
    uint column;
    uint side;    // of the tile, in bytes
    uint base;    // where the tile begins, in words
} push;

const uint STEP = 16u;
shared uint near_left[64][17];
shared uint near_right[64][17];

const uint TABLE[63] = uint[](
    0x547e0100u, 0x242ac93fu, 0x89e21c9du, 0x43123a15u, 0xb90ec0ccu, 0x83c20c71u, 0x5d1df188u,
    0x519f1a09u, 0xd060d566u, 0x67da5f07u, 0xd80631b6u, 0xebbf6a61u, 0x40f62944u, 0xb2ac5a8cu,
    0xea0de582u, 0x04a66bcdu, 0x0fe87033u, 0x6368d330u, 0xa4adc481u, 0xc5b1a36du, 0x7c961f5bu,
    0xb06cbd03u, 0x50356eaeu, 0x25f31bddu, 0x47922c22u, 0x2720a97bu, 0x3d2d9946u, 0xc7594c56u,
    0xe3f01441u, 0x87757684u, 0x64b3c3e4u, 0xa802f953u, 0x17384897u, 0x77858674u, 0xbae70b18u,
    0xa5afa234u, 0xb562cebeu, 0x8052dbd4u, 0xd9cf69b4u, 0x1ee008d6u, 0x4d8dc6abu, 0xf83e8f4bu,
    0xa0dc657fu, 0x8e584a36u, 0x7a374e57u, 0xcb289398u, 0xc88b13ecu, 0x2e9055f7u, 0x7916ee11u,
    0x6fa14f49u, 0xb7d205bbu, 0x9a913c10u, 0x45caf523u, 0xf49c2194u, 0x95269b2bu, 0xf2e15caau,
    0x730ade9eu, 0x8aef3978u, 0x2f3bed42u, 0xe6c1e9b8u, 0x5edf1972u, 0xbc32d1d7u, 0x00fa7da7u);

uint substitute(int sum) {
    // 2^31 = 187 (mod 251), and 64 = 251 - 187.
    uint at = ((uint(sum) ^ 0x80000000u) % 251u + 64u) % 251u;
    return (TABLE[at >> 2] >> ((at & 3u) * 8u)) & 0xffu;
}

int dot4(uint a, uint b, int sum) {
    for (int i = 0; i < 32; i += 8) sum += bitfieldExtract(int(a), i, 8) * bitfieldExtract(int(b), i, 8);
    return sum;
}

void main() {
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y, me = y * 16u + x;
    uint first_row = gl_WorkGroupID.y * 64u, first_column = gl_WorkGroupID.x * 64u;
    int sums[4][4];
    for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) sums[r][c] = 0;
    for (uint from = 0u; from < push.inner; from += STEP) {
        for (uint i = me; i < 64u * STEP; i += 256u) {
            uint line = i / STEP, word = i % STEP;
            uint row = first_row + line, column = first_column + line;
            near_left[line][word] = row < push.rows ? left[row * push.inner + from + word] : 0u;
            near_right[line][word] = column < push.columns ? right[column * push.inner + from + word] : 0u;
        }
        barrier();
        for (uint word = 0u; word < STEP; word++) {
            uint a[4], b[4];
            for (uint r = 0u; r < 4u; r++) a[r] = near_left[y * 4u + r][word];
            for (uint c = 0u; c < 4u; c++) b[c] = near_right[x * 4u + c][word];
            for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) sums[r][c] = dot4(a[r], b[c], sums[r][c]);
        }
        barrier();
    }
    uint column = first_column + x * 4u;
    if (column >= push.columns) return;
    for (uint r = 0u; r < 4u; r++) {
        uint row = first_row + y * 4u + r;
        if (row >= push.rows) return;
        uint bytes = 0u;
        for (int c = 0; c < 4; c++) bytes |= substitute(sums[r][c]) << (8 * c);
        tile[push.base + ((push.row + row) * push.side + push.column + column) / 4u] = bytes;
    }
}
