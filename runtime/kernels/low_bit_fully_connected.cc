// LowBitFullyConnected: FullyConnected with weights of 4 or 8 bits, a scale and a zero point per block of a
// row.
#include "runtime/kernels/convert.h"
#include "runtime/kernels/linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

Status infer_call(OpCall& call) {
  const auto& a = call.attrs<LowBitFullyConnectedAttrs>();
  const TensorView &x = call.in(0), &w = call.in(1), &scales = call.in(2);
  SINTER_RETURN_IF_ERROR(check_connected(call));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  const bool is_unsigned = w.dtype == DType::kUint4 || w.dtype == DType::kUint8;
  SINTER_RETURN_IF_ERROR(
      check_dtype(call, 1, is_unsigned || w.dtype == DType::kInt4 || w.dtype == DType::kInt8));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 2, 0));
  SINTER_RETURN_IF_ERROR(check_bounds(a.act_min, a.act_max));
  SINTER_CHECK(a.block_size >= 1, invalid("blocks of %a elements", a.block_size));
  const int64_t blocks = w.dims[1] / a.block_size + (w.dims[1] % a.block_size != 0 ? 1 : 0);
  SINTER_CHECK(scales.rank == 2 && scales.dims[0] == w.dims[0] && scales.dims[1] == blocks,
               invalid("the scales are not %a for each row of the weights", blocks));
  if (call.has_input(3)) {
    const TensorView& zeros = call.in(3);
    SINTER_RETURN_IF_ERROR(
        check_dtype(call, 3, zeros.dtype == w.dtype || (is_unsigned && zeros.dtype == x.dtype)));
    SINTER_CHECK(zeros.same_shape(scales), invalid("zero points and scales differ in shape"));
  }
  if (call.has_input(4)) {
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, 4, 0));
    SINTER_CHECK(call.in(4).rank == 1 && call.in(4).dims[0] == w.dims[0],
                 invalid("the bias is not one value per row of the weights"));
  }
  Dims dims(x.shape());
  dims.d[x.rank - 1] = w.dims[0];
  return give_output(call, 0, x.dtype, dims.span());
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  return product_workspace<double>(connected_product(call), threads, bytes);
}

double number(const Run& run, DType t, int64_t i) {
  return wide_kind(t) == Wide::kFloat ? run.f[i] : static_cast<double>(run.i[i]);
}

template <class T>
void low_bit(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<LowBitFullyConnectedAttrs>();
  const T* x = call.in(0).as<T>();
  const TensorView& w = call.in(1);
  const T* scales = call.in(2).as<T>();
  const TensorView zeros = call.has_input(3) ? call.in(3) : TensorView{};
  const T* bias = call.has_input(4) ? call.in(4).as<T>() : nullptr;
  T* y = call.out(0).as<T>();
  const Bounds<T> bounds(a.act_min, a.act_max);
  const Product p = connected_product(call);
  const int64_t blocks = call.in(2).dims[1];
  const auto byte_of = [](const TensorView& v, int64_t i) {
    return v.data + i * static_cast<int64_t>(byte_width(v.dtype));
  };
  multiply<double>(
      p, context,
      [&](int64_t row, double* dst) {
        for (int64_t k = 0; k < p.depth; ++k) dst[k] = static_cast<double>(x[row * p.depth + k]);
      },
      [&](int64_t column, int64_t k0, int64_t k1, double* dst) {
        Run run;
        for (int64_t k = k0; k < k1;) {
          const int64_t block = k / a.block_size, at = column * blocks + block;
          const int64_t in_block = a.block_size - k % a.block_size;
          const int64_t n = std::min({in_block, k1 - k, kRunLength});
          double zero = 0;
          if (zeros.present()) {
            read_run(zeros.dtype, byte_of(zeros, at), 0, at, 1, run);
            zero = number(run, zeros.dtype, 0);
          }
          const int64_t first = column * p.depth + k;
          read_run(w.dtype, byte_of(w, first), 1, first, n, run);
          for (int64_t i = 0; i < n; ++i, dst += kTile)
            *dst = (number(run, w.dtype, i) - zero) * static_cast<double>(scales[at]);
          k += n;
        }
      },
      [&](int64_t row, int64_t column, double sum) {
        if (bias != nullptr) sum += static_cast<double>(bias[column]);
        y[row * p.columns + column] = bounds(sum);
      });
}

Status run(const OpCall& call, RunContext& context) {
  return for_float(call.in(0).dtype, [&](auto tag) {
    return low_bit<typename decltype(tag)::type>(call, context), ok_status();
  });
}

}  // namespace

const Kernel kLowBitFullyConnectedKernel = {Op::kLowBitFullyConnected, infer_call, workspace, run};

}  // namespace sinter
