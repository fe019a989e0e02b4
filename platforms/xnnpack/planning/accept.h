// The calls that the library supports, as plain data: the library is not needed, so the converter can plan
// for other machines. Each function completes the check of a row of operators.def: operand dtypes and strides
// have been checked, *workspace is 0, and becomes the most that a run needs on any instruction set of the
// architecture.
#pragma once

#include "platforms/xnnpack/planning/product.h"
#include "platforms/xnnpack/planning/window.h"
#include "runtime/backend/target.h"

namespace sinter::xnnpack {

// Bits of a row's dtypes.
enum Dtypes : uint8_t { kFloat32 = 1, kFloat16 = 2, kFloats = kFloat32 | kFloat16, kInt8 = 4, kMixed = 8 };
enum Work : uint8_t { kComputes, kMoves };

inline constexpr int kMaxAxes = 6;  // axes that are broadcast, padded or transposed

// Returns the row of an op in a table made from operators.def, or null.
template <class Row, size_t kRows>
const Row* row_of(const Row (&table)[kRows], Op op) {
  for (const Row& row : table)
    if (row.op == op) return &row;
  return nullptr;
}

struct Request {
  const Target& target;
  const OpCall& call;
  size_t threads;  // at least 1
};

// Accepts without a check or workspace.
inline Status accept_any(const Request&, size_t*) { return ok_status(); }
Status accept_broadcast(const Request& r, size_t* workspace);
Status accept_clamp(const Request& r, size_t* workspace);
Status accept_cast(const Request& r, size_t* workspace);
Status accept_pad(const Request& r, size_t* workspace);
Status accept_transpose(const Request& r, size_t* workspace);
Status accept_mat_mul(const Request& r, size_t* workspace);
Status accept_max_pool(const Request& r, size_t* workspace);
Status accept_avg_pool(const Request& r, size_t* workspace);
Status accept_resize(const Request& r, size_t* workspace);

// Accepts binary operations with a clamp.
template <class A>
Status accept_arithmetic(const Request& r, size_t* workspace) {
  const auto& a = r.call.attrs<A>();
  SINTER_RETURN_UNLESS(a.act_min == -kInfinity && a.act_max == kInfinity,
                       unsupported("arithmetic has no clamp here"));
  return accept_broadcast(r, workspace);
}

template <class A>
inline constexpr bool kIntegers = requires(const A& a) {
  a.wide_weights;
};
// The attributes of an integer product that limit the calls that the library takes.
struct IntegerLimits {
  int64_t to, q_min, q_max, wide_weights;
};
Status accept_integer_weights(const Request& r, const IntegerLimits& limits);
Status accept_float_weights(const Request& r, double act_min, double act_max);

// Checks weights, bias, multipliers and clamp of a convolution or fully connected layer.
template <class A>
Status accept_weights(const Request& r) {
  const auto& a = r.call.attrs<A>();
  if constexpr (kIntegers<A>)
    return accept_integer_weights(r, {a.to, a.q_min, a.q_max, a.wide_weights});
  else
    return accept_float_weights(r, a.act_min, a.act_max);
}

template <class A>
Status accept_fully_connected(const Request& r, size_t*) {
  return accept_weights<A>(r);
}

Status check_transposed_window(const Window& w);
// Returns the workspace of depthwise kernels of many taps, which keep a row of sums for each thread.
size_t convolution_workspace(const Request& r, const Window& w);

template <class A>
Status accept_convolution(const Request& r, size_t* workspace) {
  Window w;
  SINTER_RETURN_IF_ERROR(accept_weights<A>(r));
  SINTER_RETURN_IF_ERROR(window_of<A>(r.call, &w));
  if constexpr (kTransposedWindow<A>) return check_transposed_window(w);
  *workspace = convolution_workspace(r, w);
  return ok_status();
}

}  // namespace sinter::xnnpack
