// Element-wise walks over two operands that broadcast. Axes are merged, so that the operands of a row are
// contiguous or one element.
#pragma once

#include "platforms/simd/table.h"

namespace sinter::simd {

// Merged axes, outermost first; strides in elements.
struct PairAxes {
  int rank = 0;
  int64_t dims[kMaxRank] = {}, a[kMaxRank] = {}, b[kMaxRank] = {}, y[kMaxRank] = {};

  void push(int64_t dim, int64_t a_stride, int64_t b_stride, int64_t y_stride) {
    if (dim == 1) return;
    if (rank > 0 && a[rank - 1] == a_stride * dim && b[rank - 1] == b_stride * dim &&
        y[rank - 1] == y_stride * dim)
      dims[--rank] *= dim;
    else
      dims[rank] = dim;
    a[rank] = a_stride, b[rank] = b_stride, y[rank] = y_stride;
    ++rank;
  }
};

inline int64_t broadcast_stride(const TensorView& v, int rank, int axis) {
  const int own = axis - (rank - v.rank);
  return own < 0 || v.dims[own] == 1 ? 0 : v.strides[own] / static_cast<int64_t>(byte_width(v.dtype));
}

// Returns the index of the matrix of `v` that is multiplied for matrix `index` of y.
inline int64_t broadcast_index(const TensorView& v, const TensorView& y, int64_t index) {
  int64_t at = 0, step = 1;
  for (int i = y.rank - 3; i >= 0; --i) {
    const int own = i - (y.rank - v.rank);
    if (own >= 0 && v.dims[own] != 1) at += index % y.dims[i] * step;
    if (own >= 0) step *= v.dims[own];
    index /= y.dims[i];
  }
  return at;
}

// Returns the number of elements of which y has several copies in a row: one, or those of y's last axis. It
// is y.size() for a single copy, 0 for other copies.
inline int64_t repeated_elements(const TensorView& operand, const TensorView& y) {
  const int64_t size = operand.size();
  if (size == y.size() || size == 1) return size;
  const bool row =
      operand.rank > 0 && y.rank > 0 && size == operand.dims[operand.rank - 1] && size == y.dims[y.rank - 1];
  return row ? size : 0;
}

inline PairAxes pair_axes(const OpCall& call) {
  const TensorView& out = call.out(0);
  PairAxes axes;
  for (int i = 0; i < out.rank; ++i)
    axes.push(out.dims[i], broadcast_stride(call.in(0), out.rank, i),
              broadcast_stride(call.in(1), out.rank, i), broadcast_stride(out, out.rank, i));
  return axes;
}

// Accepts operands of whole elements that are dense, or whose strides make rows long enough.
inline Status accept_pair_rows(const OpCall& call) {
  if (call.in(0).dense() && call.in(1).dense() && call.out(0).dense()) return ok_status();
  const PairAxes axes = pair_axes(call);
  const int inner = axes.rank - 1;
  SINTER_RETURN_UNLESS(call.out(0).size() > 0 && inner >= 0 && axes.dims[inner] >= kStridedRow &&
                           (axes.a[inner] == 0 || axes.a[inner] == 1) &&
                           (axes.b[inner] == 0 || axes.b[inner] == 1) && axes.y[inner] == 1,
                       unsupported("the rows of strided operands are too short"));
  return ok_status();
}

inline constexpr int64_t kPairPiece = 16384;
inline constexpr int64_t kPairRepeated = 896;  // at most, on the stack
inline constexpr int64_t kShortRow = 256;
inline constexpr int64_t kSpreadRow = 8;

// One operand (a or b) is a row of `length` numbers, the other has as many rows as the result. It has a frame
// of its own: together with its caller's, clang's would be too large.
template <class A, class B, class Y, class Row>
[[gnu::noinline]] void for_each_repeated_row(const OpCall& call, ThreadPool* threads, bool repeats_a,
                                             int64_t length, Row row) {
  const auto* a = call.in(0).as<const A>();
  const auto* b = call.in(1).as<const B>();
  auto* y = call.out(0).as<Y>();
  const int64_t copies = kPairRepeated / length, size = call.out(0).size(), step = copies * length;
  // The two cases are separate: g++ 12 with -fsanitize=undefined loses i in a merged form.
  const auto repeat = [&](auto* rows, const auto* from) {
    for (int64_t i = 0; i < step; ++i) rows[i] = from[i % length];
  };
  parallel_for(threads, divide_up(size, step), kPairPiece / kPairRepeated, [&](int64_t begin, int64_t end) {
    const auto pieces = [&](auto run) {
      for (int64_t piece = begin; piece < end; ++piece)
        run(piece * step, static_cast<size_t>(std::min(step, size - piece * step)));
    };
    if (repeats_a) {
      A rows[kPairRepeated];
      repeat(rows, a);
      pieces([&](int64_t at, size_t n) { row(rows, b + at, y + at, 1, 1, n); });
    } else {
      B rows[kPairRepeated];
      repeat(rows, b);
      pieces([&](int64_t at, size_t n) { row(a + at, rows, y + at, 1, 1, n); });
    }
  });
}

// In this case one operand (a or b) has an element for each row of `length` numbers, the other one as many
// rows as the result. It has its own frame, too.
template <class A, class B, class Y, class Row>
[[gnu::noinline]] void for_each_spread_row(const OpCall& call, ThreadPool* threads, bool spreads_a,
                                           int64_t length, Row row) {
  const auto* a = call.in(0).as<const A>();
  const auto* b = call.in(1).as<const B>();
  auto* y = call.out(0).as<Y>();
  const int64_t together = kPairRepeated / length, rows = call.out(0).size() / length;
  parallel_for(threads, divide_up(rows, together), kPairPiece / kPairRepeated,
               [&](int64_t begin, int64_t end) {
                 const auto pieces = [&](auto* spread, const auto* from, auto run) {
                   for (int64_t piece = begin; piece < end; ++piece) {
                     const int64_t first = piece * together, n = std::min(together, rows - first);
                     for (int64_t i = 0; i < n; ++i)
                       for (int64_t k = 0; k < length; ++k) spread[i * length + k] = from[first + i];
                     run(first * length, static_cast<size_t>(n * length));
                   }
                 };
                 if (spreads_a) {
                   A spread[kPairRepeated];
                   pieces(spread, a, [&](int64_t at, size_t n) { row(spread, b + at, y + at, 1, 1, n); });
                 } else {
                   B spread[kPairRepeated];
                   pieces(spread, b, [&](int64_t at, size_t n) { row(a + at, spread, y + at, 1, 1, n); });
                 }
               });
}

// Calls row(a, b, y, a_step, b_step, n) for pieces of the result; steps are 1, or 0 for an operand that is
// one element.
template <class A, class B, class Y, class Row>
void for_each_pair_row(const OpCall& call, ThreadPool* threads, Row row) {
  const TensorView& out = call.out(0);
  if (out.size() == 0) return;
  const PairAxes axes = pair_axes(call);
  const int inner = std::max(axes.rank - 1, 0);
  const int64_t length = axes.rank > 0 ? axes.dims[inner] : 1;
  const int64_t a_step = axes.a[inner], b_step = axes.b[inner];
  // A short row that is combined with every row (a bias per channel) is repeated until it is worth a call.
  const bool repeats_a = axes.rank == 2 && axes.y[0] == length && axes.a[0] == 0 && a_step == 1 &&
                         axes.b[0] == length && b_step == 1;
  const bool repeats_b = axes.rank == 2 && axes.y[0] == length && axes.b[0] == 0 && b_step == 1 &&
                         axes.a[0] == length && a_step == 1;
  if ((repeats_a || repeats_b) && length <= kShortRow)
    return for_each_repeated_row<A, B, Y>(call, threads, repeats_a, length, row);
  // An element that is combined with a very short row is repeated as well.
  const bool spreads = axes.rank == 2 && axes.y[0] == length && length <= kSpreadRow;
  const bool spreads_a = spreads && axes.a[0] == 1 && a_step == 0 && axes.b[0] == length && b_step == 1;
  const bool spreads_b = spreads && axes.b[0] == 1 && b_step == 0 && axes.a[0] == length && a_step == 1;
  if (spreads_a || spreads_b) return for_each_spread_row<A, B, Y>(call, threads, spreads_a, length, row);
  // Long rows are cut into pieces, short ones gathered.
  const int64_t piece = std::min(length, kPairPiece), pieces = divide_up(length, piece);
  const int64_t rows = out.size() / length;
  const auto* a = call.in(0).as<const A>();
  const auto* b = call.in(1).as<const B>();
  auto* y = out.as<Y>();
  parallel_for(threads, rows * pieces, std::max<int64_t>(kPairPiece / piece, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t at_row = unit / pieces, first = unit % pieces * piece;
                   int64_t a_at = first * a_step, b_at = first * b_step, y_at = first, rest = at_row;
                   for (int i = inner - 1; i >= 0; --i) {
                     const int64_t at = rest % axes.dims[i];
                     rest /= axes.dims[i];
                     a_at += at * axes.a[i], b_at += at * axes.b[i], y_at += at * axes.y[i];
                   }
                   row(a + a_at, b + b_at, y + y_at, a_step, b_step,
                       static_cast<size_t>(std::min(piece, length - first)));
                 }
               });
}

}  // namespace sinter::simd
