// Rows of a proof's matrices: ChaCha8 with the seed as key, one block of 64 bytes for each invocation, −128 taken
// for 0. See audit/src/keystream.rs and row.rs.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) writeonly buffer Rows { uint rows[]; };
layout(push_constant) uniform Push {
    uint key[8];
    uint purpose;
    uint tile;
    uint first;  // number of the first row
    uint count;  // of rows
    uint blocks; // of 64 bytes in a row
} push;

uint s[16];

uint turn(uint word, uint by) { return (word << by) | (word >> (32u - by)); }

void quarter(uint a, uint b, uint c, uint d) {
    s[a] += s[b]; s[d] = turn(s[d] ^ s[a], 16u);
    s[c] += s[d]; s[b] = turn(s[b] ^ s[c], 12u);
    s[a] += s[b]; s[d] = turn(s[d] ^ s[a], 8u);
    s[c] += s[d]; s[b] = turn(s[b] ^ s[c], 7u);
}

// Each byte that is 0x80 becomes 0.
uint without_least(uint word) {
    uint other = word ^ 0x80808080u;
    uint is_least = ~(((other & 0x7f7f7f7fu) + 0x7f7f7f7fu) | other | 0x7f7f7f7fu);
    return word & ~is_least;
}

void main() {
    uint at = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * 64u;
    if (at >= push.count * push.blocks) return;
    uint first[16];
    first[0] = 0x61707865u; first[1] = 0x3320646eu; first[2] = 0x79622d32u; first[3] = 0x6b206574u;
    for (uint i = 0u; i < 8u; i++) first[4u + i] = push.key[i];
    first[12] = at % push.blocks;
    first[13] = push.purpose; first[14] = push.tile; first[15] = push.first + at / push.blocks;
    for (uint i = 0u; i < 16u; i++) s[i] = first[i];
    for (uint round = 0u; round < 4u; round++) {
        quarter(0u, 4u, 8u, 12u); quarter(1u, 5u, 9u, 13u);
        quarter(2u, 6u, 10u, 14u); quarter(3u, 7u, 11u, 15u);
        quarter(0u, 5u, 10u, 15u); quarter(1u, 6u, 11u, 12u);
        quarter(2u, 7u, 8u, 13u); quarter(3u, 4u, 9u, 14u);
    }
    for (uint i = 0u; i < 16u; i++) rows[at * 16u + i] = without_least(s[i] + first[i]);
}
