#include "platforms/cuda/operators/products.h"

#include <algorithm>
#include <limits>

namespace sinter::cuda {
namespace {

// A launch is given this many blocks if it can be. It depends on nothing but the call, as the workspace does.
// On an H200, half of them and sums in pieces of twice the depth took longer for small convolutions
// (docs/devices.md#nvidia-gpus), and twice as many did not take less.
constexpr int64_t kEnoughBlocks = 128;

// The columns of a group that is not computed in tiles, which would be empty for the most part.
constexpr uint32_t kMostColumnsOfGroup = 4;

struct TileShape {
  uint32_t rows, columns;
};
constexpr TileShape kLarge = {128, 128}, kSmall = {64, 64}, kNarrow = {128, 32};
constexpr TileShape kNarrowest = {256, 16};  // for float32 alone

int64_t pieces(int64_t n, int64_t of) { return (n + of - 1) / of; }

// An integer is at least min if it is at least the next integer above it; bounds beyond the type do not bind.
template <class T>
void set_integer_bounds(ProductArguments* a, double min, double max) {
  using Limits = std::numeric_limits<T>;
  constexpr double kEnd = static_cast<double>(Limits::max() / 2 + 1) * 2;
  T low = Limits::min(), high = Limits::max();
  if (min >= kEnd)
    low = Limits::max();
  else if (min > static_cast<double>(Limits::min()))
    low = static_cast<T>(min), low = static_cast<T>(low + (static_cast<double>(low) < min));
  if (max < static_cast<double>(Limits::min()))
    high = Limits::min();
  else if (max < kEnd)
    high = static_cast<T>(max), high = static_cast<T>(high - (static_cast<double>(high) > max));
  a->low_int = static_cast<int64_t>(low), a->high_int = static_cast<int64_t>(high);
}

// The kernels of each shape, for a type of a and for b's.
struct TileKernels {
  Kernel large{}, small{}, narrow{}, narrowest{};
};
constexpr TileKernels kFloatTiles = {Kernel::k_product_float_128x128, Kernel::k_product_float_64x64,
                                     Kernel::k_product_float_128x32, Kernel::k_product_float_256x16};
constexpr TileKernels kNarrowFloatTiles = {
    Kernel::k_product_float_narrow_128x128, Kernel::k_product_float_narrow_64x64,
    Kernel::k_product_float_narrow_128x32, Kernel::k_product_float_narrow_256x16};
constexpr TileKernels kFloat16Tiles = {Kernel::k_product_float16_128x128, Kernel::k_product_float16_64x64,
                                       Kernel::k_product_float16_128x32};
constexpr TileKernels kBFloat16Tiles = {Kernel::k_product_bfloat16_128x128, Kernel::k_product_bfloat16_64x64,
                                        Kernel::k_product_bfloat16_128x32};

Kernel tile_kernel(const ProductArguments& a, TileShape shape) {
  const TileKernels& k = a.element == Element::kFloat16    ? kFloat16Tiles
                         : a.element == Element::kBFloat16 ? kBFloat16Tiles
                         : a.narrow != DType::kNone        ? kNarrowFloatTiles
                                                           : kFloatTiles;
  return shape.columns == kNarrowest.columns ? k.narrowest
         : shape.columns == kLarge.columns   ? k.large
         : shape.columns == kSmall.columns   ? k.small
                                             : k.narrow;
}

Kernel few_rows_kernel(const ProductArguments& a) {
  if (a.element == Element::kFloat16) return Kernel::k_product_rows_float16;
  if (a.element == Element::kBFloat16) return Kernel::k_product_rows_bfloat16;
  if (a.narrow == DType::kNone) return Kernel::k_product_rows_float;
  return byte_width(a.narrow) == 1 ? Kernel::k_product_rows_float_float8 : Kernel::k_product_rows_float_half;
}

TileShape choose_tile(Element element, int64_t rows, int64_t columns, int64_t products) {
  if (element == Element::kFloat32 && columns <= kNarrowest.columns) return kNarrowest;
  const int64_t rest = columns % kSmall.columns;
  if (columns < 2 * kSmall.columns && rest != 0 && rest <= kNarrow.columns) return kNarrow;
  const int64_t large = pieces(rows, kLarge.rows) * pieces(columns, kLarge.columns) * products;
  // Large tiles are not used if half of their columns would be empty.
  const bool full = columns % kLarge.columns == 0 || columns % kLarge.columns > kSmall.columns;
  return large >= kEnoughBlocks && full ? kLarge : kSmall;
}

Status launch_few_rows(Lowering& l, ProductArguments& a) {
  const int64_t products = a.products.size, groups = pieces(a.columns, kRowsColumns);
  constexpr int kWarps = threads_of(Kernel::k_product_rows_float) / 32;
  a.warps_per_column = 1;
  while (a.warps_per_column < kWarps && groups * products * a.warps_per_column < kWarps * kEnoughBlocks &&
         a.parts[0].depth >= 256u * static_cast<uint32_t>(a.warps_per_column))
    a.warps_per_column *= 2;
  const int64_t blocks = pieces(groups, kWarps / a.warps_per_column);
  SINTER_RETURN_UNLESS(blocks * products <= INT32_MAX, unsupported("a product of too many blocks"));
  a.column_tiles = Divider(blocks);
  const uint32_t shared = threads_of(Kernel::k_product_rows_float) * sizeof(float);
  return l.launch_one_of(few_rows_kernel(a),
                         {.blocks = {static_cast<uint32_t>(blocks * products)}, .shared_bytes = shared}, a);
}

Status launch_tiles(Lowering& l, ProductArguments& a, int parts) {
  int64_t rows = 0, depth = 0;
  for (int i = 0; i < parts; ++i) {
    rows = std::max<int64_t>(rows, a.parts[i].rows);
    depth = std::max<int64_t>(depth, a.parts[i].depth);
  }
  const int64_t products = a.products.size;
  const TileShape shape = choose_tile(a.element, rows, a.columns, products);
  const int64_t row_tiles = pieces(rows, shape.rows), column_tiles = pieces(a.columns, shape.columns);
  int64_t blocks = 0;
  SINTER_RETURN_UNLESS(checked_mul(row_tiles * column_tiles, products, &blocks) && blocks <= INT32_MAX,
                       unsupported("a product of too many blocks"));
  a.row_tiles = Divider(row_tiles), a.column_tiles = Divider(column_tiles);
  constexpr int64_t kStep = 32;          // of a split's depth
  constexpr int64_t kMinimumDepth = 64;  // of a split
  const int64_t results = rows * a.columns * products;
  int64_t splits = 1;
  if (parts == 1 && blocks < kEnoughBlocks / 2 && results <= INT32_MAX)
    splits = std::max<int64_t>(std::min(pieces(kEnoughBlocks, blocks), depth / kMinimumDepth), 1);
  const int64_t split_depth = std::max(pieces(pieces(depth, splits), kStep) * kStep, kStep);
  splits = std::max<int64_t>(pieces(depth, split_depth), 1);
  a.splits = static_cast<uint32_t>(splits), a.split_depth = static_cast<uint32_t>(split_depth);
  if (splits > 1)
    a.sums = reinterpret_cast<float*>(l.workspace(static_cast<size_t>(splits * results) * sizeof(float)));
  const uint32_t shared = a.element == Element::kFloat32 ? float_tile_bytes(shape.rows, shape.columns)
                                                         : half_tile_bytes(shape.rows, shape.columns);
  SINTER_RETURN_IF_ERROR(
      l.launch_one_of(tile_kernel(a, shape),
                      {.blocks = {static_cast<uint32_t>(blocks), a.splits, static_cast<uint32_t>(parts)},
                       .shared_bytes = shared},
                      a));
  if (splits == 1) return ok_status();
  a.row_tiles = Divider(rows), a.column_tiles = Divider(a.columns);
  return l.launch<Kernel::k_product_sums>(
      {.blocks = {blocks_for(results, threads_of(Kernel::k_product_sums))}}, a);
}

}  // namespace

Status element_of(DType type, Element* element) {
  switch (type) {
    case DType::kFloat32:
      return *element = Element::kFloat32, ok_status();
    case DType::kFloat64:
      return *element = Element::kFloat64, ok_status();
    case DType::kFloat16:
      return *element = Element::kFloat16, ok_status();
    case DType::kBFloat16:
      return *element = Element::kBFloat16, ok_status();
    case DType::kInt32:
      return *element = Element::kInt32, ok_status();
    case DType::kUint32:
      return *element = Element::kUint32, ok_status();
    case DType::kInt64:
      return *element = Element::kInt64, ok_status();
    case DType::kUint64:
      return *element = Element::kUint64, ok_status();
    default:
      return unsupported("the kernels do not compute in this type");
  }
}

void set_bounds(ProductArguments* a, double min, double max) {
  a->low = min, a->high = max;
  switch (a->element) {
    case Element::kInt32:
      return set_integer_bounds<int32_t>(a, min, max);
    case Element::kUint32:
      return set_integer_bounds<uint32_t>(a, min, max);
    case Element::kInt64:
      return set_integer_bounds<int64_t>(a, min, max);
    case Element::kUint64:
      return set_integer_bounds<uint64_t>(a, min, max);
    default:
      return;
  }
}

Status check_dense_weights(const OpCall& call) {
  for (size_t i = 1; i < call.inputs.size(); ++i)
    SINTER_RETURN_UNLESS(!call.has_input(i) || call.in(i).constant || call.in(i).dense(),
                         unsupported("weights or a bias are not dense"));
  return ok_status();
}

Status launch_product(Lowering& l, ProductArguments& a, int parts) {
  if (a.columns == 0 || a.products.size == 0 || parts == 0) return ok_status();
  int64_t most = 0;
  for (int i = 0; i < parts; ++i) most = std::max<int64_t>(most, a.parts[i].rows);
  if (most == 0) return ok_status();
  const bool half = a.element == Element::kFloat16 || a.element == Element::kBFloat16;
  // Weights that are narrower than 16-bit floats, which only experts have, are widened one by one.
  const bool in_tiles = a.element == Element::kFloat32 || (half && a.narrow == DType::kNone);
  const bool few_columns = a.products.size > 1 && a.columns <= kMostColumnsOfGroup && a.y_product < a.y_step;
  if (!in_tiles || few_columns) {
    const int64_t results = most * a.columns * a.products.size;
    if (a.y_product < a.y_step && results <= INT32_MAX) {
      a.groups_inside = 1;
      a.column_tiles = Divider(a.columns), a.row_tiles = Divider(a.products.size);
    }
    const uint32_t blocks = blocks_for(results, threads_of(Kernel::k_product_any));
    return l.launch<Kernel::k_product_any>({.blocks = {blocks, 1, static_cast<uint32_t>(parts)}}, a);
  }
  const bool few = parts == 1 && most <= kMostFewRows && a.parts[0].window.matrix != 0 && a.a_across == 0 &&
                   a.b_across == 0 && a.phases == 0;
  return few ? launch_few_rows(l, a) : launch_tiles(l, a, parts);
}

}  // namespace sinter::cuda
