// Products of integers on tensor cores: QConv, QConvTranspose, QFullyConnected, QMatMul.
//
// A block computes a tile of rows and columns, 64 elements of the depth at a time, by four warps. The next 64
// elements are on their way to registers while these are multiplied.
//
// Any order of the depth gives the same sum. A lane takes its words of both operands from 16 adjacent bytes,
// so that one load serves two products, and eight lanes read 128 bytes in a row. Columns are spread over
// fragments so that a lane's results are eight adjacent ones.
#include "platforms/cuda/kernels/integer/integer_chunk.h"
#include "platforms/cuda/kernels/integer/q_product.h"

namespace sinter::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kDepth = 64;                       // elements of a step
constexpr int kChunks = kDepth / 16;             // of a row in a step
constexpr int kRowsAtOnce = kThreads / kChunks;  // whose chunks the block's threads load
constexpr int kColumnFragments = 4;
constexpr int kAdjacent = 2 * kColumnFragments;  // columns of a lane

template <class X, class W, int kRowFragments, int kWarpsAcross>
struct Tile {
  static constexpr int kXPlanes = sizeof(X), kWPlanes = sizeof(W);
  // The sums of products of planes, by their distance in bytes from the highest.
  static constexpr int kSums = kXPlanes + kWPlanes - 1;
  static constexpr int kWarpRows = 16 * kRowFragments, kWarpColumns = 8 * kColumnFragments;
  static constexpr int kRows = kThreads / kWarp / kWarpsAcross * kWarpRows,
                       kColumns = kWarpsAcross * kWarpColumns;
  static constexpr int kXBytes = kXPlanes * kRows * kDepth, kWBytes = kWPlanes * kColumns * kDepth;
  static constexpr int kStage = kXBytes + kWBytes;
  static constexpr int kXLoads = kRows / kRowsAtOnce, kWLoads = kColumns / kRowsAtOnce;
  // The zero points in the form of bytes (integer_chunk.h).
  static constexpr int32_t kXMoved = kXPlanes == 2 ? 128 : 0, kWMoved = kWPlanes == 2 ? 128 : 0;
  using Wide = std::conditional_t<kXPlanes == 1, int32_t, int64_t>;
  using Wraps = std::make_unsigned_t<Wide>;

  const QProductArguments& a;
  uint32_t first_row, first_column;
  const std::byte *x, *w;
  uint32_t unit;
  WindowStart start[kXLoads];

  // Return the place of this warp within the tile.
  SINTER_DEVICE static int warp_row() { return warp_index() / kWarpsAcross * kWarpRows; }
  SINTER_DEVICE static int warp_column() { return warp_index() % kWarpsAcross * kWarpColumns; }
  SINTER_DEVICE int row_of(int load) const { return thread_index() / kChunks + load * kRowsAtOnce; }

  SINTER_DEVICE void begin() {
    SINTER_UNROLL
    for (int i = 0; i < kXLoads; ++i) {
      const uint32_t row = first_row + static_cast<uint32_t>(row_of(i));
      start[i] = window_start(a.window, row < a.rows ? row : 0);
    }
    unit = a.unit;
    if (unit == 16 && !is_aligned(x, 16)) unit = 4;
    if (unit == 4 && !is_aligned(x, 4 * sizeof(X))) unit = 1;
  }

  // Loads elements from k on, of this thread's rows.
  SINTER_DEVICE void load_x(uint32_t k, IntegerChunk<kXPlanes> (&to)[kXLoads]) const {
    SINTER_UNROLL
    for (int i = 0; i < kXLoads; ++i) to[i] = {};
    if (k >= a.x_depth) return;
    if (unit == 16) {
      const WindowTap tap = window_tap(a.window, k);
      SINTER_UNROLL
      for (int i = 0; i < kXLoads; ++i) {
        const int64_t at = window_element(a.window, start[i], tap);
        if (at >= 0)
          load_sixteen(x + at * static_cast<int64_t>(sizeof(X)), &to[i]);
        else
          fill_sixteen(a.x_zero, &to[i]);
      }
      return;
    }
    load_fours<0>(k, to);
    load_fours<1>(k + 4, to);
    load_fours<2>(k + 8, to);
    load_fours<3>(k + 12, to);
  }
  template <int n>
  SINTER_DEVICE void load_fours(uint32_t k, IntegerChunk<kXPlanes> (&to)[kXLoads]) const {
    if (k >= a.x_depth) return;
    if (unit == 4) {
      const WindowTap tap = window_tap(a.window, k);
      SINTER_UNROLL
      for (int i = 0; i < kXLoads; ++i) {
        const int64_t at = window_element(a.window, start[i], tap);
        if (at >= 0)
          load_four<n>(x + at * static_cast<int64_t>(sizeof(X)), &to[i]);
        else
          fill_four(a.x_zero, n, &to[i]);
      }
      return;
    }
    SINTER_ROLLED
    for (int b = 0; b < 4 && k + static_cast<uint32_t>(b) < a.x_depth; ++b) {
      const WindowTap tap = window_tap(a.window, k + static_cast<uint32_t>(b));
      SINTER_UNROLL
      for (int i = 0; i < kXLoads; ++i) {
        const int64_t at = window_element(a.window, start[i], tap);
        const int32_t v = at >= 0 ? reinterpret_cast<const X*>(x)[at] : a.x_zero;
        put_one(v, b, n, &to[i]);
      }
    }
  }
  SINTER_DEVICE void load_w(uint32_t k, IntegerChunk<kWPlanes> (&to)[kWLoads]) const {
    SINTER_UNROLL
    for (int i = 0; i < kWLoads; ++i) {
      to[i] = {};
      const uint32_t column = first_column + static_cast<uint32_t>(row_of(i));
      if (column >= a.columns || k >= a.pitch) continue;
      const std::byte* at = w + (int64_t{column} * a.pitch + k) * static_cast<int64_t>(sizeof(W));
      if (is_aligned(w, 16)) {
        load_sixteen(at, &to[i]);
      } else {
        SINTER_ROLLED
        for (int n = 0; n < 16; ++n) put_one(reinterpret_cast<const W*>(at)[n], n % 4, n / 4, &to[i]);
      }
    }
  }
  // Stores into a stage of shared memory: rows of 64 bytes, plane by plane, x before w.
  SINTER_DEVICE void store(const Shared<int8_t>& stage, const IntegerChunk<kXPlanes> (&xs)[kXLoads],
                           const IntegerChunk<kWPlanes> (&ws)[kWLoads]) const {
    const int chunk = thread_index() % kChunks * 16;
    SINTER_UNROLL
    for (int i = 0; i < kXLoads; ++i) SINTER_UNROLL
    for (int p = 0; p < kXPlanes; ++p) stage.store((p * kRows + row_of(i)) * kDepth + chunk, xs[i].plane[p]);
    SINTER_UNROLL
    for (int i = 0; i < kWLoads; ++i) SINTER_UNROLL
    for (int p = 0; p < kWPlanes; ++p)
      stage.store(kXBytes + (p * kColumns + row_of(i)) * kDepth + chunk, ws[i].plane[p]);
  }

  // The sums of a warp's half of the tile.
  struct Sums {
    int32_t of[kSums][kRowFragments][kColumnFragments][4] = {};
    // This lane's part of the sums of rows and columns alone, by plane.
    int32_t rows[kXPlanes][kRowFragments][2] = {}, columns[kWPlanes][kColumnFragments] = {};
  };

  SINTER_DEVICE static void multiply(const Shared<int8_t>& stage, bool sum_rows, bool sum_columns, Sums& s) {
    const int g = lane() / 4, chunk = lane() % 4 * 16;
    const int row0 = warp_row(), column0 = warp_column();
    Words<16> b[kWPlanes][kColumnFragments];
    SINTER_UNROLL
    for (int p = 0; p < kWPlanes; ++p) SINTER_UNROLL
    for (int j = 0; j < kColumnFragments; ++j) {
      const int column = column0 + g / 2 * kAdjacent + 2 * j + g % 2;
      b[p][j] = stage.template load<Words<16>>(kXBytes + (p * kColumns + column) * kDepth + chunk);
      if (sum_columns) s.columns[p][j] += sum_of_bytes(b[p][j]);
    }
    SINTER_UNROLL
    for (int i = 0; i < kRowFragments; ++i) SINTER_UNROLL
    for (int p = 0; p < kXPlanes; ++p) {
      const int row = p * kRows + row0 + 16 * i + g;
      const auto upper = stage.template load<Words<16>>(row * kDepth + chunk);
      const auto lower = stage.template load<Words<16>>((row + 8) * kDepth + chunk);
      if (sum_rows) {
        s.rows[p][i][0] += sum_of_bytes(upper);
        s.rows[p][i][1] += sum_of_bytes(lower);
      }
      SINTER_UNROLL
      for (int half = 0; half < 4; half += 2) {
        const uint32_t fragment[4] = {upper.w[half], lower.w[half], upper.w[half + 1], lower.w[half + 1]};
        SINTER_UNROLL
        for (int q = 0; q < kWPlanes; ++q) SINTER_UNROLL
        for (int j = 0; j < kColumnFragments; ++j) {
          const uint32_t other[2] = {b[q][j].w[half], b[q][j].w[half + 1]};
          multiply_int8(s.of[p + q][i][j], fragment, other);
        }
      }
    }
  }
  SINTER_DEVICE static int32_t sum_of_bytes(const Words<16>& v) {
    int32_t sum = 0;
    SINTER_UNROLL
    for (int i = 0; i < 4; ++i) sum = dot4(static_cast<int32_t>(v.w[i]), 0x01010101, sum);
    return sum;
  }

  // Returns the number that planes are, without the 128 of each.
  template <int kPlanes>
  SINTER_DEVICE static Wraps joined(const int32_t (&planes)[kPlanes]) {
    Wraps v = 0;
    SINTER_UNROLL
    for (int p = 0; p < kPlanes; ++p) v = v * 256 + static_cast<Wraps>(static_cast<Wide>(planes[p]));
    return v;
  }
  SINTER_DEVICE static int32_t over_chunks(int32_t v) {
    v += shuffle_xor(v, 1);
    return v + shuffle_xor(v, 2);
  }

  // The terms that every row adds to this lane's columns, and each column's zero point and multiplier.
  struct Column {
    Wraps term[kAdjacent], zero[kAdjacent];
    float multiplier[kAdjacent];
  };
  SINTER_DEVICE void set_columns(uint32_t product_column, uint32_t column0, bool sum_columns, const Sums& s,
                                 Column& c) const {
    const auto x_zero = static_cast<Wraps>(static_cast<Wide>(a.x_zero - kXMoved));
    int32_t sums[kWPlanes][kColumnFragments];
    SINTER_UNROLL
    for (int p = 0; p < kWPlanes; ++p) SINTER_UNROLL
    for (int j = 0; j < kColumnFragments; ++j) sums[p][j] = sum_columns ? over_chunks(s.columns[p][j]) : 0;
    SINTER_UNROLL
    for (int n = 0; n < kAdjacent; ++n) {
      int32_t planes[kWPlanes] = {};
      if (sum_columns) SINTER_UNROLL
      for (int p = 0; p < kWPlanes; ++p) planes[p] = shuffle(sums[p][n / 2], (lane() % 4 * 2 + n % 2) * 4);
      c.term[n] = c.zero[n] = 0, c.multiplier[n] = a.multiplier;
      const uint32_t column = column0 + static_cast<uint32_t>(n);
      if (column >= a.columns) continue;
      const uint32_t all = product_column + column;
      const int32_t zero = a.w_zeros != nullptr ? a.w_zeros[int64_t{all} * a.w_zero_step] : a.w_zero;
      c.zero[n] = static_cast<Wraps>(static_cast<Wide>(zero - kWMoved));
      if (a.multipliers != nullptr) c.multiplier[n] = a.multipliers[int64_t{all} * a.multiplier_step];
      if (a.terms != nullptr) c.term[n] = static_cast<Wraps>(static_cast<const Wide*>(a.terms)[all]);
      if (sum_columns) c.term[n] += x_zero * (static_cast<Wraps>(a.depth) * c.zero[n] - joined(planes));
    }
  }

  SINTER_DEVICE int64_t y_row(uint32_t row) const {
    if (a.scattered.on == 0) return int64_t{row} * a.y_step;
    const ScatteredRows& to = a.scattered;
    uint32_t pixel, p1, p2;
    const uint32_t image = a.window.pixels.divide(row, &pixel);
    const uint32_t line = a.window.out2.divide(pixel, &p2);
    const uint32_t p0 = a.window.out1.divide(line, &p1);
    const int64_t q0 = to.first[0] + int64_t{p0} * to.stride[0],
                  q1 = to.first[1] + int64_t{p1} * to.stride[1],
                  q2 = to.first[2] + int64_t{p2} * to.stride[2];
    return (((image * int64_t{to.out[0]} + q0) * to.out[1] + q1) * to.out[2] + q2) * a.y_step;
  }

  SINTER_DEVICE void give(std::byte* y, uint32_t product_column, bool sum_rows, bool sum_columns,
                          const Sums& s) const {
    const uint32_t column0 = first_column + static_cast<uint32_t>(warp_column() + lane() % 4 * kAdjacent);
    Column columns;
    set_columns(product_column, column0, sum_columns, s, columns);
    const int width = a.result.width;
    const bool whole = column0 + kAdjacent <= a.columns;
    SINTER_UNROLL
    for (int i = 0; i < kRowFragments; ++i) SINTER_UNROLL
    for (int half = 0; half < 2; ++half) {
      Wraps row_sum = 0;
      if (sum_rows) {
        int32_t planes[kXPlanes];
        SINTER_UNROLL
        for (int p = 0; p < kXPlanes; ++p) planes[p] = over_chunks(s.rows[p][i][half]);
        row_sum = joined(planes);
      }
      const uint32_t row = first_row + static_cast<uint32_t>(warp_row() + 16 * i + 8 * half + lane() / 4);
      if (row >= a.rows || column0 >= a.columns) continue;
      float values[kAdjacent];
      SINTER_UNROLL
      for (int n = 0; n < kAdjacent; ++n) {
        int32_t planes[kSums];
        SINTER_UNROLL
        for (int p = 0; p < kSums; ++p) planes[p] = s.of[p][i][n / 2][2 * half + n % 2];
        const Wraps sum = joined(planes) + columns.term[n] - columns.zero[n] * row_sum;
        values[n] = static_cast<float>(static_cast<Wide>(sum)) * columns.multiplier[n];
      }
      const int64_t at = y_row(row) + column0;
      if (whole && is_aligned(y + at * width, width == 1 ? 8 : 16)) {
        store_results(a.result, y, at, values);
      } else {
        SINTER_UNROLL
        for (int n = 0; n < kAdjacent; ++n)
          if (column0 + static_cast<uint32_t>(n) < a.columns) store_result(a.result, y, at + n, values[n]);
      }
    }
  }
};

template <class X, class W, int kRowFragments, int kWarpsAcross>
SINTER_DEVICE void product(const QProductArguments& a) {
  using T = Tile<X, W, kRowFragments, kWarpsAcross>;
  const Shared<int8_t> stages = shared_memory<int8_t>(0, 2 * T::kStage);
  uint32_t column_tile;
  const uint32_t row_tile = a.column_tiles.divide(block_x(), &column_tile);
  const uint32_t number = block_z();
  T tile{a,
         row_tile * T::kRows,
         column_tile * T::kColumns,
         a.x + offset_of(a.products, a.x_steps, number),
         a.w + offset_of(a.products, a.w_steps, number),
         1,
         {}};
  tile.begin();
  const bool sum_rows = a.w_zeros != nullptr || a.w_zero != T::kWMoved;
  const bool sum_columns = a.folded == 0 && a.x_zero != T::kXMoved;

  // A warp beyond the last row or column only brings operands.
  const bool works = tile.first_row + static_cast<uint32_t>(T::warp_row()) < a.rows &&
                     tile.first_column + static_cast<uint32_t>(T::warp_column()) < a.columns;

  typename T::Sums sums;
  IntegerChunk<T::kXPlanes> xs[T::kXLoads];
  IntegerChunk<T::kWPlanes> ws[T::kWLoads];
  const auto mine = static_cast<uint32_t>(thread_index() % kChunks * 16);
  const uint32_t steps = (a.depth + kDepth - 1) / kDepth;
  if (steps > 0) {
    tile.load_x(mine, xs);
    tile.load_w(mine, ws);
    tile.store(stages, xs, ws);
  }
  barrier();
  for (uint32_t step = 0; step < steps; ++step) {
    const bool more = step + 1 < steps;
    if (more) {
      tile.load_x((step + 1) * kDepth + mine, xs);
      tile.load_w((step + 1) * kDepth + mine, ws);
    }
    if (works) T::multiply(stages + static_cast<int>(step % 2) * T::kStage, sum_rows, sum_columns, sums);
    if (more) tile.store(stages + static_cast<int>((step + 1) % 2) * T::kStage, xs, ws);
    barrier();
  }
  tile.give(a.y + offset_of(a.products, a.y_steps, number),
            static_cast<uint32_t>(offset_of(a.products, a.column_steps, number)), sum_rows, sum_columns,
            sums);
}

}  // namespace

// The tiles have 128 x 64, 32 x 64 and 128 x 32 results; for int16, 64 x 64 and 32 x 64.
SINTER_KERNEL(q_product, QProductArguments) { product<int8_t, int8_t, 4, 2>(a); }
SINTER_KERNEL(q_product_few, QProductArguments) { product<int8_t, int8_t, 1, 2>(a); }
SINTER_KERNEL(q_product_narrow, QProductArguments) { product<int8_t, int8_t, 2, 1>(a); }
SINTER_KERNEL(q_product_wide, QProductArguments) { product<int16_t, int8_t, 2, 2>(a); }
SINTER_KERNEL(q_product_both_wide, QProductArguments) { product<int16_t, int16_t, 1, 2>(a); }

}  // namespace sinter::cuda
