// Sizes and orders of recurrent layers, which their float and integer kernels share.
#pragma once

#include "platforms/simd/simd_kernels.h"
#include "runtime/core/op_enums.h"

namespace sinter::simd {

struct RecurrentLayout {
  int64_t steps, batch, input, hidden, directions, gates;
  bool batch_first, first_is_reverse;

  // Return the rows of X, of Y and of initial and final states.
  int64_t x_row(int64_t t, int64_t b) const { return batch_first ? b * steps + t : t * batch + b; }
  int64_t y_row(int64_t t, int64_t d, int64_t b) const {
    return batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
  int64_t state_row(int64_t d, int64_t b) const { return batch_first ? b * directions + d : d * batch + b; }
  int64_t gate_rows() const { return gates * hidden; }
  bool reverse(int64_t direction) const { return first_is_reverse || direction == 1; }
};

template <class Attrs>
RecurrentLayout recurrent_layout(const OpCall& call, int64_t gates) {
  const auto& a = call.attrs<Attrs>();
  const TensorView& x = call.in(0);
  const bool batch_first = a.layout == 1;
  return {x.dims[batch_first ? 1 : 0],
          x.dims[batch_first ? 0 : 1],
          x.dims[2],
          a.hidden_size,
          a.direction == static_cast<int64_t>(RnnDirection::kBidirectional) ? 2 : 1,
          gates,
          batch_first,
          a.direction == static_cast<int64_t>(RnnDirection::kReverse)};
}

// Checks 0 <= length <= steps for each sample; `lengths` may be null.
inline Status check_lengths(const int32_t* lengths, const RecurrentLayout& l) {
  for (int64_t b = 0; lengths != nullptr && b < l.batch; ++b)
    SINTER_RETURN_UNLESS(
        lengths[b] >= 0 && lengths[b] <= l.steps,
        error(Code::kOutOfRange, "a sequence has length %a, the input %b steps", lengths[b], l.steps));
  return ok_status();
}

}  // namespace sinter::simd
