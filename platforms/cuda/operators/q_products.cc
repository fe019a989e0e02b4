// QMatMul, and the common parts of integer products.
#include "platforms/cuda/operators/q_products.h"

#include "platforms/cuda/operators/window_rows.h"

namespace sinter::cuda {

uint32_t unit_of(std::initializer_list<int64_t> numbers) {
  uint32_t unit = 16;
  for (const int64_t n : numbers)
    while (n % unit != 0) unit = unit == 16 ? 4 : 1;
  return unit;
}

void set_columns(Lowering& l, QProductArguments* a) {
  const TensorView& multipliers = l.in(3);
  a->multipliers = multipliers.as<float>();
  a->multiplier_step = multipliers.size() == 1 ? 0 : 1;
  if (!l.has_input(4)) return;
  a->w_zeros = l.in(4).as<int8_t>();
  a->w_zero_step = l.in(4).size() == 1 ? 0 : 1;
}

namespace {

// A tile of results, which a block computes.
struct Tile {
  Kernel kernel;
  int64_t rows, columns;
  int64_t bytes;  // of both operands, for an element of the depth
};

}  // namespace

Status launch_products(Lowering& l, QProductArguments& a, DType x, DType w, bool dense) {
  const bool wide = x == DType::kInt16, both_wide = w == DType::kInt16;
  // Sums of products of bytes are int32; if both operands are wide, each is of two products.
  SINTER_RETURN_UNLESS(!wide || a.depth < (both_wide ? 1u << 16 : 1u << 17),
                       unsupported("a sum of int16 has too many terms"));
  SINTER_RETURN_UNLESS(a.products.size <= 65535, unsupported("more than 65535 products"));
  if (a.rows == 0 || a.columns == 0 || a.products.size == 0) return ok_status();
  constexpr uint32_t kFewRows = 4, kRowsWarps = 4;
  if (!wide && dense && a.window.matrix != 0 && a.unit == 16 && a.rows <= kFewRows) {
    const uint32_t blocks = blocks_of(a.columns, kQRowsColumns * kRowsWarps);
    return l.launch_one_of(a.rows == 1 ? Kernel::k_q_row : Kernel::k_q_four_rows,
                           {.blocks = {blocks, 1, a.products.size}}, a);
  }
  // Tiles of few rows are used if those of many would leave multiprocessors idle.
  const auto tiles = [&](int64_t rows, int64_t columns) {
    return (a.rows + rows - 1) / rows * ((a.columns + columns - 1) / columns);
  };
  const bool narrow = a.columns <= 32 && a.rows > 64;
  const bool few = a.rows <= 64 || tiles(128, 64) * a.products.size < 2 * int64_t{l.facts().multiprocessors};
  const Tile tile = both_wide ? Tile{Kernel::k_q_product_both_wide, 32, 64, 2 * (32 + 64)}
                    : wide    ? Tile{Kernel::k_q_product_wide, 64, 64, 2 * 64 + 64}
                    : narrow  ? Tile{Kernel::k_q_product_narrow, 128, 32, 128 + 32}
                    : few     ? Tile{Kernel::k_q_product_few, 32, 64, 32 + 64}
                              : Tile{Kernel::k_q_product, 128, 64, 128 + 64};
  const int64_t blocks = tiles(tile.rows, tile.columns);
  SINTER_RETURN_UNLESS(blocks <= INT32_MAX, unsupported("a product of 2^31 tiles or more"));
  a.column_tiles = Divider((a.columns + tile.columns - 1) / tile.columns);
  constexpr int64_t kDepth = 64;  // of the two parts of shared memory
  return l.launch_one_of(tile.kernel,
                         {.blocks = {static_cast<uint32_t>(blocks), 1, a.products.size},
                          .shared_bytes = static_cast<uint32_t>(2 * kDepth * tile.bytes)},
                         a);
}

namespace {

// One operand of QMatMul as rows along the depth.
struct Matrices {
  std::byte* data = nullptr;
  int64_t pitch = 0;  // elements
  Steps steps;        // from one to the next within the box of products
};

// With `across`, its last axis is not the depth. There are `rows` of `depth` elements each. A copy is made
// unless the operand can be read in place.
Status set_matrices(Lowering& l, const TensorView& v, const Box& products, bool across, int64_t rows,
                    int64_t depth, bool read_in_place, Matrices* m) {
  const auto width = static_cast<int64_t>(byte_width(v.dtype));
  int64_t count = 1;
  for (int i = 0; i < v.rank - 2; ++i) count *= v.dims[i];
  m->data = v.data, m->pitch = depth;
  if (across || !read_in_place) {
    constexpr int64_t kTile = 32;
    m->pitch = static_cast<int64_t>(align_up(static_cast<size_t>(depth), 16));
    int64_t bytes = 0;
    SINTER_RETURN_UNLESS(checked_mul(rows, m->pitch, &bytes) && checked_mul(bytes, count * width, &bytes) &&
                             rows <= kTile * 65535 && count <= 65535,
                         unsupported("matrices are too large to be transposed"));
    m->data = l.workspace(static_cast<size_t>(bytes));
    QTurnArguments a;
    a.to = m->data, a.from = v.data;
    a.columns = static_cast<uint32_t>(rows), a.depth = static_cast<uint32_t>(depth);
    a.pitch = static_cast<uint32_t>(m->pitch);
    a.width = static_cast<int32_t>(width), a.across = across, a.fill = width == 2 ? 128 : 0;
    SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_q_turn>(
        {.blocks = {blocks_of(m->pitch, kTile), blocks_of(rows, kTile), static_cast<uint32_t>(count)},
         .shared_bytes = kTile * (kTile + 1) * sizeof(uint32_t)},
        a));
  }
  int64_t step = rows * m->pitch * width;
  for (int i = v.rank - 3, to = products.rank - 1; i >= 0; --i, --to) {
    if (v.dims[i] != 1) m->steps.of[to] = step;
    step *= v.dims[i];
  }
  return ok_status();
}

}  // namespace

Status lower_QMatMul(Lowering& l) {
  const auto& attrs = l.attrs<QMatMulAttrs>();
  const TensorView &x = l.in(0), &w = l.in(1), &y = l.out(0);
  const bool x_across = attrs.transpose_a != 0, w_across = attrs.transpose_b == 0;
  const int64_t rows = y.dims[y.rank - 2], columns = y.dims[y.rank - 1],
                depth = x.dims[x.rank - (x_across ? 2 : 1)];
  SINTER_RETURN_UNLESS(rows <= INT32_MAX && columns <= INT32_MAX && depth < INT32_MAX,
                       unsupported("a matrix has an axis of 2^31 elements or more"));
  QProductArguments a;
  SINTER_RETURN_IF_ERROR(box_of(y.shape().first(static_cast<size_t>(y.rank) - 2), &a.products));
  if (rows == 0 || columns == 0 || a.products.size == 0) return ok_status();
  Matrices xs, ws;
  SINTER_RETURN_IF_ERROR(set_matrices(l, x, a.products, x_across, rows, depth, true, &xs));
  SINTER_RETURN_IF_ERROR(set_matrices(l, w, a.products, w_across, columns, depth, depth % 16 == 0, &ws));
  a.y = y.data, a.x = xs.data, a.w = ws.data;
  a.x_steps = xs.steps, a.w_steps = ws.steps;
  int64_t step = rows * columns * static_cast<int64_t>(byte_width(y.dtype));
  for (int i = a.products.rank - 1; i >= 0; --i) a.y_steps.of[i] = step, step *= y.dims[i];
  a.multiplier = static_cast<float>(attrs.multiplier);
  a.x_zero = static_cast<int32_t>(attrs.x_zero), a.w_zero = static_cast<int32_t>(attrs.b_zero);
  a.rows = static_cast<uint32_t>(rows), a.columns = static_cast<uint32_t>(columns);
  a.depth = static_cast<uint32_t>(depth), a.x_depth = static_cast<uint32_t>(xs.pitch);
  a.pitch = static_cast<uint32_t>(ws.pitch);
  a.unit = unit_of({xs.pitch});
  a.window = matrix_rows(xs.pitch, xs.pitch);
  a.y_step = columns;
  a.result = integer_result(attrs, y.dtype);
  return launch_products(l, a, x.dtype, w.dtype, true);
}

}  // namespace sinter::cuda
