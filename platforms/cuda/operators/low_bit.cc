// LowBitFullyConnected.
#include <cstring>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {
namespace {

int64_t pitch_of(const TensorView& w) {
  const int64_t bytes = (w.dims[1] * bit_width(w.dtype) + 7) / 8;
  return (bytes + 15) / 16 * 16;
}

// Rows of weights that begin at multiples of 16 bytes.
void pack_rows(const OpCall& call, std::span<std::byte> to) {
  const TensorView& w = call.in(1);
  const int64_t depth = w.dims[1], pitch = pitch_of(w);
  std::memset(to.data(), 0, to.size());
  for (int64_t n = 0; n < w.dims[0]; ++n) {
    std::byte* row = to.data() + n * pitch;
    if (bit_width(w.dtype) == 8) {
      if (depth > 0) std::memcpy(row, w.data + n * depth, static_cast<size_t>(depth));
      continue;
    }
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t from = n * depth + k;
      const std::byte number = w.data[from / 2] >> (from % 2 * 4) & std::byte{15};
      row[k / 2] |= number << (k % 2 * 4);
    }
  }
}

// Types of weights that the kernels read.
bool is_read(DType t) {
  return t == DType::kInt4 || t == DType::kUint4 || t == DType::kInt8 || t == DType::kUint8;
}

FloatKind kind_of(DType t) {
  switch (t) {
    case DType::kFloat16:
      return FloatKind::kHalf;
    case DType::kBFloat16:
      return FloatKind::kBHalf;
    case DType::kFloat64:
      return FloatKind::kDouble;
    default:
      return FloatKind::kFloat;
  }
}

}  // namespace

Status lower_LowBitFullyConnected(Lowering& l) {
  const auto& attrs = l.attrs<LowBitFullyConnectedAttrs>();
  const TensorView &x = l.in(0), &y = l.out(0), &weights = l.call().in(1);
  const int64_t depth = weights.dims[1], columns = weights.dims[0];
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.dims[i];
  SINTER_RETURN_UNLESS(attrs.activation_bits == 0,
                       unsupported("activations are not rounded to 8 bits there"));
  SINTER_RETURN_UNLESS(attrs.bits == 0 && is_read(weights.dtype),
                       unsupported("weights are integers of 4 or 8 bits there"));
  SINTER_RETURN_UNLESS(l.in(2).dtype == x.dtype, unsupported("scales have the type of x there"));
  if (rows == 0 || columns == 0) return ok_status();
  SINTER_RETURN_UNLESS(rows < INT32_MAX && columns < INT32_MAX && depth < INT32_MAX - 4096,
                       unsupported("an operand has an axis of 2^31 elements or more"));
  LowBitArguments a;
  a.y = y.data, a.x = x.data, a.scales = l.in(2).data;
  if (l.has_input(3)) a.zeros = l.in(3).data, a.float_zeros = l.in(3).dtype != weights.dtype;
  if (l.has_input(4)) a.bias = l.in(4).data;
  a.kind = kind_of(x.dtype);
  a.bits = bit_width(weights.dtype);
  a.is_signed = weights.dtype == DType::kInt4 || weights.dtype == DType::kInt8;
  a.rows = static_cast<uint32_t>(rows), a.columns = static_cast<uint32_t>(columns);
  a.depth = static_cast<uint32_t>(depth);
  const int64_t block = attrs.block_size < depth ? attrs.block_size : depth > 0 ? depth : 1;
  a.block_size = Divider(block);
  a.blocks = static_cast<uint32_t>(l.in(2).dims[1]);
  a.low = attrs.act_min, a.high = attrs.act_max;

  // Kernels read 16 bytes of weights at once, which have one scale, and rows that begin at multiples of them;
  // only constants are sure to.
  const int segment = low_bit_segment(a.bits);
  const bool in_place = l.is_constant(1) && depth * a.bits % 128 == 0;
  const bool plain = a.kind != FloatKind::kDouble && depth > 0 && (block == depth || block % segment == 0) &&
                     l.is_constant(1);
  if (!plain) {
    a.w = l.in(1).data;
    return l.launch<Kernel::k_low_bit_any>(
        {.blocks = {blocks_for(rows * columns, threads_of(Kernel::k_low_bit_any) / 32)}}, a);
  }
  const int64_t pitch = pitch_of(weights);
  int64_t bytes = 0;
  SINTER_RETURN_UNLESS(checked_mul(pitch, columns, &bytes), unsupported("weights of 2^63 bytes or more"));
  a.w = in_place ? l.in(1).data : l.packed(static_cast<size_t>(bytes), pack_rows);
  a.pitch = static_cast<uint32_t>(pitch);

  constexpr int64_t kRowsAtOnce = 4;
  if (rows <= kMostFewRows) {
    const int at_once = rows == 1 ? 1 : kRowsAtOnce;
    const Kernel kernel = a.bits == 4 ? (rows == 1 ? Kernel::k_low_bit_4_row : Kernel::k_low_bit_4_rows)
                                      : (rows == 1 ? Kernel::k_low_bit_8_row : Kernel::k_low_bit_8_rows);
    return l.launch_one_of(kernel,
                           {.blocks = {blocks_of(columns, threads_of(kernel) / 32 * low_bit_columns(at_once)),
                                       blocks_of(rows, at_once)},
                            .shared_bytes = static_cast<uint32_t>(low_bit_shared(a.bits, at_once))},
                           a);
  }
  const int64_t column_tiles = (columns + kLowBitTile - 1) / kLowBitTile,
                row_tiles = (rows + kLowBitTile - 1) / kLowBitTile;
  SINTER_RETURN_UNLESS(column_tiles * row_tiles <= INT32_MAX, unsupported("a product of 2^31 tiles or more"));
  a.column_tiles = Divider(column_tiles);
  const LaunchShape shape = {.blocks = {static_cast<uint32_t>(column_tiles * row_tiles)}};
  // Integers of weights are exact as 16-bit floats, zero points with fractions are not.
  const bool exact = a.kind != FloatKind::kFloat && a.float_zeros == 0;
  if (exact && (block == depth || block % kLowBitDepth == 0)) {
    LaunchShape of_halves = shape;
    of_halves.shared_bytes = 2 * kLowBitHalfStage;
    return l.launch_one_of(
        a.kind == FloatKind::kHalf ? Kernel::k_low_bit_float16_tile : Kernel::k_low_bit_bfloat16_tile,
        of_halves, a);
  }
  LaunchShape of_floats = shape;
  of_floats.shared_bytes = 2 * kLowBitDepth * kLowBitStride * 4;
  return l.launch<Kernel::k_low_bit_tile>(of_floats, a);
}

}  // namespace sinter::cuda
