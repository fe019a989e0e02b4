#include "platforms/xnnpack/build.h"
#include "platforms/xnnpack/call.h"

namespace sinter::xnnpack {
namespace {

struct Dims {
  size_t n = 0, at[kMaxRank] = {};
  explicit Dims(const TensorView& v) : n(v.rank) {
    for (size_t i = 0; i < n; ++i) at[i] = static_cast<size_t>(v.dims[i]);
  }
};

xnn_datatype datatype(const TensorView& v) {
  return v.dtype == DType::kFloat16 ? xnn_datatype_fp16 : xnn_datatype_fp32;
}

}  // namespace

Status build_function(const Building& b, xnn_unary_operator fn, const xnn_unary_params& parameters) {
  const TensorView &x = b.call.in(0), &y = b.call.out(0);
  const auto n = static_cast<size_t>(x.size());
  SINTER_XNN(xnn_create_unary_elementwise_nc(fn, datatype(x), datatype(y), &parameters, nullptr, nullptr, 0,
                                             &b.built->op));
  SINTER_XNN(xnn_reshape_unary_elementwise_nc(b.built->op, 1, n, n, n, b.threads));
  return ok_status();
}

Status build_leaky_relu(const Building& b) {
  xnn_unary_params p = {};
  p.leaky_relu.negative_slope = static_cast<float>(b.call.attrs<LeakyReluAttrs>().alpha);
  return build_function(b, xnn_unary_leaky_relu, p);
}

Status build_clamp(const Building& b) {
  const auto& a = b.call.attrs<ClampAttrs>();
  xnn_unary_params p = {};
  p.clamp.min = static_cast<float>(a.min), p.clamp.max = static_cast<float>(a.max);
  return build_function(b, xnn_unary_clamp, p);
}

Status build_arithmetic(const Building& b, xnn_binary_operator fn) {
  const Dims x(b.call.in(0)), y(b.call.in(1));
  SINTER_XNN(xnn_create_binary_elementwise_nd(fn, datatype(b.call.in(0)), nullptr, nullptr, nullptr, 0,
                                              &b.built->op));
  SINTER_XNN(xnn_reshape_binary_elementwise_nd(b.built->op, x.n, x.at, y.n, y.at, b.threads));
  return ok_status();
}

Status build_pad(const Building& b) {
  const auto& a = b.call.attrs<PadAttrs>();
  const float zero = 0;
  const void* fill = b.call.has_input(1) ? constant(b.call, 1) : &zero;
  const Dims x(b.call.in(0));
  size_t begin[kMaxRank] = {}, end[kMaxRank] = {};
  for (size_t i = 0; i < x.n; ++i) {
    begin[i] = static_cast<size_t>(a.pads[static_cast<int>(i)]);
    end[i] = static_cast<size_t>(a.pads[static_cast<int>(x.n + i)]);
  }
  // The functions are named by the width of an element.
  if (element_bytes(b.call) == 2) {
    SINTER_XNN(xnn_create_constant_pad_nd_x16(fill, 0, &b.built->op));
    SINTER_XNN(xnn_reshape_constant_pad_nd_x16(b.built->op, x.n, x.at, begin, end, b.threads));
    return ok_status();
  }
  SINTER_XNN(xnn_create_constant_pad_nd_x32(fill, 0, &b.built->op));
  SINTER_XNN(xnn_reshape_constant_pad_nd_x32(b.built->op, x.n, x.at, begin, end, b.threads));
  return ok_status();
}

Status build_transpose(const Building& b) {
  const auto& a = b.call.attrs<TransposeAttrs>();
  const Dims x(b.call.in(0));
  size_t perm[kMaxRank] = {};
  for (size_t i = 0; i < x.n; ++i) perm[i] = static_cast<size_t>(a.perm[static_cast<int>(i)]);
  SINTER_XNN(xnn_create_transpose_nd_x16(0, &b.built->op));
  SINTER_XNN(xnn_reshape_transpose_nd_x16(b.built->op, x.n, x.at, perm, b.threads));
  return ok_status();
}

Status set_up_unary(const SettingUp& s) {
  return set_up_outcome(xnn_setup_unary_elementwise_nc(s.op, address(s.call.in(0)), address(s.call.out(0))));
}

Status set_up_binary(const SettingUp& s) {
  return set_up_outcome(xnn_setup_binary_elementwise_nd(s.op, address(s.call.in(0)), address(s.call.in(1)),
                                                        address(s.call.out(0))));
}

Status set_up_pad(const SettingUp& s) {
  const Address x = address(s.call.in(0)), y = address(s.call.out(0));
  return set_up_outcome(element_bytes(s.call) == 2 ? xnn_setup_constant_pad_nd_x16(s.op, x, y)
                                                   : xnn_setup_constant_pad_nd_x32(s.op, x, y));
}

Status set_up_transpose(const SettingUp& s) {
  return set_up_outcome(xnn_setup_transpose_nd_x16(s.op, address(s.call.in(0)), address(s.call.out(0))));
}

}  // namespace sinter::xnnpack
