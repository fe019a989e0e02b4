// The loops of a product of rows and columns over a depth, with hardly any scratch: operands are read in
// place.
//
// Data that has to be rearranged (the patches of a convolution; rows of floats, so that four sums fit a
// vector) is gathered for four rows at a time. Every float result is summed by one thread in the order of the
// depth index, in an accumulator that is wider than the element, and rounded once; integers wrap, so that
// their order does not matter.
#pragma once

#include <utility>

#include "runtime/kernels/linear.h"
#include "runtime/kernels/simd32.h"

namespace sinter::linear {

constexpr int64_t kTile = 4;             // rows and columns of a tile
constexpr int64_t kCached = 128 * 1024;  // bytes of columns that all rows use before the next columns

// Copies n values to dst, `step` apart; a null source is padding.
template <class T, class D>
inline void spread(const T* from, T padding, int64_t n, D* dst, int64_t step) {
  if (from == nullptr) {
    for (int64_t k = 0; k < n; ++k) dst[k * step] = static_cast<D>(padding);
  } else if (step == 1) {
    for (int64_t k = 0; k < n; ++k) dst[k] = static_cast<D>(from[k]);
  } else {
    for (int64_t k = 0; k < n; ++k) dst[k * kTile] = static_cast<D>(from[k]);
  }
}

// ---- tiles

// Computes kLanes sums for each of `others` (at most kTile): sums[o][l] += sum over k of lane l's value k *
// other o's. Lanes are adjacent. other(o) is the address of its values, reader(o) reads them.
template <int kLanes, int kOthers, class Lane, class LaneReader, class Other, class OtherReader, class Acc>
[[gnu::noinline]] void lane_tile_of(const Lane* lanes, int64_t lane_step, LaneReader read_lane,
                                    const Other* const (&other)[kTile], int64_t other_step,
                                    const OtherReader (&read)[kTile], int64_t depth, Acc (*sums)[kTile]) {
  Acc sum[kOthers][kLanes];
  for (int o = 0; o < kOthers; ++o)
    for (int l = 0; l < kLanes; ++l) sum[o][l] = sums[o][l];
  for (int64_t k = 0; k < depth; ++k) {
    Acc x[kLanes];
    for (int l = 0; l < kLanes; ++l) x[l] = read_lane(lanes[k * lane_step + l]);
    // The loop is written out, so that the sums stay in registers.
    [&]<size_t... o>(std::index_sequence<o...>) {
      const auto add = [&](Acc(&to)[kLanes], Acc v) {
        for (int l = 0; l < kLanes; ++l) to[l] += x[l] * v;
      };
      (add(sum[o], read[o](other[o][k * other_step])), ...);
    }
    (std::make_index_sequence<kOthers>{});
  }
  for (int o = 0; o < kOthers; ++o)
    for (int l = 0; l < kLanes; ++l) sums[o][l] = sum[o][l];
}

template <int kLanes, class Lane, class LaneReader, class At, class Readers, class Acc>
void lane_tile(const Lane* lanes, int64_t lane_step, LaneReader read_lane, At&& other, int64_t other_step,
               Readers&& reader, int64_t others, int64_t depth, Acc (*sums)[kTile]) {
  using Other = std::remove_cvref_t<decltype(*other(0))>;
  using OtherReader = decltype(reader(0));
  const Other* at[kTile];
  OtherReader read[kTile];
  Acc all[kTile][kTile] = {};
  for (int o = 0; o < kTile; ++o) {
    const int64_t i = std::min<int64_t>(o, others - 1);  // repeats the last one
    at[o] = other(i), read[o] = reader(i);
  }
  if (others == 1)
    return lane_tile_of<kLanes, 1>(lanes, lane_step, read_lane, at, other_step, read, depth, sums);
  if (others == kTile)
    return lane_tile_of<kLanes, kTile>(lanes, lane_step, read_lane, at, other_step, read, depth, sums);
  for (int64_t o = 0; o < others; ++o)
    for (int l = 0; l < kLanes; ++l) all[o][l] = sums[o][l];
  lane_tile_of<kLanes, kTile>(lanes, lane_step, read_lane, at, other_step, read, depth, all);
  for (int64_t o = 0; o < others; ++o)
    for (int l = 0; l < kLanes; ++l) sums[o][l] = all[o][l];
}

constexpr int64_t kChunk = 16;  // of depth: int8 products are summed in int16 pairs

// Sums integers that are contiguous on both sides: sums[c][r] += sum over k of x[r][k] * w[c][k].
template <int kRows, int kColumns, class X, class W, class Reader, class Acc>
[[gnu::noinline]] void dot_tile(const X* const (&x)[kTile], Reader read_x, const W* const (&w)[kTile],
                                const Reader (&read_w)[kTile], int64_t depth, Acc (*sums)[kTile]) {
  int64_t k = 0;
#if SINTER_SIMD32
  if constexpr (sizeof(X) == 1 && sizeof(W) == 1) {
    k = depth / 4 * 4;
    for (int c = 0; c < kColumns; ++c)
      simd32::add_dots<kRows>(x, read_x.zero, w[c], read_w[c].zero, static_cast<size_t>(k), sums[c]);
  }
#else
  if constexpr (sizeof(X) == 1 && sizeof(W) == 1) {
    // Differences of int8 values take 9 bits, and a chunk's products 20.
    for (; k + kChunk <= depth; k += kChunk) {
      int16_t a[kRows][kChunk];
      for (int r = 0; r < kRows; ++r) {
        const auto zero = static_cast<int16_t>(read_x.zero);
        for (int64_t i = 0; i < kChunk; ++i) a[r][i] = static_cast<int16_t>(x[r][k + i] - zero);
      }
      for (int c = 0; c < kColumns; ++c) {
        int16_t b[kChunk];
        const auto zero = static_cast<int16_t>(read_w[c].zero);
        for (int64_t i = 0; i < kChunk; ++i) b[i] = static_cast<int16_t>(w[c][k + i] - zero);
        for (int r = 0; r < kRows; ++r) {
          int32_t sum = 0;
          for (int64_t i = 0; i < kChunk; ++i) sum += int32_t{a[r][i]} * int32_t{b[i]};
          sums[c][r] += static_cast<Acc>(sum);
        }
      }
    }
  }
#endif
  for (int c = 0; c < kColumns; ++c) {
    Acc sum[kRows] = {};
    for (int64_t i = k; i < depth; ++i) {
      const Acc v = read_w[c](w[c][i]);
      for (int r = 0; r < kRows; ++r) sum[r] += read_x(x[r][i]) * v;
    }
    for (int r = 0; r < kRows; ++r) sums[c][r] += sum[r];
  }
}

// ---- division of the work

// Returns the number of others that are used at a time on one thread, from the bytes of one.
inline int64_t chunk_of(int64_t other_bytes) {
  return (std::max<int64_t>(kCached / std::max<int64_t>(other_bytes, 1), 1) + kTile - 1) / kTile * kTile;
}

// The tiles of a product: each of `groups` of four, which may be gathered together, with each of `others`.
struct Tiling {
  int64_t groups = 0, others = 0;
  int64_t other_bytes = 0;       // of one other
  int64_t most = INT64_MAX / 2;  // others at a time
  size_t scratch = 0;            // of a thread
};

// Calls f(scratch, group, first other, past the last), on as many threads as have scratch.
template <class F>
void for_tiles(const Tiling& t, RunContext& context, F&& f) {
  const size_t each = align_up(t.scratch, kBufferAlignment);
  if (t.groups <= 0 || t.others <= 0 || context.workspace.size() < each) return;
  int64_t slots = threads_of(context.threads);
  if (each > 0) slots = std::min(slots, static_cast<int64_t>(context.workspace.size() / each));
  slots = std::max<int64_t>(slots, 1);
  const auto in_fours = [](int64_t n) { return (n + kTile - 1) / kTile * kTile; };
  int64_t chunk = chunk_of(t.other_bytes);
  // Where there are too few groups for the threads, others are shared out as well.
  const int64_t shares = (slots + t.groups - 1) / t.groups;
  chunk = std::min({chunk, t.most, in_fours((t.others + shares - 1) / shares)});
  const int64_t chunks = (t.others + chunk - 1) / chunk, units = chunks * t.groups;
  const int64_t used = std::min(slots, units);
  parallel_for(context.threads, used, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      std::byte* scratch = context.workspace.data() + slot * static_cast<int64_t>(each);
      for (int64_t unit = units * slot / used; unit < units * (slot + 1) / used; ++unit) {
        const int64_t first = unit / t.groups * chunk;
        f(scratch, unit % t.groups, first, std::min(first + chunk, t.others));
      }
    }
  });
}

// ---- products whose columns are contiguous

// Returns the bytes in which rows are gathered.
inline int64_t kept_bytes(DType x) {
  return std::max<int64_t>(static_cast<int64_t>(byte_width(x)),
                           is_compute_float(x) ? int64_t{sizeof(float)} : 0);
}
// Returns whether dot_tile takes the type: int8 and int16, which only Quantized computes in.
inline bool is_dots(DType x) { return x == DType::kInt8 || x == DType::kInt16; }

// Returns the scratch of one thread.
inline int64_t gathered_bytes(const Product& p, DType x, bool in_place) {
  if (in_place && (is_dots(x) || p.rows == 1)) return 0;
  return (is_dots(x) ? std::min(p.rows, kTile) : p.rows == 1 ? 1 : kTile) * p.depth * kept_bytes(x);
}

// Returns the bytes for `threads` threads. With `in_place` every row is contiguous.
inline Status product_workspace(const Product& p, DType x, bool in_place, int threads, size_t* bytes) {
  int64_t n = 0;
  SINTER_RETURN_UNLESS(checked_mul<int64_t>(p.depth, kTile * int64_t{sizeof(double)}, &n) &&
                           checked_add<int64_t>(n, kBufferAlignment, &n),
                       too_much_workspace());
  n = static_cast<int64_t>(align_up(static_cast<size_t>(gathered_bytes(p, x, in_place)), kBufferAlignment));
  SINTER_RETURN_UNLESS(
      checked_mul<size_t>(static_cast<size_t>(n), static_cast<size_t>(std::max(threads, 1)), bytes),
      too_much_workspace());
  return ok_status();
}

// place(row) is the address of a row, or null; the same for all rows.
// gather(row, dst, step) writes its values, `step` apart.
// column(c, piece) is a column's values, contiguous in pieces of the same length.
// reader(c) reads them. store(row, c, sum) takes a finished sum.
template <class N, class Place, class Gather, class Column, class Reader, class Store>
void multiply(const Product& p, int64_t pieces, const N& numerics, RunContext& context, Place&& place,
              Gather&& gather, Column&& column, Reader&& reader, Store&& store) {
  using Acc = typename N::Acc;
  using Input = typename N::Input;
  using Kept = typename N::Kept;
  using Weight = typename N::Weight;
  if (p.rows <= 0 || p.columns <= 0) return;
  const auto type = N::kDots ? sizeof(Input) == 1 ? DType::kInt8 : DType::kInt16 : DType::kNone;
  const bool in_place = place(0) != nullptr;
  Tiling tiling{(p.rows + kTile - 1) / kTile, p.columns, p.depth * int64_t{sizeof(Weight)}};
  if constexpr (N::kDots)
    tiling.scratch = static_cast<size_t>(gathered_bytes(p, type, in_place));
  else if (!in_place || p.rows > 1)
    tiling.scratch = static_cast<size_t>((p.rows == 1 ? 1 : kTile) * p.depth) * sizeof(Kept);
  const int64_t piece = pieces > 0 ? p.depth / pieces : 0;
  const auto read_row = numerics.row_reader();

  for_tiles(tiling, context, [&](std::byte* scratch, int64_t group, int64_t c0, int64_t c1) {
    auto* kept = reinterpret_cast<Kept*>(scratch);
    const int64_t r0 = group * kTile, rows = std::min(kTile, p.rows - r0);
    const Input* at[kTile] = {};
    if (in_place && (N::kDots || rows == 1)) {
      for (int64_t r = 0; r < kTile; ++r) at[r] = place(r0 + std::min(r, rows - 1));
    } else if constexpr (N::kDots) {
      for (int64_t r = 0; r < rows; ++r) gather(r0 + r, kept + r * p.depth, 1);
      for (int64_t r = 0; r < kTile; ++r) at[r] = kept + std::min(r, rows - 1) * p.depth;
    } else if (rows == 1) {
      gather(r0, kept, 1);
    } else {
      for (int64_t r = 0; r < kTile; ++r) gather(r0 + std::min(r, rows - 1), kept + r, kTile);
    }
    for (int64_t c = c0; c < c1; c += kTile) {
      const int64_t columns = std::min(kTile, c1 - c);
      Acc sums[kTile][kTile] = {};  // by column
      for (int64_t i = 0; i < pieces; ++i) {
        const int64_t k = i * piece;
        if constexpr (N::kDots) {
          const Input* x[kTile];
          const Weight* w[kTile];
          typename N::Reader read[kTile];
          for (int64_t j = 0; j < kTile; ++j) {
            const int64_t o = c + std::min(j, columns - 1);
            x[j] = at[j] + k, w[j] = column(o, i), read[j] = reader(o);
          }
          if (rows == 1)
            dot_tile<1, kTile>(x, read_row, w, read, piece, sums);
          else
            dot_tile<kTile, kTile>(x, read_row, w, read, piece, sums);
        } else {
          const auto weights = [&](int64_t j) { return column(c + j, i); };
          const auto readers = [&](int64_t j) { return reader(c + j); };
          if (rows > 1)
            lane_tile<kTile>(kept + k * kTile, kTile, read_row, weights, 1, readers, columns, piece, sums);
          else if (at[0] != nullptr)
            lane_tile<1>(at[0] + k, 1, read_row, weights, 1, readers, columns, piece, sums);
          else
            lane_tile<1>(kept + k, 1, read_row, weights, 1, readers, columns, piece, sums);
        }
      }
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < columns; ++j) store(r0 + r, c + j, sums[j][r]);
    }
  });
}

// Checks that rows are taken four at a time, in order, with all columns in one go.
inline Status check_in_order(const Product& p, DType weights) {
  SINTER_RETURN_UNLESS(
      p.depth <= kCached && chunk_of(p.depth * static_cast<int64_t>(byte_width(weights))) >= p.columns,
      unsupported("rows are read more than once"));
  return ok_status();
}
inline Status connected_lead(const OpCall& call, size_t* bytes) {
  const Product p = connected_product(call);
  SINTER_RETURN_IF_ERROR(check_in_order(p, call.in(1).dtype));
  const int64_t in_row = p.depth * static_cast<int64_t>(byte_width(call.in(0).dtype)),
                out_row = p.columns * static_cast<int64_t>(byte_width(call.out(0).dtype));
  const int64_t groups = (p.rows + kTile - 1) / kTile;
  int64_t lead = 0;
  // The lead changes evenly from group to group, except for the last one.
  for (const int64_t group : {int64_t{0}, groups - 2, groups - 1})
    if (group >= 0)
      lead = std::max(lead, std::min((group + 1) * kTile, p.rows) * out_row - group * kTile * in_row);
  *bytes = static_cast<size_t>(lead);
  return ok_status();
}

// Multiplies every row of x [..., depth] by every row of the weights [columns, depth], operands 0 and 1.
template <class N>
void connect(const OpCall& call, const N& numerics, RunContext& context) {
  const auto* x = call.in(0).as<typename N::Input>();
  const auto* w = call.in(1).as<typename N::Weight>();
  const Product p = connected_product(call);
  int64_t x_step = 0, y_step = 0;
  (void)call.in(0).evenly_spaced(&x_step);
  (void)call.out(0).evenly_spaced(&y_step);
  multiply(
      p, 1, numerics, context, [&](int64_t row) { return x + row * x_step; },
      [&](int64_t row, auto* dst, int64_t step) {
        spread(x + row * x_step, numerics.padding(), p.depth, dst, step);
      },
      [&](int64_t c, int64_t) { return w + c * p.depth; },
      [&](int64_t c) { return numerics.column_reader(c); },
      [&](int64_t row, int64_t c, typename N::Acc sum) { numerics.store(row * y_step + c, c, sum); });
}

// ---- products with four adjacent lanes in memory, read in place

// Value k of lane l is lanes[k * lane_step + l], and of other o other[o * other_next + k * other_step].
template <class Lane, class LaneReader, class Other, class OtherReader, class Store>
void lanes_in_place(const Lane* lanes, int64_t lane_step, LaneReader read_lane, int64_t lane_count,
                    const Other* other, int64_t other_next, int64_t other_step, OtherReader read_other,
                    int64_t other_count, int64_t depth, RunContext& context, Store&& store) {
  using Acc = decltype(read_lane(*lanes));
  const Tiling tiling{(lane_count + kTile - 1) / kTile, other_count, depth * int64_t{sizeof(Other)}};
  for_tiles(tiling, context, [&](std::byte*, int64_t group, int64_t o0, int64_t o1) {
    const int64_t l0 = group * kTile, count = std::min(kTile, lane_count - l0);
    for (int64_t o = o0; o < o1; o += kTile) {
      const int64_t others = std::min(kTile, o1 - o);
      const auto at = [&](int64_t i) { return other + (o + i) * other_next; };
      const auto reader = [&](int64_t) { return read_other; };
      if (count == kTile) {
        Acc sums[kTile][kTile] = {};
        lane_tile<kTile>(lanes + l0, lane_step, read_lane, at, other_step, reader, others, depth, sums);
        for (int64_t i = 0; i < others; ++i)
          for (int64_t l = 0; l < kTile; ++l) store(l0 + l, o + i, sums[i][l]);
        continue;
      }
      for (int64_t l = 0; l < count; ++l) {
        Acc sums[kTile][kTile] = {};
        lane_tile<1>(lanes + l0 + l, lane_step, read_lane, at, other_step, reader, others, depth, sums);
        for (int64_t i = 0; i < others; ++i) store(l0 + l, o + i, sums[i][0]);
      }
    }
  });
}

}  // namespace sinter::linear
