// The device side of the rows of operators.def: functions that create the library's operator for a call that
// accept() took, and give it its shape (build), then its addresses (set_up). One file for each family.
#pragma once

#include "platforms/xnnpack/memory.h"
#include "platforms/xnnpack/planning/product.h"
#include "platforms/xnnpack/planning/window.h"
#include "runtime/backend/backend.h"

namespace sinter::xnnpack {

// The result of a build. A dry run may stop when memory is refused; `extra` is then the rest's memory. For
// operators with weights, `parameters` has all that their packed form depends on besides constants.
struct Built {
  xnn_operator_t op = nullptr;
  size_t workspace = 0, extra = 0;
  int64_t parameters[kPackingParameters] = {};
};

struct Building {
  const OpCall& call;
  pthreadpool_t threads;  // may be null
  Creation& creation;
  Built* built;
};

// The arguments of a set_up function. `call` has final addresses.
struct SettingUp {
  const OpCall& call;
  xnn_operator_t op;
  void* workspace;
};

// The clamp of a product, and the zero points of integers.
struct ProductLimits {
  double low = -kInfinity, high = kInfinity;
  int8_t x_zero = 0, y_zero = 0;
};
template <class A>
ProductLimits limits_of(const A& a) {
  if constexpr (requires { a.q_min; })
    return {static_cast<double>(a.q_min), static_cast<double>(a.q_max), static_cast<int8_t>(a.x_zero),
            static_cast<int8_t>(a.y_zero)};
  else
    return {a.act_min, a.act_max};
}

// build_convolution.cc
struct Convolution {
  Window window;
  ProductLimits limits;
  bool depthwise = false, transposed = false;
};
Status build_window(const Building& b, const Convolution& c);
template <class A>
Status build_convolution(const Building& b) {
  Convolution c{{}, limits_of(b.call.attrs<A>()), kDepthwiseWindow<A>, kTransposedWindow<A>};
  SINTER_RETURN_IF_ERROR(window_of<A>(b.call, &c.window));
  return build_window(b, c);
}
Status set_up_convolution(const SettingUp& s);
Status set_up_deconvolution(const SettingUp& s);

// build_product.cc
Status build_layer(const Building& b, const ProductLimits& limits);
template <class A>
Status build_fully_connected(const Building& b) {
  return build_layer(b, limits_of(b.call.attrs<A>()));
}
Status build_mat_mul(const Building& b);
Status set_up_fully_connected(const SettingUp& s);
Status set_up_mat_mul(const SettingUp& s);

// build_resample.cc
Status build_max_pool(const Building& b);
Status build_avg_pool(const Building& b);
Status build_resize(const Building& b);
Status set_up_max_pool(const SettingUp& s);
Status set_up_avg_pool(const SettingUp& s);
Status set_up_resize(const SettingUp& s);

// build_elementwise.cc
Status build_function(const Building& b, xnn_unary_operator fn, const xnn_unary_params& parameters);
template <xnn_unary_operator kFunction>
Status build_unary(const Building& b) {
  return build_function(b, kFunction, {});
}
Status build_leaky_relu(const Building& b);
Status build_clamp(const Building& b);
Status build_arithmetic(const Building& b, xnn_binary_operator fn);
template <xnn_binary_operator kFunction>
Status build_binary(const Building& b) {
  return build_arithmetic(b, kFunction);
}
Status build_pad(const Building& b);
Status build_transpose(const Building& b);
Status set_up_unary(const SettingUp& s);
Status set_up_binary(const SettingUp& s);
Status set_up_pad(const SettingUp& s);
Status set_up_transpose(const SettingUp& s);

// Returns an input's bit if no run reads it.
inline uint32_t packed_nothing(const OpCall&) { return 0; }
inline uint32_t packed_weights(const OpCall&) { return 0b110; }
inline uint32_t packed_integer_weights(const OpCall&) { return 0b1110; }
inline uint32_t packed_fill(const OpCall&) { return 0b10; }
inline uint32_t packed_constant_matrix(const OpCall& call) {
  Product p;
  return mat_mul_product(call, &p).ok() && p.constant ? 0b10 : 0;
}

}  // namespace sinter::xnnpack
