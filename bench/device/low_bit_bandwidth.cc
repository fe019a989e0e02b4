// sinter_low_bit_bandwidth: how many bytes of weights and scales a second products with weights of few bits
// read, as in a step of a decoder, beside a loop that only adds up as many bytes.
//
//     sinter_low_bit_bandwidth [MEGABYTES [ROWS [DEPTH [KIND]]]]   (default: 200, 1 row of x, 2048, all
//     kinds)
//
// For each number of bits or format, block and path, on one thread and on two. The weights are larger than
// every cache. Times are the lowest of several rounds. SINTER_CPU_CAP limits the instruction sets, as for the
// command line.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "bench/device/setup.h"
#include "platforms/simd/low_bit/low_bit.h"
#include "sinter/thread_pool.h"

namespace {

using namespace sinter;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;

template <class F>
double lowest_seconds(const F& run) {
  double lowest = 1e18;
  for (int i = 0; i < kRounds; ++i) {
    const auto start = Clock::now();
    run();
    lowest = std::min(lowest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return lowest;
}

// Adds up 64 bytes at a time, in four sums.
uint64_t sum_words(const std::byte* data, int64_t begin, int64_t end) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t sums[8] = {};
  for (int64_t i = begin * 8; i < end * 8; i += 8)
    for (int j = 0; j < 8; ++j) sums[j] += words[i + j];
  uint64_t sum = 0;
  for (const uint64_t s : sums) sum += s;
  return sum;
}

double read_rate(std::span<std::byte> data, ThreadPool* pool) {
  volatile uint64_t sink = 0;
  const auto lines = static_cast<int64_t>(data.size() / 64);
  const double seconds = lowest_seconds([&] {
    parallel_for(pool, lines, 8192,
                 [&](int64_t begin, int64_t end) { sink = sum_words(data.data(), begin, end); });
  });
  return static_cast<double>(data.size()) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  device::cap_instruction_sets();
  const auto megabytes = argc > 1 ? std::atol(argv[1]) : 200, rows = argc > 2 ? std::atol(argv[2]) : 1,
             depth = argc > 3 ? std::atol(argv[3]) : 2048;
  const char* only = argc > 4 ? argv[4] : nullptr;
  if (megabytes < 1 || rows < 1 || rows > simd::kLowBitRows || depth < 128 || depth % 128 != 0) {
    std::fprintf(
        stderr,
        "usage: sinter_low_bit_bandwidth [MEGABYTES [ROWS from 1 to 4 [DEPTH, a multiple of 128 [KIND]]]]\n");
    return 2;
  }
  const std::span<std::byte> weights = device::take(static_cast<size_t>(megabytes) << 20);
  uint32_t state = 1;
  // Every format takes these bytes for finite numbers.
  for (std::byte& b : weights)
    b = static_cast<std::byte>(((state = state * 1664525 + 1013904223) >> 24 & 0xbb) | 1);
  PthreadPool two(2);
  static constexpr float kTable[kWeightTableSize] = {-4,   -3,  -2, -1.5, -1, -0.5, -0.25, 0,
                                                     0.25, 0.5, 1,  1.5,  2,  3,    4,     6};
  struct {
    const char* name;
    WeightFormat format;
  } const kinds[] = {
#define SINTER_WEIGHT_FORMAT(name, type, bits, kind) {#name, {DType::k##type, bits, CodeKind::k##kind}},
#include "schemas/weight_formats.def"
#undef SINTER_WEIGHT_FORMAT
  };
  const auto is_asked = [&](const char* name) { return only == nullptr || std::strcmp(only, name) == 0; };
  if (std::none_of(std::begin(kinds), std::end(kinds),
                   [&](const auto& kind) { return is_asked(kind.name); })) {
    std::fprintf(stderr, "%s is not a kind of weights, which are", only);
    for (const auto& kind : kinds) std::fprintf(stderr, " %s", kind.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::printf("bits           block path  threads  GB/s  of reading\n");
  for (const auto& kind : kinds)
    for (const int64_t block : {int64_t{32}, int64_t{128}})
      for (const bool rounded : {false, true})
        for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), static_cast<ThreadPool*>(&two)}) {
          if (!is_asked(kind.name)) continue;
          if (rounded && !kind.format.is_integer()) continue;
          LowBitMatrix m;
          m.format = kind.format, m.weights = reinterpret_cast<const uint8_t*>(weights.data());
          m.table = reinterpret_cast<const std::byte*>(kTable);
          m.depth = depth, m.block = block, m.blocks = depth / block;
          m.columns = static_cast<int64_t>(weights.size()) / m.row_bytes();
          simd::LowBit g = simd::low_bit_of(m);
          g.is_rounded = rounded;
          const auto count = static_cast<size_t>(g.columns * g.blocks);
          const std::span<std::byte> scales = device::take(count * sizeof(float));
          for (size_t i = 0; i < count; ++i) reinterpret_cast<float*>(scales.data())[i] = 0.01f;
          g.scales = scales.data();
          choose_arrangement(&g, rows == 1);
          int64_t stride = 0;
          if (!arranged_floats(g, &stride)) return 1;
          const auto floats = [](int64_t n) {
            return reinterpret_cast<float*>(device::take(static_cast<size_t>(n) * sizeof(float)).data());
          };
          float *x = floats(rows * depth), *arranged = floats(rows * stride), *y = floats(rows * g.columns);
          for (int64_t i = 0; i < rows * depth; ++i) x[i] = static_cast<float>(i % 17 - 8);
          const double seconds = lowest_seconds([&] {
            for (int64_t r = 0; r < rows; ++r) arrange_row(g, x + r * depth, arranged + r * stride);
            parallel_for(pool, g.columns, 32, [&](int64_t first, int64_t last) {
              low_bit_products(g, arranged, stride, rows, first, last, nullptr, -HUGE_VALF, HUGE_VALF, y,
                               g.columns);
            });
          });
          const double rate =
              static_cast<double>(g.columns * g.row_bytes() + g.columns * g.blocks * 4) / seconds;
          std::printf("%-14s %5ld %-7s %5d %5.1f  %5.0f %%\n", kind.name, static_cast<long>(block),
                      rounded ? "int8" : "float", static_cast<int>(threads_of(pool)), rate * 1e-9,
                      100 * rate / read_rate(weights, pool));
          std::fflush(stdout);
          std::free(scales.data()), std::free(x), std::free(arranged), std::free(y);
        }
  return 0;
}
