// LayerNorm and RmsNorm: over the last axes; statistics and scaling in double, one rounding at the end.
#include <cmath>

#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

// Checks that x, scale (and bias) have one dtype and the parameters broadcast to x.
Status check_operands(const OpCall& call, int64_t axis, double epsilon) {
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_axis(axis, x.rank));
  SINTER_RETURN_UNLESS(epsilon >= 0, invalid("epsilon is negative or not a number"));
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (!call.has_input(i)) continue;
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, i, 0));
    SINTER_RETURN_IF_ERROR(check_broadcasts_to(call.in(i).shape(), x.shape()));
  }
  return ok_status();
}

// The statistics are float32, or float64 where x is.
Status infer_layer_norm(OpCall& call) {
  const auto& a = call.attrs<LayerNormAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_operands(call, a.axis, a.epsilon));
  Dims outer(x.shape());
  for (int axis = static_cast<int>(a.axis); axis < x.rank; ++axis) outer.d[axis] = 1;
  const DType statistics = x.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  for (size_t i = 1; i < call.outputs.size(); ++i)
    SINTER_RETURN_IF_ERROR(give_output(call, i, statistics, outer.span()));
  return infer_like_input(call);
}
Status infer_rms_norm(OpCall& call) {
  const auto& a = call.attrs<RmsNormAttrs>();
  SINTER_RETURN_IF_ERROR(check_operands(call, a.axis, a.epsilon));
  return infer_like_input(call);
}

// Normalises all rows; x is dense, so a row's elements are `inner` neighbours. With `centre` the mean is
// subtracted. LayerNorm may be used for its statistics alone.
template <class T>
void normalise(const OpCall& call, int axis, double epsilon, bool centre) {
  const bool wants_rows = call.has_output(0);
  const TensorView &x = call.in(0), &y = wants_rows ? call.out(0) : x;
  const TensorView scale = broadcast_view(call.in(1), x.shape());
  const bool has_bias = call.has_input(2);
  const TensorView bias = has_bias ? broadcast_view(call.in(2), x.shape()) : scale;
  const uint32_t inner_axes = ~0u << axis;
  int64_t inner = 1, row = 0;
  for (int i = axis; i < x.rank; ++i) inner *= x.dims[i];
  Nest<4> elements = make_nest_over(inner_axes, x, y, x, scale, bias);
  for_each_element(make_nest_over(~inner_axes, x, y, x, scale, bias), [&](std::byte* const(&p)[4]) {
    constexpr int64_t kWidth = sizeof(T);
    double mean = 0, squares = 0;
    if (centre) {
      for (int64_t i = 0; i < inner; ++i) mean += static_cast<double>(load<T>(p[1] + i * kWidth));
      mean /= static_cast<double>(inner);
    }
    for (int64_t i = 0; i < inner; ++i) {
      const double d = static_cast<double>(load<T>(p[1] + i * kWidth)) - mean;
      squares += d * d;
    }
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(inner) + epsilon);
    for (int k = 0; k < 4; ++k) elements.data[k] = p[k];
    if (wants_rows)
      for_each_row(elements, [&](std::byte* const(&q)[4], const int64_t(&s)[4], int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          double v = (static_cast<double>(load<T>(q[1] + i * s[1])) - mean) * inverse;
          v *= static_cast<double>(load<T>(q[2] + i * s[2]));
          if (has_bias) v += static_cast<double>(load<T>(q[3] + i * s[3]));
          store<T>(q[0] + i * s[0], static_cast<T>(v));
        }
      });
    if (call.has_output(1)) store<T>(call.out(1).data + row * kWidth, static_cast<T>(mean));
    if (call.has_output(2)) store<T>(call.out(2).data + row * kWidth, static_cast<T>(inverse));
    ++row;
  });
}

Status run_layer_norm(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<LayerNormAttrs>();
  return for_float(call.in(0).dtype, [&](auto tag) {
    normalise<typename decltype(tag)::type>(call, static_cast<int>(a.axis), a.epsilon, true);
    return ok_status();
  });
}
Status run_rms_norm(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<RmsNormAttrs>();
  return for_float(call.in(0).dtype, [&](auto tag) {
    normalise<typename decltype(tag)::type>(call, static_cast<int>(a.axis), a.epsilon, false);
    return ok_status();
  });
}

}  // namespace

const Kernel kLayerNormKernel = reference_kernel({Op::kLayerNorm, infer_layer_norm, nullptr, run_layer_norm});
const Kernel kRmsNormKernel = reference_kernel({Op::kRmsNorm, infer_rms_norm, nullptr, run_rms_norm});

}  // namespace sinter
