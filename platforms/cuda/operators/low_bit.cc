// LowBitFullyConnected.
#include "platforms/cuda/operators/low_bit.h"

#include <algorithm>

namespace sinter::cuda {
namespace {

Kernel few_rows_kernel(int bits, bool one) {
  switch (bits) {
    case 2:
      return one ? Kernel::k_low_bit_2_row : Kernel::k_low_bit_2_rows;
    case 3:
      return one ? Kernel::k_low_bit_3_row : Kernel::k_low_bit_3_rows;
    case 4:
      return one ? Kernel::k_low_bit_4_row : Kernel::k_low_bit_4_rows;
    case 5:
      return one ? Kernel::k_low_bit_5_row : Kernel::k_low_bit_5_rows;
    case 6:
      return one ? Kernel::k_low_bit_6_row : Kernel::k_low_bit_6_rows;
    case 7:
      return one ? Kernel::k_low_bit_7_row : Kernel::k_low_bit_7_rows;
    default:
      return one ? Kernel::k_low_bit_8_row : Kernel::k_low_bit_8_rows;
  }
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

// Replaces x by its rounded form.
Status round_rows(Lowering& l, int64_t block, LowBitArguments* a) {
  LowBitRoundArguments r;
  r.x = a->x, r.kind = a->kind, r.rows = a->rows, r.depth = a->depth;
  r.block = static_cast<uint32_t>(block), r.blocks = Divider(a->blocks > 0 ? a->blocks : 1);
  const int64_t elements = int64_t{a->rows} * a->depth, scales = int64_t{a->rows} * a->blocks;
  SINTER_RETURN_UNLESS(elements <= INT32_MAX, unsupported("an operand has 2^31 elements or more"));
  if (elements == 0) return ok_status();
  r.rounded = l.workspace(static_cast<size_t>(elements) * byte_width(l.call().in(0).dtype));
  r.scales = reinterpret_cast<float*>(l.workspace(static_cast<size_t>(scales) * sizeof(float)));
  a->x = r.rounded, a->row_scales = r.scales;
  return l.launch<Kernel::k_low_bit_round>(
      {.blocks = {blocks_for(scales * 32, threads_of(Kernel::k_low_bit_round))}}, r);
}

// Launches a product in tiles, of rows that have the same weights.
Status launch_tiles(Lowering& l, int64_t block, LowBitArguments& a) {
  const int64_t column_tiles = (int64_t{a.columns} + kLowBitTile - 1) / kLowBitTile,
                row_tiles = (int64_t{a.rows} + kLowBitTile - 1) / kLowBitTile;
  SINTER_RETURN_UNLESS(column_tiles * row_tiles <= INT32_MAX, unsupported("a product of 2^31 tiles or more"));
  a.column_tiles = Divider(column_tiles);
  LaunchShape shape = {.blocks = {static_cast<uint32_t>(column_tiles * row_tiles)}};
  // Integers of weights are exact as 16-bit floats; numbers of tables and zero points with fractions are not.
  const bool exact = a.kind != FloatKind::kFloat && a.float_zeros == 0 && !a.format.has_table();
  if (exact && (block == a.depth || block % kLowBitDepth == 0)) {
    shape.shared_bytes = 2 * kLowBitHalfStage;
    return l.launch_one_of(
        a.kind == FloatKind::kHalf ? Kernel::k_low_bit_float16_tile : Kernel::k_low_bit_bfloat16_tile, shape,
        a);
  }
  shape.shared_bytes = 2 * kLowBitDepth * kLowBitStride * 4;
  return l.launch<Kernel::k_low_bit_tile>(shape, a);
}

}  // namespace

Status launch_low_bit(Lowering& l, LowBitArguments& a) {
  const LowBitMatrix m = low_bit_matrix(l.call());
  const LowBitPlaces at = low_bit_places(l.call().op);
  const TensorView &x = l.in(0), &weights = l.call().in(at.weights);
  const int64_t depth = m.depth, columns = m.columns, rows = a.rows;
  SINTER_RETURN_UNLESS(columns < INT32_MAX && depth < INT32_MAX - 4096,
                       unsupported("an operand has an axis of 2^31 elements or more"));
  a.y = l.out(0).data, a.x = x.data, a.scales = l.in(at.scales).data;
  if (l.has_input(at.zeros)) a.zeros = l.in(at.zeros).data, a.float_zeros = m.zero_type != weights.dtype;
  if (l.has_input(at.bias)) a.bias = l.in(at.bias).data;
  const bool table = m.format.has_table();
  SINTER_RETURN_UNLESS(!table || m.table_type == DType::kFloat32, unsupported("tables are float32 there"));
  if (table) a.table = l.in(at.table).as<const float>();
  a.kind = kind_of(x.dtype), a.scale_type = m.scale_type, a.format = m.format;
  a.zero_bits = bit_width(weights.dtype);
  a.columns = static_cast<uint32_t>(columns), a.depth = static_cast<uint32_t>(depth);
  const int64_t block = std::max<int64_t>(std::min(m.block, depth), 1);
  a.block_size = Divider(block);
  a.blocks = static_cast<uint32_t>(m.blocks);
  const bool rounds =
      l.call().op == Op::kLowBitFullyConnected && l.attrs<LowBitFullyConnectedAttrs>().activation_bits != 0;
  if (rounds) SINTER_RETURN_IF_ERROR(round_rows(l, block, &a));

  // Kernels read a segment of weights at once, which has one scale, from rows that begin at multiples of 16
  // bytes, or in planes; only constants can be packed so.
  const bool one = rows == 1 || a.experts.of_row != nullptr || l.call().op == Op::kExpertFullyConnected;
  const int segment = low_bit_segment(a.format.bits);
  const bool plain = a.kind != FloatKind::kDouble && depth > 0 && (block == depth || block % segment == 0) &&
                     l.is_constant(at.weights) && m.format.kind != CodeKind::kFloat;
  if (!plain || (table && (one || rows <= kMostFewRows))) {
    a.w = l.in(at.weights).data;
    return l.launch<Kernel::k_low_bit_any>(
        {.blocks = {blocks_for(rows * columns, threads_of(Kernel::k_low_bit_any) / 32)}}, a);
  }
  const int64_t pitch = low_bit_pitch(m);
  int64_t matrices = 1, bytes = 0;
  for (int i = 0; i + 1 < weights.rank; ++i) matrices *= weights.dims[i];
  SINTER_RETURN_UNLESS(checked_mul(pitch, matrices, &bytes), unsupported("weights of 2^63 bytes or more"));
  const bool in_place = !low_bit_in_planes(a.format.bits) && depth * a.format.bits % 128 == 0;
  a.w = in_place ? l.in(at.weights).data : l.packed(static_cast<size_t>(bytes), pack_low_bit);
  a.pitch = static_cast<uint32_t>(pitch);

  if (!one && rows > kMostFewRows) return launch_tiles(l, block, a);
  const int at_once = one ? 1 : 4;
  const int64_t row_groups = one ? rows : (rows + at_once - 1) / at_once, most = kLowBitRowsOfLaunch;
  const Kernel kernel = few_rows_kernel(a.format.bits, one);
  return l.launch_one_of(kernel,
                         {.blocks = {blocks_of(columns, threads_of(kernel) / 32 * low_bit_columns(at_once)),
                                     static_cast<uint32_t>(std::min(row_groups, most)),
                                     static_cast<uint32_t>((row_groups + most - 1) / most)},
                          .shared_bytes = static_cast<uint32_t>(low_bit_shared(a.format.bits, at_once))},
                         a);
}

Status lower_LowBitFullyConnected(Lowering& l) {
  const auto& attrs = l.attrs<LowBitFullyConnectedAttrs>();
  const TensorView& x = l.call().in(0);
  const int64_t columns = l.call().in(1).dims[0];
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.dims[i];
  if (rows == 0 || columns == 0) return ok_status();
  SINTER_RETURN_UNLESS(rows < INT32_MAX, unsupported("an operand has an axis of 2^31 elements or more"));
  LowBitArguments a;
  a.rows = static_cast<uint32_t>(rows);
  a.low = attrs.act_min, a.high = attrs.act_max;
  return launch_low_bit(l, a);
}

}  // namespace sinter::cuda
