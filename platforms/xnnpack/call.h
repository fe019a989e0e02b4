// Calls of the library: operands in its types, the function for the operands' dtype, and its answers as
// Status.
#pragma once

#include "platforms/xnnpack/memory.h"
#include "platforms/xnnpack/planning/window.h"
#include "runtime/backend/kernel.h"

namespace sinter::xnnpack {

// An operand's address: the library declares float16 data as void.
struct Address {
  void* at = nullptr;
  operator const float*() const { return static_cast<const float*>(at); }
  operator float*() const { return static_cast<float*>(at); }
  operator const int8_t*() const { return static_cast<const int8_t*>(at); }
  operator int8_t*() const { return static_cast<int8_t*>(at); }
  operator const int32_t*() const { return static_cast<const int32_t*>(at); }
  operator const void*() const { return at; }
  operator void*() const { return at; }
};
inline Address address(const TensorView& v) { return {v.present() ? v.data : nullptr}; }

// Returns a constant that is read while the operator is created. In a dry run it may be without data.
inline Address constant(const OpCall& call, size_t i) {
  if (!call.has_input(i)) return {};
  return {call.in(i).data != nullptr ? static_cast<void*>(call.in(i).data)
                                     : const_cast<void*>(Creation::any_bytes())};
}

inline DType operand_dtype(const OpCall& call) { return call.in(0).dtype; }
inline bool is_integer(const OpCall& call) { return operand_dtype(call) == DType::kInt8; }
inline size_t element_bytes(const OpCall& call) { return byte_width(operand_dtype(call)); }

// Calls the function of the operands' dtype; the library has one of the same parameters for each.
template <class Half, class Single, class... Args>
xnn_status call_float(DType dtype, Half* f16, Single* f32, Args... args) {
  return dtype == DType::kFloat16 ? f16(args...) : f32(args...);
}
template <class Half, class Single, class Integer, class... Args>
xnn_status call_any(DType dtype, Half* f16, Single* f32, Integer* qs8, Args... args) {
  return dtype == DType::kInt8 ? qs8(args...) : call_float(dtype, f16, f32, args...);
}
#define SINTER_XNN_FLOAT(call, name, ...) call_float(operand_dtype(call), name##_f16, name##_f32, __VA_ARGS__)
#define SINTER_XNN_ANY(call, name, ...) \
  call_any(operand_dtype(call), name##_f16, name##_f32, name##_qs8_qc8w, __VA_ARGS__)

// Returns the outcome of a creation or reshaping. In a dry run a refused block is the expected end.
Status outcome(xnn_status status, const Creation& creation, bool* stopped);
// Returns the outcome of giving an operator its addresses.
Status set_up_outcome(xnn_status status);

// Returns, in a function with a Building `b`, at the end of a dry run.
#define SINTER_XNN(expr)                                           \
  do {                                                             \
    bool stopped = false;                                          \
    SINTER_RETURN_IF_ERROR(outcome((expr), b.creation, &stopped)); \
    if (stopped) return ok_status();                               \
  } while (false)

// Returns whether the library gives the planned output of a window operation.
Status same_size(const Window& w, size_t h, size_t width);

// The library reads the multipliers of an integer product even where it packs nothing, and does not refuse
// everything that it cannot use.
Status check_multipliers(const OpCall& call);

}  // namespace sinter::xnnpack
