// Checks of operands by which kernels infer the types and shapes of results.
#pragma once

#include <algorithm>
#include <span>

#include "runtime/backend/kernel.h"

namespace sinter {

// A shape being put together.
struct Dims {
  int rank = 0;
  int64_t d[kMaxRank] = {};

  Dims() = default;
  explicit Dims(std::span<const int64_t> shape) : rank(static_cast<int>(shape.size())) {
    std::copy(shape.begin(), shape.end(), d);
  }
  Status push(int64_t dim) {
    SINTER_RETURN_UNLESS(rank < kMaxRank, unsupported("the result has more than %a axes", kMaxRank));
    d[rank++] = dim;
    return ok_status();
  }
  std::span<const int64_t> span() const { return {d, static_cast<size_t>(rank)}; }
};

// Sets output i if it is used. Refuses dims that are negative or whose strides would not fit (a zero beside
// huge dims included).
inline Status give_output(OpCall& call, size_t i, DType dtype, std::span<const int64_t> dims) {
  int64_t n = 1;
  for (const int64_t d : dims)
    SINTER_RETURN_UNLESS(d >= 0 && checked_mul(n, std::max<int64_t>(d, 1), &n),
                         invalid("the result is too large"));
  int64_t bits = 0;
  SINTER_RETURN_UNLESS(dims.size() <= kMaxRank && checked_mul<int64_t>(n, 64, &bits),
                       invalid("the result is too large"));
  set_output(call, i, dtype, dims);
  return ok_status();
}

inline Status check_axis(int64_t axis, int rank) {
  SINTER_RETURN_UNLESS(axis >= 0 && axis < rank,
                       invalid("axis %a is outside a value of rank %b", axis, rank));
  return ok_status();
}
// Refuses a `value` that is not one of 0 .. count - 1.
inline Status check_code(int64_t value, int64_t count) {
  SINTER_RETURN_UNLESS(value >= 0 && value < count, invalid("code %a is not below %b", value, count));
  return ok_status();
}
inline Status check_same_dtype(const OpCall& call, size_t i, size_t j) {
  SINTER_RETURN_UNLESS(call.in(i).dtype == call.in(j).dtype,
                       invalid("its type %A differs from that of input %b",
                               static_cast<int64_t>(call.in(i).dtype), static_cast<int64_t>(j))
                           .of_input(i));
  return ok_status();
}
// Returns whether activations may have this type of floats in a graph (they compute after widening).
constexpr bool is_compute_float(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 || t == DType::kBFloat16;
}
// Returns the type in which elements of a type are computed: Computed<T>.
constexpr DType computed_dtype(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t;
}
constexpr bool is_number(DType t) { return is_compute_float(t) || is_integer(t); }
// Checks an operand that is not rounded to the 16 bits of operand 0.
inline Status check_computed_dtype(const OpCall& call, size_t i) {
  const DType t = computed_dtype(call.in(0).dtype);
  SINTER_RETURN_UNLESS(call.in(i).dtype == t,
                       invalid("its type %A is not %B, in which the operation computes",
                               static_cast<int64_t>(call.in(i).dtype), static_cast<int64_t>(t))
                           .of_input(i));
  return ok_status();
}
inline Status check_dtype(const OpCall& call, size_t i, bool allowed) {
  SINTER_RETURN_UNLESS(allowed, unsupported("its type %A is not one that the operation takes",
                                            static_cast<int64_t>(call.in(i).dtype))
                                    .of_input(i));
  return ok_status();
}

// *dims becomes the common (NumPy) broadcast shape of *dims and `shape`.
inline Status broadcast_into(Dims* dims, std::span<const int64_t> shape) {
  Dims result;
  const int own = static_cast<int>(shape.size());
  result.rank = std::max(dims->rank, own);
  for (int i = 0; i < result.rank; ++i) {
    const int from_a = i - (result.rank - dims->rank), from_b = i - (result.rank - own);
    const int64_t a = from_a < 0 ? 1 : dims->d[from_a], b = from_b < 0 ? 1 : shape[from_b];
    SINTER_RETURN_UNLESS(a == b || a == 1 || b == 1, invalid("dims %a and %b do not broadcast", a, b));
    result.d[i] = a == 1 ? b : a;
  }
  *dims = result;
  return ok_status();
}
// Refuses a `shape` that does not broadcast to `dims`, or changes them.
inline Status check_broadcasts_to(std::span<const int64_t> shape, std::span<const int64_t> dims) {
  Dims joint(dims);
  SINTER_RETURN_IF_ERROR(broadcast_into(&joint, shape));
  SINTER_RETURN_UNLESS(std::equal(dims.begin(), dims.end(), joint.d, joint.d + joint.rank),
                       invalid("the value does not broadcast one way"));
  return ok_status();
}
// Gives output 0 the type and shape of input 0.
inline Status infer_like_input(OpCall& call) {
  return give_output(call, 0, call.in(0).dtype, call.in(0).shape());
}
// Does the same; input 0 must have a type of floats that kernels compute in.
inline Status infer_float(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(call.in(0).dtype)));
  return infer_like_input(call);
}

}  // namespace sinter
