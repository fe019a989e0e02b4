// QMatMul on the product of gemm.h: the second operand is packed in every run, matrix by matrix.
#include "platforms/simd/broadcast.h"
#include "platforms/simd/int8/gemm.h"

namespace sinter::simd {
namespace {

constexpr int64_t kTile = 64;  // rows that are copied at a time

struct Matrices {
  int64_t rows = 0, columns = 0, depth = 0, batch = 1;
  QRuns runs;
  Geometry g;  // its rows are the pixels of a line

  int64_t wide() const { return divide_up(columns, kQPanel) * kQPanel; }
};

Matrices matrices(const OpCall& call) {
  const TensorView &a = call.in(0), &y = call.out(0);
  Matrices m;
  m.rows = y.dims[y.rank - 2], m.columns = y.dims[y.rank - 1], m.depth = a.dims[a.rank - 1];
  for (int i = 0; i + 2 < y.rank; ++i) m.batch *= y.dims[i];
  m.runs = {1, m.depth};
  m.g.batch = 1, m.g.in_channels = m.depth, m.g.out_channels = m.columns;
  m.g.in[2] = m.g.out[2] = m.rows;
  return m;
}

// The scratch of one thread: panels, the numbers of their columns, then the tile's rows, their begins, and
// their sums.
struct Scratch {
  int64_t numbers = 0, rows = 0, bytes = 0;
  [[nodiscard]] bool measure(const Matrices& m) {
    const auto align = static_cast<int64_t>(kBufferAlignment);
    int64_t deep = 0;
    return checked_add<int64_t>(m.depth, kQDepth, &deep) && checked_mul(m.wide(), deep, &numbers) &&
           checked_add(numbers, m.wide() * number_bytes(deep, true), &rows) &&
           checked_add(rows, align, &rows) && (rows = rows / align * align, true) &&
           checked_mul(deep, kTile * static_cast<int64_t>(sizeof(int16_t)), &bytes) && bytes < INT32_MAX &&
           checked_add(bytes, rows + kTile * 16 + 3 * align, &bytes) && (bytes = bytes / align * align, true);
  }
};

void multiply_one(const OpCall& call, const Matrices& m, const Scratch& s, int64_t index, std::byte* memory) {
  const auto& attrs = call.attrs<QMatMulAttrs>();
  const auto x_zero = static_cast<int32_t>(attrs.x_zero);
  const auto* a =
      call.in(0).as<const int8_t>() + broadcast_index(call.in(0), call.out(0), index) * m.rows * m.depth;
  const auto* b =
      call.in(1).as<const int8_t>() + broadcast_index(call.in(1), call.out(0), index) * m.depth * m.columns;
  QPacked packed;
  packed.runs = m.runs, packed.columns = m.columns, packed.panels = reinterpret_cast<int8_t*>(memory);
  packed.set_numbers(memory + s.numbers, m.wide(), attrs.b_zero != 0, true);
  const auto multiplier = static_cast<float>(attrs.multiplier);
  const auto b_zero = static_cast<int8_t>(attrs.b_zero);
  const bool transposed = attrs.transpose_b != 0;
  pack_q_panels(
      {b, transposed ? m.depth : 1, transposed ? 1 : m.columns, nullptr, &multiplier, 0, &b_zero, 0}, x_zero,
      packed);
  auto* y_rows = reinterpret_cast<int64_t*>(memory + s.rows);
  auto* rows = reinterpret_cast<int32_t*>(y_rows + kTile);
  int32_t* sums = rows + kTile;
  std::byte* buffer = memory + s.rows + kTile * 16;
  constexpr int32_t kNoOffset = 0;
  const bool copies = !reads_rows_as_they_are() || m.depth % kQDepth != 0;
  for (int64_t first = 0; first < m.rows; first += kTile) {
    QBox box;
    box.begin[2] = first, box.end[0] = box.end[1] = 1, box.end[2] = std::min(first + kTile, m.rows);
    box.lines = 1, box.line = box.pixels();
    if (copies) load_q_box(m.g, box, a, x_zero, buffer);
    for (int64_t r = 0; r < box.line; ++r) {
      rows[r] = static_cast<int32_t>(r * m.depth);
      y_rows[r] = (index * m.rows + first + r) * m.columns;
    }
    QRows tile{copies ? buffer : reinterpret_cast<const std::byte*>(a + first * m.depth), rows, &kNoOffset,
               packed.zeros != nullptr ? sums : nullptr, box.line};
    tile.set_spare(buffer, box.line * m.depth, kTile * m.depth * static_cast<int64_t>(sizeof(int16_t)));
    if (packed.zeros != nullptr) sum_q_rows(tile, m.runs, x_zero, sums);
    multiply_q(packed, tile, 0, divide_up(m.columns, q_panel_width()), product_result(call, attrs), y_rows);
  }
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  const Matrices m = matrices(call);
  Scratch s;
  int64_t all = 0;
  SINTER_RETURN_UNLESS(
      s.measure(m) &&
          checked_mul(s.bytes, std::clamp<int64_t>(threads, 1, std::max<int64_t>(m.batch, 1)), &all),
      too_much_workspace());
  *bytes = static_cast<size_t>(all);
  return ok_status();
}

Status run(const OpCall& call, RunContext& context) {
  const Matrices m = matrices(call);
  Scratch s;
  if (call.out(0).size() == 0 || !s.measure(m)) return ok_status();
  const int64_t threads = threads_of(context.threads);
  const int64_t slots = std::clamp<int64_t>(threads, 1, m.batch);
  parallel_slots(context.threads, slots, m.batch, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      multiply_one(call, m, s, i, context.workspace.data() + slot * s.bytes);
  });
  return ok_status();
}

Status accept(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.in(0).dtype == DType::kInt8 && call.in(1).dtype == DType::kInt8,
                       unsupported("the simd kernel takes int8"));
  SINTER_RETURN_UNLESS(call.attrs<QMatMulAttrs>().transpose_a == 0,
                       unsupported("the first operand may not be transposed"));
  Scratch s;
  SINTER_RETURN_UNLESS(s.measure(matrices(call)),
                       unsupported("the matrices are too large for the simd kernel"));
  return accept_dense(call);
}

}  // namespace

const Kernel kQMatMulKernel = {Op::kQMatMul, nullptr, workspace, run, accept};

}  // namespace sinter::simd
