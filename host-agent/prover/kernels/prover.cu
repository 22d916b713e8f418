// The kernels of a proof for NVIDIA's GPUs. scripts/check-ptx makes the PTX beside this file of it, and a test runs
// this text on the processor (tests/proof/emulated.hpp) and compares every bit with the reference.
//
// ARCH is 70 (products of four bytes by ordinary threads), 75 or 80 (by matrix units).
// The definitions are those of the crate audit: keystream.rs, row.rs, substitution.rs, hash.rs, tree.rs.

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef EMULATED
#define KERNEL extern "C" __global__ void

// Four products of signed bytes and a sum.
__device__ __forceinline__ int dot4(u32 a, u32 b, int sum) { return __dp4a((int)a, (int)b, sum); }

__device__ __forceinline__ u64 from_lane_below(u64 value, int by) {
    return __shfl_down_sync(0xffffffffu, value, by);
}

#if ARCH == 75
__device__ __forceinline__ void matrix_8_8_16(int sums[2], u32 a, u32 b) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+r"(sums[0]), "+r"(sums[1]) : "r"(a), "r"(b));
}
#endif

#if ARCH >= 80
__device__ __forceinline__ void matrix_16_8_32(int sums[4], const u32 a[4], const u32 b[2]) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// Sixteen bytes on their way to shared memory; zeros where there is no source.
__device__ __forceinline__ void fetch16(u32 *to, const u32 *from, bool is_there) {
#if ARCH >= 80
    u32 at = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                 "r"(is_there ? 16 : 0) : "memory");
#else
    *(uint4 *)to = is_there ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
#endif
}

__device__ __forceinline__ void fetches_end() {
#if ARCH >= 80
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// All but the last group of fetches have arrived.
__device__ __forceinline__ void await_all_but_one() {
#if ARCH >= 80
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}
#endif

// ---- rows of the matrices -----------------------------------------------------------------------------------

#define TURN(word, by) (((word) << (by)) | ((word) >> (32 - (by))))
#define QUARTER(a, b, c, d)                       \
    s[a] += s[b]; s[d] = TURN(s[d] ^ s[a], 16);   \
    s[c] += s[d]; s[b] = TURN(s[b] ^ s[c], 12);   \
    s[a] += s[b]; s[d] = TURN(s[d] ^ s[a], 8);    \
    s[c] += s[d]; s[b] = TURN(s[b] ^ s[c], 7);

// Each byte that is 0x80 becomes 0.
__device__ __forceinline__ u32 without_least(u32 word) {
    u32 other = word ^ 0x80808080u;
    u32 is_least = ~(((other & 0x7f7f7f7fu) + 0x7f7f7f7fu) | other | 0x7f7f7f7fu);
    return word & ~is_least;
}

// ChaCha8 with the seed as key, one block of 64 bytes for each thread.
KERNEL operand(u32 *rows, const u32 *key, u32 purpose, u32 tile, u32 first_row, u32 count, u32 blocks) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (u64)count * blocks) return;
    u32 first[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    for (int i = 0; i < 8; i++) first[4 + i] = key[i];
    first[12] = (u32)(at % blocks);
    first[13] = purpose;
    first[14] = tile;
    first[15] = first_row + (u32)(at / blocks);
    u32 s[16];
    for (int i = 0; i < 16; i++) s[i] = first[i];
    for (int round = 0; round < 4; round++) {
        QUARTER(0, 4, 8, 12) QUARTER(1, 5, 9, 13) QUARTER(2, 6, 10, 14) QUARTER(3, 7, 11, 15)
        QUARTER(0, 5, 10, 15) QUARTER(1, 6, 11, 12) QUARTER(2, 7, 8, 13) QUARTER(3, 4, 9, 14)
    }
    uint4 *out = (uint4 *)(rows + at * 16);
    for (int i = 0; i < 4; i++) {
        out[i] = make_uint4(without_least(s[4 * i] + first[4 * i]), without_least(s[4 * i + 1] + first[4 * i + 1]),
                            without_least(s[4 * i + 2] + first[4 * i + 2]),
                            without_least(s[4 * i + 3] + first[4 * i + 3]));
    }
}

// ---- tiles --------------------------------------------------------------------------------------------------

#define BLOCK 128 // rows and columns that a block of 128 threads makes
#define STEP 16   // words of a row that are in shared memory at once
#define STAGES 3

__device__ const u32 TABLE[63] = {
    0x547e0100u, 0x242ac93fu, 0x89e21c9du, 0x43123a15u, 0xb90ec0ccu, 0x83c20c71u, 0x5d1df188u,
    0x519f1a09u, 0xd060d566u, 0x67da5f07u, 0xd80631b6u, 0xebbf6a61u, 0x40f62944u, 0xb2ac5a8cu,
    0xea0de582u, 0x04a66bcdu, 0x0fe87033u, 0x6368d330u, 0xa4adc481u, 0xc5b1a36du, 0x7c961f5bu,
    0xb06cbd03u, 0x50356eaeu, 0x25f31bddu, 0x47922c22u, 0x2720a97bu, 0x3d2d9946u, 0xc7594c56u,
    0xe3f01441u, 0x87757684u, 0x64b3c3e4u, 0xa802f953u, 0x17384897u, 0x77858674u, 0xbae70b18u,
    0xa5afa234u, 0xb562cebeu, 0x8052dbd4u, 0xd9cf69b4u, 0x1ee008d6u, 0x4d8dc6abu, 0xf83e8f4bu,
    0xa0dc657fu, 0x8e584a36u, 0x7a374e57u, 0xcb289398u, 0xc88b13ecu, 0x2e9055f7u, 0x7916ee11u,
    0x6fa14f49u, 0xb7d205bbu, 0x9a913c10u, 0x45caf523u, 0xf49c2194u, 0x95269b2bu, 0xf2e15caau,
    0x730ade9eu, 0x8aef3978u, 0x2f3bed42u, 0xe6c1e9b8u, 0x5edf1972u, 0xbc32d1d7u, 0x00fa7da7u};

__device__ __forceinline__ unsigned char substitute(int sum) {
    // 2^31 = 187 (mod 251), and 64 = 251 - 187.
    u32 at = (((u32)sum ^ 0x80000000u) % 251u + 64u) % 251u;
    return (unsigned char)(TABLE[at >> 2] >> ((at & 3) * 8));
}

// Where word `word` of line `line` is: groups of four words change places, so that eight lines lie in different banks.
__device__ __forceinline__ u32 place(u32 line, u32 word) {
    return line * STEP + ((((word >> 2) ^ (line >> 1)) & 3) << 2 | (word & 3));
}

__device__ __forceinline__ void fetch(u32 *near, const u32 *far, u32 first, u32 count, u32 inner, u32 from) {
    // 128 lines of four groups, by 128 threads.
    for (u32 i = threadIdx.x; i < BLOCK * STEP / 4; i += BLOCK) {
        u32 line = i / (STEP / 4), word = i % (STEP / 4) * 4;
        bool is_there = first + line < count;
        fetch16(near + place(line, word), far + (is_there ? (u64)(first + line) * inner + from + word : 0), is_there);
    }
}

__device__ __forceinline__ void put(unsigned char *tile, u32 side, u32 rows, u32 row, u32 column, int sum) {
    if (row < rows && column < side) tile[(u64)row * side + column] = substitute(sum);
}

// Some rows of a tile, all columns: S[(left · right) mod 251]. Each of the four warps makes 64 × 64 bytes.
// `tile` begins at the first of these rows; `inner` is in words.
KERNEL multiply(unsigned char *tile, const u32 *left, const u32 *right, u32 inner, u32 rows, u32 side) {
    __shared__ __align__(16) u32 near_left[STAGES][BLOCK * STEP];
    __shared__ __align__(16) u32 near_right[STAGES][BLOCK * STEP];
    u32 first_row = blockIdx.y * BLOCK, first_column = blockIdx.x * BLOCK;
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 row = warp / 2 * 64, column = warp % 2 * 64;
    u32 group = lane / 4, member = lane % 4;
    u32 steps = inner / STEP;
    int sums[4][8][4] = {};
    for (u32 stage = 0; stage < STAGES - 1; stage++) {
        if (stage < steps) {
            fetch(near_left[stage], left, first_row, rows, inner, stage * STEP);
            fetch(near_right[stage], right, first_column, side, inner, stage * STEP);
        }
        fetches_end();
    }
    for (u32 step = 0; step < steps; step++) {
        await_all_but_one();
        __syncthreads();
        u32 next = step + STAGES - 1;
        if (next < steps) {
            fetch(near_left[next % STAGES], left, first_row, rows, inner, next * STEP);
            fetch(near_right[next % STAGES], right, first_column, side, inner, next * STEP);
        }
        fetches_end();
        const u32 *a = near_left[step % STAGES], *b = near_right[step % STAGES];
#if ARCH >= 80
        #pragma unroll
        for (u32 word = 0; word < STEP; word += 8) {
            u32 lefts[4][4], rights[8][2];
            #pragma unroll
            for (u32 i = 0; i < 4; i++)
                #pragma unroll
                for (u32 part = 0; part < 4; part++)
                    lefts[i][part] = a[place(row + 16 * i + group + part % 2 * 8, word + part / 2 * 4 + member)];
            #pragma unroll
            for (u32 j = 0; j < 8; j++)
                #pragma unroll
                for (u32 part = 0; part < 2; part++)
                    rights[j][part] = b[place(column + 8 * j + group, word + part * 4 + member)];
            #pragma unroll
            for (u32 i = 0; i < 4; i++)
                #pragma unroll
                for (u32 j = 0; j < 8; j++) matrix_16_8_32(sums[i][j], lefts[i], rights[j]);
        }
#elif ARCH == 75
        #pragma unroll
        for (u32 word = 0; word < STEP; word += 4) {
            u32 lefts[8], rights[8];
            #pragma unroll
            for (u32 i = 0; i < 8; i++) lefts[i] = a[place(row + 8 * i + group, word + member)];
            #pragma unroll
            for (u32 j = 0; j < 8; j++) rights[j] = b[place(column + 8 * j + group, word + member)];
            #pragma unroll
            for (u32 i = 0; i < 8; i++)
                #pragma unroll
                for (u32 j = 0; j < 8; j++) matrix_8_8_16(sums[i / 2][j] + i % 2 * 2, lefts[i], rights[j]);
        }
#else
        // The same outputs for each thread as with matrix units.
        #pragma unroll 1
        for (u32 word = 0; word < STEP; word++) {
            u32 lefts[8], rights[16];
            #pragma unroll
            for (u32 i = 0; i < 8; i++) lefts[i] = a[place(row + 8 * i + group, word)];
            #pragma unroll
            for (u32 j = 0; j < 16; j++) rights[j] = b[place(column + j / 2 * 8 + 2 * member + j % 2, word)];
            #pragma unroll
            for (u32 i = 0; i < 8; i++)
                #pragma unroll
                for (u32 j = 0; j < 16; j++) {
                    int *sum = &sums[i / 2][j / 2][i % 2 * 2 + j % 2];
                    *sum = dot4(lefts[i], rights[j], *sum);
                }
        }
#endif
    }
    #pragma unroll
    for (u32 i = 0; i < 4; i++)
        #pragma unroll
        for (u32 j = 0; j < 8; j++)
            #pragma unroll
            for (u32 part = 0; part < 4; part++)
                put(tile, side, rows, first_row + row + 16 * i + group + part / 2 * 8,
                    first_column + column + 8 * j + 2 * member + part % 2, sums[i][j][part]);
}

// ---- leaves -------------------------------------------------------------------------------------------------

#define ROWS 4 // of a warp, which share the words of the key

// NH of each row in four lanes. A block has eight warps; `quads` is a row's length in sixteen bytes.
KERNEL leaves(u64 *out, const uint4 *tile, const u32 *key, u32 number, u32 side, u32 quads) {
    u32 lane = threadIdx.x % 32, row = (blockIdx.x * 8 + threadIdx.x / 32) * ROWS;
    u64 sums[ROWS][4] = {};
    if (row < side) {
        for (u32 quad = lane; quad < quads; quad += 32) {
            u32 words[10];
            #pragma unroll
            for (u32 i = 0; i < 10; i++) words[i] = key[4 * quad + 2 + i];
            #pragma unroll
            for (u32 r = 0; r < ROWS; r++) {
                uint4 four = tile[(u64)(row + r) * quads + quad];
                #pragma unroll
                for (u32 l = 0; l < 4; l++) {
                    sums[r][l] += (u64)(four.x + words[2 * l]) * (four.y + words[2 * l + 1]);
                    sums[r][l] += (u64)(four.z + words[2 * l + 2]) * (four.w + words[2 * l + 3]);
                }
            }
        }
    }
    #pragma unroll
    for (u32 r = 0; r < ROWS; r++)
        #pragma unroll
        for (u32 l = 0; l < 4; l++) {
            u64 sum = sums[r][l];
            #pragma unroll
            for (int by = 16; by > 0; by /= 2) sum += from_lane_below(sum, by);
            if (lane == 0 && row < side) {
                sum += (u64)(number + key[2 * l]) * (row + r + key[2 * l + 1]);
                out[(u64)(row + r) * 4 + l] = sum;
            }
        }
}

// ---- the tree -----------------------------------------------------------------------------------------------

#define MIX(a, b, c, d, first, second)                       \
    v[a] += v[b] + (first); v[d] = TURN(v[d] ^ v[a], 16);    \
    v[c] += v[d]; v[b] = TURN(v[b] ^ v[c], 20);              \
    v[a] += v[b] + (second); v[d] = TURN(v[d] ^ v[a], 24);   \
    v[c] += v[d]; v[b] = TURN(v[b] ^ v[c], 25);

// BLAKE3 of 64 bytes for each thread: one level of the tree.
KERNEL parents(u32 *above, const u32 *below, u32 count) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const u32 order[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
    u32 m[16];
    for (int i = 0; i < 16; i++) m[i] = below[(u64)at * 16 + i];
    // The hash's first value twice, no counter, 64 bytes, and: first and last block of the only chunk, root.
    u32 v[16] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu,
                 0x5be0cd19u, 0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0, 0, 64, 11};
    #pragma unroll
    for (int round = 0; round < 7; round++) {
        MIX(0, 4, 8, 12, m[0], m[1]) MIX(1, 5, 9, 13, m[2], m[3])
        MIX(2, 6, 10, 14, m[4], m[5]) MIX(3, 7, 11, 15, m[6], m[7])
        MIX(0, 5, 10, 15, m[8], m[9]) MIX(1, 6, 11, 12, m[10], m[11])
        MIX(2, 7, 8, 13, m[12], m[13]) MIX(3, 4, 9, 14, m[14], m[15])
        u32 other[16];
        #pragma unroll
        for (int i = 0; i < 16; i++) other[i] = m[order[i]];
        #pragma unroll
        for (int i = 0; i < 16; i++) m[i] = other[i];
    }
    for (int i = 0; i < 8; i++) above[(u64)at * 8 + i] = v[i] ^ v[8 + i];
}
