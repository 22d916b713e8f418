// One tile through all kernels of prover.cu: prints its bytes, its leaves and its root.
// Arguments: side, inner length, tile; standard input: 32 bytes of seed, then the words of the key.
#include "emulated.hpp"
#include "../../kernels/prover.cu"

int main(int, char **arguments) {
    u32 side = atoi(arguments[1]), inner = atoi(arguments[2]), number = atoi(arguments[3]);
    std::vector<u32> seed(8), key(side / 4 + 8);
    if (fread(seed.data(), 4, 8, stdin) != 8 || fread(key.data(), 4, key.size(), stdin) != key.size()) return 1;
    u32 blocks = inner / 64, all = side * blocks;
    std::vector<u32> left(all * 16), right(all * 16);
    launch((all + 63) / 64, 1, 64, [&] { operand(left.data(), seed.data(), 0x41, number, 0, side, blocks); });
    launch((all + 63) / 64, 1, 64, [&] { operand(right.data(), seed.data(), 0x42, number, 0, side, blocks); });
    std::vector<unsigned char> tile(side * side);
    u32 half = side / 2, squares = (side + 127) / 128;
    // In two parts, as a tile that is larger than what fits beside it.
    for (u32 row = 0; row < side; row += half)
        launch(squares, (half + 127) / 128, 128, [&] {
            multiply(tile.data() + row * side, left.data() + row * (inner / 4), right.data(), inner / 4, half, side);
        });
    std::vector<u64> nodes(side * 4);
    launch((side + 31) / 32, 1, 256, [&] {
        leaves(nodes.data(), (const uint4 *)tile.data(), key.data(), number, side, side / 16);
    });
    fwrite(tile.data(), 1, tile.size(), stdout);
    fwrite(nodes.data(), 8, nodes.size(), stdout);
    for (u32 count = side / 2; count > 0; count /= 2) {
        std::vector<u64> above(count * 4);
        launch((count + 63) / 64, 1, 64, [&] { parents((u32 *)above.data(), (const u32 *)nodes.data(), count); });
        nodes = above;
    }
    fwrite(nodes.data(), 8, 4, stdout);
    return 0;
}
