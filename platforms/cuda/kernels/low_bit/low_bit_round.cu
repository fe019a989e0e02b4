// Rounds blocks of x to integers of 8 bits, a warp for each.
#include "platforms/cuda/kernels/integer/rounded_block.h"
#include "platforms/cuda/kernels/low_bit/low_bit_numbers.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE void round_blocks(const LowBitRoundArguments& a) {
  const int64_t count = int64_t{a.rows} * a.blocks.divisor, warps = global_threads() / kWarp;
  for (int64_t n = global_thread() / kWarp; n < count; n += warps) {
    uint32_t block;
    const uint32_t row = a.blocks.divide(static_cast<uint32_t>(n), &block);
    const uint32_t first = block * a.block;
    const uint32_t size = a.depth - first < a.block ? a.depth - first : a.block;
    const T* x = reinterpret_cast<const T*>(a.x) + int64_t{row} * a.depth + first;
    T* to = reinterpret_cast<T*>(a.rounded) + int64_t{row} * a.depth + first;
    const float scale = round_by_warp(x, size, [&](uint32_t i, float q) {
      if constexpr (sizeof(T) == 8)
        narrow(static_cast<double>(q), to + i);
      else
        narrow(q, to + i);
    });
    if (lane() == 0) a.scales[n] = scale;
  }
}

}  // namespace

SINTER_KERNEL(low_bit_round, LowBitRoundArguments) {
  switch (a.kind) {
    case FloatKind::kHalf:
      return round_blocks<Float16>(a);
    case FloatKind::kBHalf:
      return round_blocks<BFloat16>(a);
    case FloatKind::kDouble:
      return round_blocks<double>(a);
    default:
      return round_blocks<float>(a);
  }
}

}  // namespace sinter::cuda
