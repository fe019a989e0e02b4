// The range of a value's numbers, and the scale and zero point that follow from it.
#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/integer/dynamic_range.h"

namespace sinter::cuda {
namespace {

SINTER_DEVICE float number_at(DType t, const std::byte* at) {
  return t == DType::kFloat64 ? static_cast<float>(*reinterpret_cast<const double*>(at))
                              : *reinterpret_cast<const float*>(at);
}

// NaN changes nothing.
struct Lower {
  SINTER_DEVICE float operator()(float a, float b) const { return b < a ? b : a; }
};
struct Higher {
  SINTER_DEVICE float operator()(float a, float b) const { return b > a ? b : a; }
};

}  // namespace

// Finds the range of each block's elements, which holds zero.
SINTER_KERNEL(range_of_blocks, DynamicRangeArguments) {
  float low = 0, high = 0;
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    const float v = number_at(a.dtype, a.x + offset_of(a.box, a.steps, static_cast<uint32_t>(n)));
    low = Lower()(low, v), high = Higher()(high, v);
  }
  const Shared<float> room = shared_memory<float>(0, block_threads() / kWarp);
  low = fold_block(low, room, Lower());
  high = fold_block(high, room, Higher());
  if (thread_index() == 0) a.ranges[2 * block_x()] = low, a.ranges[2 * block_x() + 1] = high;
}

// A range that is only zero has scale 1.
SINTER_KERNEL(parameters_of_range, DynamicRangeArguments) {
  float low = 0, high = 0;
  for (int i = thread_index(); i < a.blocks; i += block_threads())
    low = Lower()(low, a.ranges[2 * i]), high = Higher()(high, a.ranges[2 * i + 1]);
  const Shared<float> room = shared_memory<float>(0, block_threads() / kWarp);
  low = fold_block(low, room, Lower());
  high = fold_block(high, room, Higher());
  if (thread_index() != 0) return;
  const float scale = low == high ? 1.0f : (high - low) / 255.0f;
  const float place = -low / scale;
  const float rounded = m_isnan(place) ? 0.0f : m_rint(place);
  const int number = static_cast<int>(rounded < 0.0f ? 0.0f : rounded > 255.0f ? 255.0f : rounded);
  const auto zero = static_cast<uint8_t>(number + a.lowest);
  a.parameters->scale = scale, a.parameters->one = 1.0f, a.parameters->zero = zero;
  if (a.scale != nullptr) *a.scale = scale;
  if (a.zero != nullptr) *a.zero = zero;
}

}  // namespace sinter::cuda
