// QuantizeRows: a row becomes int8 numbers and the scale that they are multiplied with.
//
// The scale is the row's largest magnitude / 127, in float32; the numbers are x / scale, rounded half to
// even. A row that is not finite has the scale NaN, and zeros as numbers.
#include <cmath>

#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_quantize_rows(OpCall& call) {
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_UNLESS(x.rank >= 1, invalid("a scalar has no rows"));
  SINTER_RETURN_IF_ERROR(give_output(call, 0, DType::kInt8, x.shape()));
  return give_output(call, 1, DType::kFloat32, x.shape().first(x.rank - 1u));
}

// Returns the scale of a row; NaN if an element is not finite in float32.
template <class T>
float scale_of(const T* x, int64_t size) {
  float most = 0;
  for (int64_t i = 0; i < size; ++i) {
    const float magnitude = std::fabs(static_cast<float>(x[i]));
    if (!std::isfinite(magnitude)) return std::numeric_limits<float>::quiet_NaN();
    most = std::max(most, magnitude);
  }
  return most / 127;
}

template <class T>
void quantize_row(const T* x, int64_t size, float scale, int8_t* y) {
  // The row has zeros, or numbers so small that float32 has no scale for them.
  if (!(scale > 0)) return void(std::fill_n(y, size, int8_t{0}));
  for (int64_t i = 0; i < size; ++i) {
    const float rounded = std::nearbyint(static_cast<float>(x[i]) / scale);
    y[i] = static_cast<int8_t>(std::clamp(rounded, -127.0f, 127.0f));
  }
}

Status run_quantize_rows(const OpCall& call, RunContext&) {
  const TensorView& x = call.in(0);
  const int64_t size = x.dims[x.rank - 1], rows = product(x, 0, x.rank - 1);
  return for_float_or_half(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x.as<T>() + r * size;
      const float scale = scale_of(row, size);
      if (call.has_output(0)) quantize_row(row, size, scale, call.out(0).as<int8_t>() + r * size);
      if (call.has_output(1)) call.out(1).as<float>()[r] = scale;
    }
    return ok_status();
  });
}

}  // namespace

const Kernel kQuantizeRowsKernel =
    reference_kernel({Op::kQuantizeRows, infer_quantize_rows, nullptr, run_quantize_rows});

}  // namespace sinter
