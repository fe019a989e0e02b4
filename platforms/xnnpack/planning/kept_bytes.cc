#include "platforms/xnnpack/planning/kept_bytes.h"

#include <algorithm>
#include <cstdint>

#include "runtime/backend/window.h"
#include "runtime/core/checked.h"
#include "runtime/core/op.h"

namespace sinter::xnnpack {
namespace {

constexpr uint64_t kOperator = 2048, kPointer = 8;

// Windows of neighbouring output pixels share the addresses of the columns that they have in common where
// each channel is computed by itself.
template <WindowAttrs A>
uint64_t pointers(const OpCall& call) {
  const WindowGeometry g = window_geometry<A>(call);
  const auto n = [](int64_t v) { return static_cast<uint64_t>(std::max<int64_t>(v, 0)); };
  uint64_t columns = n(g.out[2]), rows = n(g.out[0]);
  uint64_t each = n(g.kernel[2]);
  if constexpr (kDepthwiseWindow<A> || kPoolWindow<A>) each = std::min(each, n(g.stride[2]));
  if (!checked_mul(rows, n(g.out[1]), &rows) || !checked_mul(rows, n(g.kernel[0]), &rows) ||
      !checked_mul(rows, n(g.kernel[1]), &rows) || !checked_mul(columns, each, &columns) ||
      !checked_mul(rows, columns, &rows))
    return UINT64_MAX;
  return rows;
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
