#include "platforms/xnnpack/planning/kept_bytes.h"

#include <algorithm>
#include <cstdint>

#include "runtime/backend/window.h"
#include "runtime/core/checked.h"
#include "runtime/core/op.h"

namespace sinter::xnnpack {
namespace {

constexpr uint64_t kOperator = 2048, kPointer = 8;

// Returns whether each pixel of the input is one of the output: a product of matrices, without addresses.
bool is_product(const WindowGeometry& g) {
  for (int i = 0; i < kMaxWindowAxes; ++i)
    if (g.kernel[i] != 1 || g.stride[i] != 1 || g.pad[i] != 0 || g.end_pad[i] != 0) return false;
  return true;
}

// Returns the addresses that output pixels do not share. Windows of neighbouring pixels share columns if each
// channel is computed by itself. In a transposed window an output pixel reads every stride-th tap.
template <WindowAttrs A>
uint64_t pointers(const OpCall& call) {
  const WindowGeometry g = window_geometry<A>(call);
  if (!kTransposedWindow<A> && !kDepthwiseWindow<A> && !kPoolWindow<A> && is_product(g)) return 0;
  uint64_t sum = 1;
  for (int i = 0; i < kMaxWindowAxes; ++i) {
    int64_t taps = g.kernel[i];
    if constexpr (kTransposedWindow<A>) taps = (taps + g.stride[i] - 1) / g.stride[i];
    if constexpr (kDepthwiseWindow<A> || kPoolWindow<A>)
      if (i + 1 == kMaxWindowAxes) taps = std::min(taps, g.stride[i]);
    for (const int64_t n : {g.out[i], taps})
      if (!checked_mul(sum, static_cast<uint64_t>(std::max<int64_t>(n, 0)), &sum)) return UINT64_MAX;
  }
  return sum;
}

template <class A>
uint64_t bytes(const OpCall& call) {
  uint64_t sum = 0;
  if constexpr (WindowAttrs<A>)
    if (!checked_mul(pointers<A>(call), kPointer, &sum)) return UINT64_MAX;
  return checked_add(sum, kOperator, &sum) ? sum : UINT64_MAX;
}

}  // namespace

size_t kept_bytes(const OpCall& call) {
  uint64_t sum = 0;
  switch (call.op) {
#define SINTER_OP(name, ...)        \
  case Op::k##name:                 \
    sum = bytes<name##Attrs>(call); \
    break;
#include "schemas/ops.def"
#undef SINTER_OP
  }
  return sum > SIZE_MAX ? SIZE_MAX : static_cast<size_t>(sum);
}

}  // namespace sinter::xnnpack
