// ExpertFullyConnected. For up to four rows of an expert, its weights are read once and widened in registers.
// More rows are copied to lie together, and pieces of panels of weights, widened in scratch, go through the
// product of gemm.h.
#include <cmath>

#include "platforms/simd/float/gemm.h"
#include "platforms/simd/float/gemm_unpacked.h"
#include "platforms/simd/low_bit/low_bit.h"
#include "runtime/backend/expert_rows.h"
#include "runtime/core/narrow_weights.h"

namespace sinter::simd {
namespace {

struct Experts {
  const float* x = nullptr;
  float* y = nullptr;
  const float* bias = nullptr;
  TensorView w;          // [experts, columns, depth]
  LowBitMatrix matrix;   // weights with scales
  bool low_bit = false;  // otherwise weights are floats
  int64_t rows = 0, experts = 0, columns = 0, depth = 0;

  UnpackedWeights floats_of(int64_t expert) const {
    return {w.data + expert * columns * depth * static_cast<int64_t>(byte_width(w.dtype)), w.dtype, columns,
            depth};
  }
  LowBit low_bit_of(int64_t expert) const {
    LowBit g = simd::low_bit_of(matrix.of_expert(expert));
    choose_arrangement(&g, rows <= experts);  // most experts have one row then
    return g;
  }
  const float* bias_of(int64_t expert) const { return bias != nullptr ? bias + expert * columns : nullptr; }
};

Experts experts_of(const OpCall& call) {
  Experts e;
  e.x = call.in(0).as<const float>(), e.y = call.out(0).as<float>();
  if (call.has_input(5)) e.bias = call.in(5).as<const float>();
  e.w = call.in(2);
  e.rows = call.in(0).dims[0], e.experts = e.w.dims[0], e.columns = e.w.dims[1], e.depth = e.w.dims[2];
  e.low_bit = call.has_input(3);
  if (e.low_bit) e.matrix = low_bit_matrix(call);
  return e;
}

Status accept_experts(const OpCall& call) {
  for (const size_t i : {size_t{0}, size_t{5}, size_t{6}})
    if (call.has_input(i)) SINTER_RETURN_IF_ERROR(check_float_dense(call.in(i)));
  SINTER_RETURN_IF_ERROR(check_float_dense(call.out(0)));
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{4}})
    SINTER_RETURN_UNLESS(!call.has_input(i) || call.in(i).dense(),
                         unsupported("the simd kernel takes dense operands"));
  const Experts e = experts_of(call);
  if (!e.low_bit) {
    SINTER_RETURN_UNLESS(
        e.w.dtype == DType::kFloat32 || is_narrow_weight(e.w.dtype),
        unsupported("the simd kernel takes experts' weights without scales of 8, 16 and 32 bits"));
    return ok_status();
  }
  SINTER_RETURN_IF_ERROR(check_low_bit(e.low_bit_of(0)));
  // The zero points of every expert begin at whole bytes, as rows of weights do.
  SINTER_RETURN_UNLESS(e.columns * e.matrix.blocks * bit_width(e.matrix.zero_type) % 8 == 0,
                       unsupported("an expert's zero points begin at whole bytes only"));
  return ok_status();
}

// The floats of scratch, behind the lists of rows: rows in the order of the weights (low bits), then, where
// an expert may have more rows than are multiplied at a time, rows lying together, and for each thread a
// piece of a panel, and its results.
struct ExpertScratch {
  int64_t arranged = 0;  // of one row
  int64_t gathered = 0, each = 0;

  bool set(const Experts& e) {
    if (e.low_bit && !arranged_floats(e.low_bit_of(0), &arranged)) return false;
    if (e.rows <= kLowBitRows) return true;
    return checked_mul(e.rows, e.depth, &gathered) && checked_mul(e.rows, kMaxPanel, &each) &&
           checked_add(each, kPanelPieceFloats, &each);
  }
  bool floats(const Experts& e, int64_t threads, int64_t* all) const {
    int64_t rows = 0;
    return checked_mul(arranged, e.rows, &rows) && checked_mul(each, threads, all) &&
           checked_add(*all, rows, all) && checked_add(*all, gathered, all);
  }
};

Status experts_workspace(const OpCall& call, int threads, size_t* bytes) {
  const Experts e = experts_of(call);
  ExpertScratch s;
  size_t lists = 0;
  int64_t n = 0;
  SINTER_RETURN_UNLESS(
      expert_rows_bytes(e.rows, &lists) && s.set(e) && s.floats(e, std::max(threads, 1), &n) &&
          checked_mul<int64_t>(n, sizeof(float), &n) && checked_add(lists, static_cast<size_t>(n), bytes),
      too_much_workspace());
  return ok_status();
}

// Computes columns first .. last - 1 of at most kLowBitRows rows; `arranged` has these for low bits.
void few_expert_rows(const Experts& e, const ExpertRows::Group& g, const float* arranged, int64_t stride,
                     int64_t first, int64_t last) {
  const float* bias = e.bias_of(g.expert);
  const auto rows = static_cast<int64_t>(g.rows.size());
  const auto y_of = [&](int64_t r) { return e.y + g.rows[static_cast<size_t>(r)] * e.columns; };
  const auto x_of = [&](int64_t r) { return e.x + g.rows[static_cast<size_t>(r)] * e.depth; };
  const auto product = [&](int64_t row, int64_t count, int64_t step) {
    if (e.low_bit)
      low_bit_products(e.low_bit_of(g.expert), arranged + row * stride, stride, count, first, last, bias,
                       -HUGE_VALF, HUGE_VALF, y_of(row), step * e.columns);
    else
      unpacked_products(e.floats_of(g.expert), x_of(row), step * e.depth, count, first, last, bias,
                        -HUGE_VALF, HUGE_VALF, y_of(row), step * e.columns);
  };
  // Rows that are evenly spaced are multiplied at once.
  const int64_t step = rows > 1 ? g.rows[1] - g.rows[0] : 0;
  bool even = true;
  for (size_t r = 2; r < g.rows.size(); ++r) even = even && g.rows[r] - g.rows[r - 1] == step;
  if (even) return product(0, rows, step);
  for (int64_t r = 0; r < rows; ++r) product(r, 1, 0);
}

// Computes a group of more rows, panel by panel.
void many_expert_rows(const Experts& e, const ExpertRows::Group& g, float* gathered, std::span<float> rest,
                      int64_t each, ThreadPool* threads) {
  const auto rows = static_cast<int64_t>(g.rows.size());
  parallel_for(threads, rows, std::max<int64_t>(16384 / std::max<int64_t>(e.depth, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r)
                   std::copy_n(e.x + g.rows[static_cast<size_t>(r)] * e.depth, e.depth,
                               gathered + r * e.depth);
               });
  const int64_t width = panel_width(), panels = divide_up(e.columns, width);
  const auto room = static_cast<int64_t>(rest.size()) / each;
  const int64_t slots = std::clamp<int64_t>(threads_of(threads), 1, std::max<int64_t>(room, 1));
  parallel_slots(threads, slots, panels, [&](int64_t slot, int64_t begin, int64_t end) {
    float* piece = rest.data() + slot * each;
    float* results = piece + kPanelPieceFloats;
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t column = panel * width, columns = std::min(width, e.columns - column);
      Gemm product;
      product.a = gathered, product.a_stride = e.depth, product.rows = rows, product.columns = columns;
      product.depth = e.depth, product.y = results, product.y_stride = width;
      if (e.bias != nullptr) product.bias = e.bias_of(g.expert) + column;
      for (int64_t k0 = 0; k0 == 0 || k0 < e.depth; k0 += kDepthPiece) {
        const int64_t k1 = std::min(k0 + kDepthPiece, e.depth);
        if (e.low_bit)
          widen_panel(e.low_bit_of(g.expert), column, k0, k1, piece);
        else
          widen_panel_piece(e.floats_of(g.expert), column, k0, k1, piece);
        gemm_piece(product, 0, k0, piece);
      }
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(results + r * width, columns, e.y + g.rows[static_cast<size_t>(r)] * e.columns + column);
    }
  });
}

Status run_experts(const OpCall& call, RunContext& context) {
  const Experts e = experts_of(call);
  ExpertRows sorted;
  SINTER_RETURN_IF_ERROR(sort_by_expert(call.in(1), e.experts, context.workspace, &sorted));
  if (e.rows * e.columns == 0) return ok_status();
  ExpertScratch s;
  size_t lists = 0;
  int64_t fewest = 0;
  if (!expert_rows_bytes(e.rows, &lists) || !s.set(e) || !s.floats(e, 1, &fewest))
    return too_much_workspace();
  const std::span<std::byte> bytes = context.workspace.subspan(lists);
  SINTER_RETURN_UNLESS(bytes.size() / sizeof(float) >= static_cast<size_t>(fewest),
                       error(Code::kOutOfMemory, "the workspace is too small"));
  const std::span<float> floats(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  float* arranged = floats.data();
  float* gathered = arranged + s.arranged * e.rows;
  const std::span<float> rest = floats.subspan(static_cast<size_t>(s.arranged * e.rows + s.gathered));
  const auto is_few = [&](const ExpertRows::Group& g) {
    return static_cast<int64_t>(g.rows.size()) <= kLowBitRows;
  };
  if (e.low_bit)
    parallel_for(context.threads, e.rows, std::max<int64_t>(16384 / std::max<int64_t>(e.depth, 1), 1),
                 [&](int64_t begin, int64_t end) {
                   const LowBit any = e.low_bit_of(0);
                   for (int64_t i = begin; i < end; ++i)
                     arrange_row(any, e.x + sorted.order[static_cast<size_t>(i)] * e.depth,
                                 arranged + i * s.arranged);
                 });
  // The columns of a piece, in whole fours. Pieces are large, because memory is read ahead beyond their ends.
  const int64_t row_bytes = e.low_bit ? e.low_bit_of(0).row_bytes() : e.depth * bit_width(e.w.dtype) / 8;
  const int64_t grain = divide_up(std::max<int64_t>(131072 / std::max<int64_t>(row_bytes, 1), 1), 4) * 4;
  const int64_t pieces = divide_up(e.columns, grain);
  parallel_for(context.threads, sorted.groups() * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const ExpertRows::Group g = sorted.group(unit / pieces);
      const int64_t first = unit % pieces * grain;
      if (is_few(g))
        few_expert_rows(e, g, arranged + (g.rows.data() - sorted.order.data()) * s.arranged, s.arranged,
                        first, std::min(first + grain, e.columns));
    }
  });
  for (int64_t i = 0; i < sorted.groups(); ++i)
    if (const ExpertRows::Group g = sorted.group(i); !is_few(g))
      many_expert_rows(e, g, gathered, rest, s.each, context.threads);
  return ok_status();
}

}  // namespace

const Kernel kExpertFullyConnectedKernel = {Op::kExpertFullyConnected, nullptr, experts_workspace,
                                            run_experts, accept_experts};

}  // namespace sinter::simd
