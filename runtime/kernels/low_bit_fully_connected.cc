// LowBitFullyConnected: FullyConnected with weights of 4 or 8 bits, a scale and a zero point per block of a
// row.
#include "runtime/kernels/convert.h"
#include "runtime/kernels/product.h"
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
  SINTER_RETURN_UNLESS(a.block_size >= 1, invalid("block size %a is out of range", a.block_size));
  const int64_t blocks = w.dims[1] / a.block_size + (w.dims[1] % a.block_size != 0 ? 1 : 0);
  SINTER_RETURN_UNLESS(scales.rank == 2 && scales.dims[0] == w.dims[0] && scales.dims[1] == blocks,
                       invalid("the scales are not %a for each row of the weights", blocks));
  if (call.has_input(3)) {
    const TensorView& zeros = call.in(3);
    SINTER_RETURN_IF_ERROR(
        check_dtype(call, 3, zeros.dtype == w.dtype || (is_unsigned && zeros.dtype == x.dtype)));
    SINTER_RETURN_UNLESS(zeros.same_shape(scales), invalid("zero points and scales differ in shape"));
  }
  if (call.has_input(4)) {
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, 4, 0));
    SINTER_RETURN_UNLESS(call.in(4).rank == 1 && call.in(4).dims[0] == w.dims[0],
                         invalid("the bias is not one value per row of the weights"));
  }
  Dims dims(x.shape());
  dims.d[x.rank - 1] = w.dims[0];
  return give_output(call, 0, x.dtype, dims.span());
}

// Weights are widened a piece at a time: kPiece weights of four columns, for kRows rows.
constexpr int64_t kPiece = 128;
constexpr int64_t kRows = 64;

size_t scratch_bytes(const Product& p) {
  return static_cast<size_t>(std::min(p.depth, kPiece)) * kTile * sizeof(double);
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  *bytes = align_up(scratch_bytes(connected_product(call)), kBufferAlignment) *
           static_cast<size_t>(std::max(threads, 1));
  return ok_status();
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
  // Columns c .. c + 3 (beyond the last: zeros), values k0 .. k1 - 1.
  const auto widen = [&](int64_t column, int64_t k0, int64_t k1, double* dst) {
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
  };
  const int64_t panels = (p.columns + kTile - 1) / kTile;
  const Tiling tiling{panels, p.rows, 1, kRows, scratch_bytes(p)};
  for_tiles(tiling, context, [&](std::byte* scratch, int64_t panel, int64_t r0, int64_t r1) {
    auto* piece = reinterpret_cast<double*>(scratch);
    const int64_t c0 = panel * kTile, c1 = std::min(c0 + kTile, p.columns);
    double sums[kRows][kTile] = {};
    for (int64_t k0 = 0; k0 < p.depth; k0 += kPiece) {
      const int64_t k1 = std::min(k0 + kPiece, p.depth);
      for (int64_t c = c0; c < c0 + kTile; ++c) {
        if (c < c1)
          widen(c, k0, k1, piece + (c - c0));
        else
          for (int64_t k = 0; k < k1 - k0; ++k) piece[k * kTile + (c - c0)] = 0;
      }
      const typename Direct<T>::Reader plain;
      for (int64_t r = r0; r < r1; r += kTile)
        lane_tile<kTile>(
            piece, kTile, plain, [&](int64_t i) { return x + (r + i) * p.depth + k0; }, 1,
            [&](int64_t) { return plain; }, std::min(kTile, r1 - r), k1 - k0, sums + (r - r0));
    }
    for (int64_t r = r0; r < r1; ++r)
      for (int64_t c = c0; c < c1; ++c) {
        double sum = sums[r - r0][c - c0];
        if (bias != nullptr) sum += static_cast<double>(bias[c]);
        y[r * p.columns + c] = bounds(sum);
      }
  });
}

Status run(const OpCall& call, RunContext& context) {
  return for_float_or_half(call.in(0).dtype, [&](auto tag) {
    return low_bit<typename decltype(tag)::type>(call, context), ok_status();
  });
}

}  // namespace

const Kernel kLowBitFullyConnectedKernel =
    reference_kernel({Op::kLowBitFullyConnected, infer_call, workspace, run});

}  // namespace sinter
