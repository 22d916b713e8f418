// Enough of CUDA to run prover.cu on a processor, one block after the other, each thread a coroutine. The matrix
// instructions are written from the layout of their fragments in NVIDIA's PTX ISA (m16n8k32 and m8n8k16 of s8).
// Must not know anything about the kernels.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define EMULATED
#define KERNEL static void
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint4 { uint32_t x, y, z, w; };
static uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
struct Place { uint32_t x, y; };
static Place threadIdx, blockIdx, blockDim;

static std::vector<ucontext_t> threads;
static std::vector<char> is_done;
static ucontext_t scheduler;
static std::function<void()> body;
static uint32_t running;

// Every thread of the block goes as far as it can before any goes on: so a rendezvous is to give up one's turn.
static void rendezvous() {
    uint32_t me = running;
    swapcontext(&threads[me], &scheduler);
    running = me;
    threadIdx.x = me;
}
static void __syncthreads() { rendezvous(); }

static void enter() {
    body();
    is_done[running] = 1;
    swapcontext(&threads[running], &scheduler);
}

static void launch(uint32_t blocks_x, uint32_t blocks_y, uint32_t count, std::function<void()> kernel) {
    const size_t stack = 256 * 1024;
    std::vector<char> stacks(stack * count);
    blockDim = {count, 1};
    body = kernel;
    for (uint32_t y = 0; y < blocks_y; y++)
        for (uint32_t x = 0; x < blocks_x; x++) {
            blockIdx = {x, y};
            threads.assign(count, ucontext_t());
            is_done.assign(count, 0);
            for (uint32_t t = 0; t < count; t++) {
                getcontext(&threads[t]);
                threads[t].uc_stack.ss_sp = stacks.data() + stack * t;
                threads[t].uc_stack.ss_size = stack;
                threads[t].uc_link = nullptr;
                makecontext(&threads[t], enter, 0);
            }
            while (std::find(is_done.begin(), is_done.end(), 0) != is_done.end())
                for (uint32_t t = 0; t < count; t++)
                    if (!is_done[t]) {
                        running = t;
                        threadIdx = {t, 0};
                        swapcontext(&scheduler, &threads[t]);
                    }
        }
}

static inline int byte_of(uint32_t word, int at) { return (int8_t)(word >> (8 * at)); }

static inline int dot4(uint32_t a, uint32_t b, int sum) {
    for (int i = 0; i < 4; i++) sum += byte_of(a, i) * byte_of(b, i);
    return sum;
}

static uint64_t shuffled[1024];
static inline uint64_t from_lane_below(uint64_t value, int by) {
    uint32_t me = threadIdx.x;
    shuffled[me] = value;
    rendezvous();
    uint64_t got = me % 32 + by < 32 ? shuffled[me + by] : value;
    rendezvous();
    return got;
}

static uint32_t fragments[1024][6];
// Element (line, k) of the left side and (k, line) of the right one, as the warp's lanes hold them.
static inline void matrix_16_8_32(int sums[4], const uint32_t a[4], const uint32_t b[2]) {
    uint32_t me = threadIdx.x, warp = me / 32 * 32, lane = me % 32;
    for (int i = 0; i < 4; i++) fragments[me][i] = a[i];
    for (int i = 0; i < 2; i++) fragments[me][4 + i] = b[i];
    rendezvous();
    for (int c = 0; c < 4; c++) {
        int row = lane / 4 + (c >= 2 ? 8 : 0), column = lane % 4 * 2 + c % 2;
        for (int k = 0; k < 32; k++) {
            int holds_a = row % 8 * 4 + k % 16 / 4, register_a = (row >= 8 ? 1 : 0) + (k >= 16 ? 2 : 0);
            int holds_b = column * 4 + k % 16 / 4, register_b = k >= 16 ? 1 : 0;
            sums[c] += byte_of(fragments[warp + holds_a][register_a], k % 4) *
                       byte_of(fragments[warp + holds_b][4 + register_b], k % 4);
        }
    }
    rendezvous();
}
static inline void matrix_8_8_16(int sums[2], uint32_t a, uint32_t b) {
    uint32_t me = threadIdx.x, warp = me / 32 * 32, lane = me % 32;
    fragments[me][0] = a;
    fragments[me][1] = b;
    rendezvous();
    for (int c = 0; c < 2; c++) {
        int row = lane / 4, column = lane % 4 * 2 + c;
        for (int k = 0; k < 16; k++)
            sums[c] += byte_of(fragments[warp + row * 4 + k / 4][0], k % 4) *
                       byte_of(fragments[warp + column * 4 + k / 4][1], k % 4);
    }
    rendezvous();
}

// Fetches arrive as late as they may: two groups behind.
struct Fetch { uint32_t *to; uint32_t words[4]; };
static std::vector<Fetch> fetched[1024][2];
static inline void fetch16(uint32_t *to, const uint32_t *from, bool is_there) {
    Fetch fetch = {to, {0, 0, 0, 0}};
    if (is_there) memcpy(fetch.words, from, 16);
    fetched[threadIdx.x][1].push_back(fetch);
}
static std::vector<Fetch> arriving[1024];
static inline void fetches_end() {
    uint32_t me = threadIdx.x;
    for (auto &fetch : fetched[me][0]) arriving[me].push_back(fetch);
    fetched[me][0].swap(fetched[me][1]);
    fetched[me][1].clear();
}
static inline void await_all_but_one() {
    uint32_t me = threadIdx.x;
    for (auto &fetch : arriving[me]) memcpy(fetch.to, fetch.words, 16);
    arriving[me].clear();
}
