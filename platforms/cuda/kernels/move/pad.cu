// Pad: each element of the result finds the element of the operand that its place repeats.
#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/kernels/move/pad.h"

namespace sinter::cuda {
namespace {

// Returns the axis' element at place `at` of the result; one that is not within the axis is the fill value.
SINTER_DEVICE int32_t source(PadKind kind, const PadAxis& axis, uint32_t at) {
  const int32_t i = static_cast<int32_t>(at) - axis.begin;
  if (kind == PadKind::kConstant) return i;
  if (kind == PadKind::kEdge || axis.dim == 1) return i < 0 ? 0 : i < axis.dim ? i : axis.dim - 1;
  uint32_t rest;
  axis.period.divide(at + axis.phase, &rest);
  const auto within = static_cast<int32_t>(rest);
  return within < axis.dim ? within : static_cast<int32_t>(axis.period.divisor) - within;
}

// Returns the fill value, repeated through 8 bytes.
SINTER_DEVICE uint64_t repeated_fill(const PadArguments& a) {
  if (a.fill == nullptr) return 0;
  switch (a.fill_width) {
    case 1:
      return load<uint8_t>(a.fill) * 0x0101010101010101u;
    case 2:
      return load<uint16_t>(a.fill) * 0x0001000100010001u;
    case 4:
      return load<uint32_t>(a.fill) * 0x0000000100000001u;
    default:
      return load<uint64_t>(a.fill);
  }
}

template <class T>
SINTER_DEVICE void pad(const PadArguments& a) {
  const uint64_t repeated = repeated_fill(a);
  T fill;
  if constexpr (sizeof(T) == 16)
    fill = {{repeated, repeated}};
  else
    fill = static_cast<T>(repeated);
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    auto rest = static_cast<uint32_t>(n);
    int64_t to = 0, from = 0;
    bool inside = true;
    for (int i = a.box.rank - 1; i >= 0; --i) {
      uint32_t at = rest;
      if (i > 0) rest = a.box.dims[i].divide(rest, &at);
      const int32_t s = source(a.kind, a.axes[i], at);
      inside = inside && static_cast<uint32_t>(s) < static_cast<uint32_t>(a.axes[i].dim);
      to += at * a.steps[0].of[i];
      from += s * a.steps[1].of[i];
    }
    T v = fill;
    if (inside) v = load<T>(a.from + from);
    store(a.to + to, v);
  }
}

}  // namespace

SINTER_KERNEL(pad, PadArguments) {
  for_width(a.width, [&](auto type) { pad<typename decltype(type)::type>(a); });
}

}  // namespace sinter::cuda
