// LowBitFullyConnected: FullyConnected with weights of a format of few bits.
#include "runtime/backend/rounded_block.h"
#include "runtime/kernels/low_bit_weights.h"

namespace sinter {
namespace {

using namespace linear;

Status check_weights(const OpCall& call, const LowBitFullyConnectedAttrs& a) {
  const TensorView &x = call.in(0), &w = call.in(1);
  SINTER_RETURN_UNLESS(x.rank >= 1 && w.rank == 2,
                       invalid("x needs an axis and the weights two, not %a and %b", x.rank, w.rank));
  SINTER_RETURN_IF_ERROR(check_dims(x));
  SINTER_RETURN_IF_ERROR(check_dims(w));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_bounds(a.act_min, a.act_max));
  SINTER_RETURN_IF_ERROR(check_low_bit_operands(call, a.bits, a.block_size));
  SINTER_RETURN_UNLESS(a.activation_bits == 0 || a.activation_bits == 8,
                       invalid("activations of %a bits are not supported", a.activation_bits));
  SINTER_RETURN_UNLESS(a.activation_bits == 0 || low_bit_matrix(call).format.is_integer(),
                       invalid("activations in 8 bits need weights that are integers"));
  return ok_status();
}

Status infer_low_bit_fully_connected(OpCall& call) {
  const auto& a = call.attrs<LowBitFullyConnectedAttrs>();
  const TensorView &x = call.in(0), &w = call.in(1);
  SINTER_RETURN_IF_ERROR(check_weights(call, a));
  if (call.has_input(4)) {
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, 4, 0));
    SINTER_RETURN_UNLESS(call.in(4).rank == 1 && call.in(4).dims[0] == w.dims[0],
                         invalid("the bias is not one value per row of the weights"));
  }
  Dims dims(x.shape());
  dims.d[x.rank - 1] = w.dims[0];
  return give_output(call, 0, x.dtype, dims.span());
}

using Sums = double[kRows][kTile];

size_t low_bit_scratch(const OpCall& call) {
  const bool rounded = call.attrs<LowBitFullyConnectedAttrs>().activation_bits != 0;
  return static_cast<size_t>(std::min(connected_product(call).depth, kPiece)) * kTile * sizeof(double) +
         (rounded ? sizeof(Sums) : 0);
}

Status low_bit_fully_connected_workspace(const OpCall& call, int threads, size_t* bytes) {
  *bytes = align_up(low_bit_scratch(call), kBufferAlignment) * static_cast<size_t>(std::max(threads, 1));
  return ok_status();
}

// Multiplies rows of x, `depth` apart, by weights.
template <class T>
void float_sums(const LowBitReader& weights, const T* x, int64_t rows, int64_t depth, int64_t c0, int64_t c1,
                double* piece, Sums sums) {
  for (int64_t k0 = 0; k0 < depth; k0 += kPiece) {
    const int64_t k1 = std::min(k0 + kPiece, depth);
    weights.read_panel(c0, c1, k0, k1, true, piece);
    const typename Direct<T>::Reader plain;
    for (int64_t r = 0; r < rows; r += kTile)
      lane_tile<kTile>(
          piece, kTile, plain, [&](int64_t i) { return x + (r + i) * depth + k0; }, 1,
          [&](int64_t) { return plain; }, std::min(kTile, rows - r), k1 - k0, sums + r);
  }
}

// Does the same with blocks of x rounded to int8. Sums of a block are exact where zero points are integers.
// They are behind the weights in the scratch memory.
template <class T>
void integer_sums(const LowBitReader& weights, int64_t block, const T* x, int64_t rows, int64_t depth,
                  int64_t c0, int64_t c1, double* piece, Sums sums) {
  for (int64_t b = 0; b < weights.blocks(); ++b) {
    const int64_t first = b * block, last = depth - first < block ? depth : first + block;
    float scales[kRows];
    for (int64_t r = 0; r < rows; ++r) scales[r] = rounded_block_scale(x + r * depth + first, last - first);
    auto& of_block = *reinterpret_cast<Sums*>(piece + std::min(depth, kPiece) * kTile);
    std::fill_n(&of_block[0][0], kRows * kTile, 0.0);
    for (int64_t k0 = first; k0 < last; k0 += kPiece) {
      const int64_t k1 = std::min(k0 + kPiece, last);
      weights.read_panel(c0, c1, k0, k1, false, piece);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = k0; k < k1; ++k) {
          const auto q =
              static_cast<double>(rounded_to_int8(static_cast<float>(x[r * depth + k]), scales[r]));
          for (int64_t c = 0; c < kTile; ++c) of_block[r][c] += q * piece[(k - k0) * kTile + c];
        }
    }
    for (int64_t c = c0; c < c1; ++c) {
      const double scale = weights.scale(c, b);
      for (int64_t r = 0; r < rows; ++r)
        sums[r][c - c0] += of_block[r][c - c0] * (scale * static_cast<double>(scales[r]));
    }
  }
}

template <class T>
void low_bit(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<LowBitFullyConnectedAttrs>();
  const T* x = call.in(0).as<T>();
  const T* bias = call.has_input(4) ? call.in(4).as<T>() : nullptr;
  T* y = call.out(0).as<T>();
  const Bounds<T> bounds(a.act_min, a.act_max);
  const Product p = connected_product(call);
  const LowBitReader weights(call);
  const int64_t panels = (p.columns + kTile - 1) / kTile;
  const Tiling tiling{panels, p.rows, 1, kRows, low_bit_scratch(call)};
  for_tiles(tiling, context, [&](std::byte* scratch, int64_t panel, int64_t r0, int64_t r1) {
    auto* piece = reinterpret_cast<double*>(scratch);
    const int64_t c0 = panel * kTile, c1 = std::min(c0 + kTile, p.columns);
    Sums sums = {};
    if (a.activation_bits == 0)
      float_sums(weights, x + r0 * p.depth, r1 - r0, p.depth, c0, c1, piece, sums);
    else
      integer_sums(weights, a.block_size, x + r0 * p.depth, r1 - r0, p.depth, c0, c1, piece, sums);
    for (int64_t r = r0; r < r1; ++r)
      for (int64_t c = c0; c < c1; ++c) {
        double sum = sums[r - r0][c - c0];
        if (bias != nullptr) sum += static_cast<double>(bias[c]);
        y[r * p.columns + c] = bounds(sum);
      }
  });
}

Status run_low_bit_fully_connected(const OpCall& call, RunContext& context) {
  return for_float_or_half(call.in(0).dtype, [&](auto tag) {
    return low_bit<typename decltype(tag)::type>(call, context), ok_status();
  });
}

}  // namespace

const Kernel kLowBitFullyConnectedKernel =
    reference_kernel({Op::kLowBitFullyConnected, infer_low_bit_fully_connected,
                      low_bit_fully_connected_workspace, run_low_bit_fully_connected});

}  // namespace sinter
