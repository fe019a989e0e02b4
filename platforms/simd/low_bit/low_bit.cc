// LowBitFullyConnected.
#include "platforms/simd/low_bit/low_bit.h"

#include <array>

#include "platforms/simd/float/gemm.h"
#include "platforms/simd/low_bit/segments.h"
#include "runtime/core/float_formats.h"

namespace sinter::simd {

LowBit low_bit_of(const LowBitMatrix& matrix) {
  static constexpr auto kFloat4 = [] {
    std::array<float, kWeightTableSize> numbers = {};
    for (unsigned code = 0; code < numbers.size(); ++code)
      numbers[code] = static_cast<float>(decode_float<kFloat4E2M1Format>(code));
    return numbers;
  }();
  LowBit g{matrix};
  if (g.weights != nullptr) g.end = g.weights + g.columns * g.row_bytes();
  if (g.format.type == DType::kFloat4E2M1) g.numbers = kFloat4.data();
  if (g.format.has_table()) g.numbers = reinterpret_cast<const float*>(g.table);
  return g;
}

Status check_low_bit(const LowBit& g) {
  SINTER_RETURN_UNLESS(g.scale_type == DType::kFloat32 || g.scale_type == DType::kFloat16 ||
                           g.scale_type == DType::kBFloat16 || is_float8(g.scale_type),
                       unsupported("scales are float32, float16, bfloat16 or float8 there"));
  // Blocks of a plane of one bit, and of two, begin at whole bytes.
  const int64_t unit = g.format.bits == 2 ? 8 : g.format.unit();
  SINTER_RETURN_UNLESS(
      (g.format.in_planes() || g.depth % g.format.unit() == 0) && (g.blocks <= 1 || g.block % unit == 0),
      unsupported("rows and blocks of weights of few bits begin at whole bytes only"));
  // The sums of a lane are int32.
  SINTER_RETURN_UNLESS(!g.is_rounded || g.block <= 65536,
                       unsupported("blocks of rounded x have 65536 numbers at most"));
  return ok_status();
}

float low_bit_scale(const LowBit& g, int64_t at) {
  if (is_float8(g.scale_type))
    return static_cast<float>(float8_value(g.scale_type, static_cast<uint8_t>(g.scales[at])));
  switch (g.scale_type) {
    case DType::kFloat16:
      return float16_value(reinterpret_cast<const uint16_t*>(g.scales)[at]);
    case DType::kBFloat16:
      return bfloat16_value(reinterpret_cast<const uint16_t*>(g.scales)[at]);
    default:
      return reinterpret_cast<const float*>(g.scales)[at];
  }
}

float low_bit_zero(const LowBit& g, int64_t at) {
  const auto middle = static_cast<int>(g.format.sign_bit());
  if (g.zeros == nullptr) return static_cast<float>(middle);
  if (g.zero_type == DType::kFloat32) return reinterpret_cast<const float*>(g.zeros)[at];
  const int bits = bit_width(g.zero_type);
  const int64_t bit = at * bits;
  const int item = static_cast<int>(g.zeros[bit / 8]) >> (bit % 8) & ((1 << bits) - 1);
  return static_cast<float>(item ^ middle);
}

namespace {

constexpr int64_t kPieceFloats = kMaxPanel * kDepthPiece;

LowBit low_bit(const OpCall& call) {
  LowBit g = low_bit_of(low_bit_matrix(call));
  g.is_rounded = call.attrs<LowBitFullyConnectedAttrs>().activation_bits == 8;
  return g;
}

int64_t rows_of(const TensorView& x) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.dims[i];
  return rows;
}

Status accept_low_bit(const OpCall& call) {
  const TensorView& w = call.in(1);
  SINTER_RETURN_IF_ERROR(check_float_dense(call.in(0)));
  SINTER_RETURN_IF_ERROR(check_float_dense(call.out(0)));
  for (const size_t i : {size_t{4}, size_t{5}})
    if (call.has_input(i)) SINTER_RETURN_IF_ERROR(check_float_dense(call.in(i)));
  SINTER_RETURN_UNLESS(w.dense() && call.in(2).dense() && (!call.has_input(3) || call.in(3).dense()),
                       unsupported("the simd kernel takes dense operands"));
  return check_low_bit(low_bit(call));
}

// The scratch of rows, all of them that are multiplied at a time, and of each thread.
struct LowBitScratch {
  int64_t rows = 0;  // at a time, if they are rounded or arranged
  int64_t row_floats = 0, thread_floats = 0;

  bool set(const LowBit& g, int64_t all_rows) {
    if (all_rows <= kLowBitRows) return rows = all_rows, arranged_floats(g, &row_floats);
    thread_floats = g.is_rounded ? kBytePieceFloats : kPieceFloats;
    if (!g.is_rounded) return true;
    // The bytes of rows that stay in a cache while they are multiplied, in parts of the same length.
    constexpr int64_t kMostRows = 512;
    rows = even_piece(all_rows, kMostRows);
    const LowBitSegments segments(g);
    int64_t n = 0;
    if (!checked_mul(segments.count, segments.record(), &n) || !checked_add<int64_t>(n, 64, &n)) return false;
    return row_floats = segments.stride(), true;
  }
};

// Returns the threads whose scratch is asked for. A plan gives its largest steps the scratch of one thread.
// These gain the most from others, whose scratch is small beside x.
int64_t scratch_threads(const TensorView& x, int threads, int64_t thread_floats) {
  const int64_t small = thread_floats == 0 ? 0 : x.size() / (4 * thread_floats);
  return std::max<int64_t>({1, threads, std::min<int64_t>(small, 8)});
}

Status low_bit_workspace(const OpCall& call, int threads, size_t* bytes) {
  LowBitScratch s;
  int64_t n = 0, each = 0;
  SINTER_RETURN_UNLESS(
      s.set(low_bit(call), rows_of(call.in(0))) &&
          checked_mul(s.thread_floats, scratch_threads(call.in(0), threads, s.thread_floats), &each) &&
          checked_mul(s.row_floats, s.rows, &n) && checked_add(n, each, &n) &&
          checked_mul<int64_t>(n, sizeof(float), &n),
      too_much_workspace());
  *bytes = static_cast<size_t>(n);
  return ok_status();
}

// Returns the threads for which the scratch behind the first `floats` suffices.
int64_t slots_of(const RunContext& context, int64_t floats, int64_t each) {
  const auto room = (static_cast<int64_t>(context.workspace.size() / sizeof(float)) - floats) / each;
  return std::clamp<int64_t>(threads_of(context.threads), 1, std::max<int64_t>(room, 1));
}

void run_widened(const LowBit& g, const Gemm& product, RunContext& context) {
  const int64_t slots = slots_of(context, 0, kPieceFloats);
  const int64_t width = panel_width(), panels = divide_up(g.columns, width);
  parallel_slots(context.threads, slots, panels, [&](int64_t slot, int64_t begin, int64_t end) {
    float* piece = reinterpret_cast<float*>(context.workspace.data()) + slot * kPieceFloats;
    for (int64_t panel = begin; panel < end; ++panel)
      for (int64_t k0 = 0; k0 == 0 || k0 < g.depth; k0 += kDepthPiece) {
        widen_panel(g, panel * width, k0, std::min(k0 + kDepthPiece, g.depth), piece);
        gemm_piece(product, panel * width, k0, piece);
      }
  });
}

// Multiplies up to kLowBitRows rows of x.
void run_arranged(LowBit g, const float* x, int64_t rows, const float* bias, float min, float max, float* y,
                  RunContext& context) {
  int64_t stride = 0;
  if (!arranged_floats(g, &stride)) return;
  choose_arrangement(&g, rows == 1);
  auto* arranged = reinterpret_cast<float*>(context.workspace.data());
  for (int64_t r = 0; r < rows; ++r) arrange_row(g, x + r * g.depth, arranged + r * stride);
  // The pieces are large, because memory is read ahead beyond their ends.
  const int64_t grain = std::max<int64_t>(131072 / std::max<int64_t>(g.row_bytes(), 1), 1);
  parallel_for(context.threads, g.columns, grain, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; n += grain)
      low_bit_products(g, arranged, stride, rows, n, std::min(n + grain, last), bias, min, max, y, g.columns);
  });
}

// Multiplies the rows of x that are taken at a time, as bytes, which `product` lacks.
void run_rounded(const LowBit& g, const LowBitSegments& segments, const float* x, ByteProduct product,
                 RunContext& context) {
  const int64_t stride = segments.stride();
  auto* rounded = reinterpret_cast<float*>(context.workspace.data());
  parallel_for(context.threads, product.rows, std::max<int64_t>(16384 / std::max<int64_t>(g.depth, 1), 1),
               [&](int64_t first, int64_t last) {
                 for (int64_t r = first; r < last; ++r)
                   round_row(g, segments, x + r * g.depth, rounded + r * stride);
               });
  const int64_t floats = product.rows * stride, slots = slots_of(context, floats, kBytePieceFloats);
  const int64_t width = byte_panel_width(), panels = divide_up(g.columns, width);
  // Few panels are shared among threads by their rows.
  const int64_t parts = std::clamp<int64_t>((2 * slots - 1) / panels, 1, divide_up(product.rows, 48));
  parallel_slots(context.threads, slots, panels * parts, [&](int64_t slot, int64_t begin, int64_t end) {
    float* weights = rounded + floats + slot * kBytePieceFloats;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t r0 = product.rows * (unit % parts) / parts,
                    r1 = product.rows * (unit % parts + 1) / parts;
      ByteProduct rows = product;
      rows.x = rounded + r0 * stride, rows.rows = r1 - r0, rows.y = product.y + r0 * g.columns;
      BytePiece piece;
      piece.weights = weights, piece.column = unit / parts * width;
      do {
        piece.last = std::min(piece.first + segments.at_once, segments.count);
        unpack_piece(g, segments, piece.column, piece.first, piece.last, weights);
        multiply_piece(g, segments, piece, rows);
        piece.first = piece.last;
      } while (piece.first < segments.count);
    }
  });
}

Status run_low_bit(const OpCall& call, RunContext& context) {
  const auto& attrs = call.attrs<LowBitFullyConnectedAttrs>();
  const LowBit g = low_bit(call);
  const int64_t rows = rows_of(call.in(0));
  if (rows * g.columns == 0) return ok_status();
  const auto* x = call.in(0).as<const float>();
  const float* bias = call.has_input(4) ? call.in(4).as<const float>() : nullptr;
  auto* y = call.out(0).as<float>();
  const auto min = static_cast<float>(attrs.act_min), max = static_cast<float>(attrs.act_max);
  if (rows <= kLowBitRows) return run_arranged(g, x, rows, bias, min, max, y, context), ok_status();
  if (!g.is_rounded) {
    Gemm product;
    product.a = x, product.a_stride = g.depth, product.rows = rows, product.columns = g.columns;
    product.depth = g.depth, product.bias = bias, product.y = y, product.y_stride = g.columns;
    product.min = min, product.max = max;
    return run_widened(g, product, context), ok_status();
  }
  LowBitScratch scratch;
  if (!scratch.set(g, rows)) return too_much_workspace();
  const LowBitSegments segments(g);
  for (int64_t r = 0; r < rows; r += scratch.rows)
    run_rounded(g, segments, x + r * g.depth,
                {nullptr, std::min(scratch.rows, rows - r), bias, min, max, y + r * g.columns}, context);
  return ok_status();
}

}  // namespace

const Kernel kLowBitFullyConnectedKernel = {Op::kLowBitFullyConnected, nullptr, low_bit_workspace,
                                            run_low_bit, accept_low_bit};

}  // namespace sinter::simd
