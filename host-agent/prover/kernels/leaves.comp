// The leaves of a tile: NH of each row in four lanes, one work group for a row. See audit/src/hash.rs.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Tile { uint tile[]; };
layout(std430, binding = 1) readonly buffer Key { uint key[]; };
layout(std430, binding = 2) writeonly buffer Leaves { uint leaves[]; };
layout(push_constant) uniform Push {
    uint number; // of the tile
    uint words;  // of a row
    uint base;   // where the tile begins, in words
    uint leaf;   // where its leaves go, in words
} push;

shared uvec2 parts[64][4];

// The sum of two 64-bit numbers, the low word first.
uvec2 plus(uvec2 a, uvec2 b) {
    uint carry;
    uint low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

uvec2 times(uint a, uint b) {
    uint high, low;
    umulExtended(a, b, high, low);
    return uvec2(low, high);
}

void main() {
    uint row = gl_WorkGroupID.x, me = gl_LocalInvocationID.x;
    uvec2 sums[4];
    for (uint lane = 0u; lane < 4u; lane++) {
        sums[lane] = me == 0u
            ? times(push.number + key[2u * lane], row + key[2u * lane + 1u])
            : uvec2(0u);
    }
    for (uint pair = me; pair < push.words / 2u; pair += 64u) {
        uint at = push.base + row * push.words + 2u * pair;
        uint first = tile[at], second = tile[at + 1u];
        for (uint lane = 0u; lane < 4u; lane++) {
            uint word = 2u * (pair + 1u + lane);
            sums[lane] = plus(sums[lane], times(first + key[word], second + key[word + 1u]));
        }
    }
    for (uint lane = 0u; lane < 4u; lane++) parts[me][lane] = sums[lane];
    for (uint half_of = 32u; half_of > 0u; half_of >>= 1) {
        barrier();
        if (me < half_of) {
            for (uint lane = 0u; lane < 4u; lane++)
                parts[me][lane] = plus(parts[me][lane], parts[me + half_of][lane]);
        }
    }
    if (me == 0u) {
        for (uint lane = 0u; lane < 4u; lane++) {
            uint at = push.leaf + row * 8u + 2u * lane;
            leaves[at] = parts[0][lane].x;
            leaves[at + 1u] = parts[0][lane].y;
        }
    }
}
