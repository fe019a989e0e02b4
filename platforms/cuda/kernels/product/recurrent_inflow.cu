// The inflow of a recurrent layer's gates from its input: X times W of all steps at once, and the biases.
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/product/recurrent.h"

namespace sinter::cuda {
namespace {

// A block computes kTile rows of X by kTile rows of W, of which a thread has kOwn by kOwn.
constexpr int kTile = 64, kDepth = 16, kOwn = 4, kPitch = kTile + 4;

// Biases of W and R are added here, except R's bias of Gru's candidate.
template <class V>
SINTER_DEVICE V bias_of(const RecurrentArguments& a, int direction, int row) {
  if (a.bias == nullptr) return 0;
  const int64_t width = byte_width(a.dtype), at = int64_t{2} * direction * a.rows + row;
  const V of_w = load_float<V>(a.bias + at * width, a.dtype);
  const bool gru = a.cell == Cell::kGru || a.cell == Cell::kGruResetLast;
  return gru && row >= 2 * a.hidden ? of_w : of_w + load_float<V>(a.bias + (at + a.rows) * width, a.dtype);
}

// Four neighbouring numbers, 16 bytes at a time.
template <class V>
SINTER_DEVICE void load_own(const Shared<V>& from, int at, V (&to)[kOwn]) {
  constexpr int kPiece = 16 / static_cast<int>(sizeof(V));
  struct alignas(16) Piece {
    V v[kPiece];
  };
  SINTER_UNROLL
  for (int i = 0; i < kOwn; i += kPiece) {
    const Piece p = from.template load<Piece>(at + i);
    SINTER_UNROLL
    for (int j = 0; j < kPiece; ++j) to[i + j] = p.v[j];
  }
}

// Blocks are [rows of X, rows of W, directions], in tiles.
template <class V>
SINTER_DEVICE void inflow_tile(const RecurrentArguments& a) {
  const Shared<V> xs = shared_memory<V>(0, kDepth * kPitch);
  const Shared<V> ws = shared_memory<V>(kDepth * kPitch * static_cast<int>(sizeof(V)), kDepth * kPitch);
  const int64_t width = byte_width(a.dtype), samples = int64_t{a.steps} * a.batch;
  const int direction = static_cast<int>(block_z());
  const int first_row = static_cast<int>(block_y()) * kTile;
  const std::byte* w = a.w + int64_t{direction} * a.rows * a.input * width;
  const int own_row = (thread_index() & 15) * kOwn, own_sample = thread_index() / 16 * kOwn;
  for (int64_t first = int64_t{block_x()} * kTile; first < samples; first += int64_t{blocks_x()} * kTile) {
    V sums[kOwn][kOwn] = {};
    for (int depth = 0; depth < a.input; depth += kDepth) {
      constexpr int kMine = kTile * kDepth / 256;
      Loaded<V> of_x[kMine], of_w[kMine];
      SINTER_UNROLL
      for (int i = 0; i < kMine; ++i) {
        const int at = thread_index() + i * 256, k = depth + at % kDepth, n = at / kDepth;
        const bool x_inside = k < a.input && first + n < samples,
                   w_inside = k < a.input && first_row + n < a.rows;
        of_x[i] = x_inside ? begin_load<V>(a.x + ((first + n) * a.input + k) * width, a.dtype) : 0;
        of_w[i] = w_inside ? begin_load<V>(w + (int64_t{first_row + n} * a.input + k) * width, a.dtype) : 0;
      }
      SINTER_UNROLL
      for (int i = 0; i < kMine; ++i) {  // no bits are zero in every type
        const int at = thread_index() + i * 256, to = at % kDepth * kPitch + at / kDepth;
        xs[to] = value_of<V>(of_x[i], a.dtype), ws[to] = value_of<V>(of_w[i], a.dtype);
      }
      barrier();
      SINTER_UNROLL
      for (int k = 0; k < kDepth; ++k) {
        V of_x[kOwn], of_w[kOwn];
        load_own(xs, k * kPitch + own_sample, of_x);
        load_own(ws, k * kPitch + own_row, of_w);
        SINTER_UNROLL
        for (int i = 0; i < kOwn; ++i) SINTER_UNROLL
        for (int j = 0; j < kOwn; ++j) sums[i][j] = m_fma(of_x[i], of_w[j], sums[i][j]);
      }
      barrier();
    }
    V* to = reinterpret_cast<V*>(a.inflow) + direction * samples * a.rows;
    SINTER_UNROLL
    for (int j = 0; j < kOwn; ++j) {
      const int row = first_row + own_row + j;
      const V bias = row < a.rows ? bias_of<V>(a, direction, row) : V(0);
      SINTER_UNROLL
      for (int i = 0; i < kOwn; ++i) {
        const int64_t sample = first + own_sample + i;
        if (row < a.rows && sample < samples) to[sample * a.rows + row] = sums[i][j] + bias;
      }
    }
  }
}

// For few rows of X, a warp has a row of W. Blocks are [rows of W / warps, rows of X, directions].
template <class V>
SINTER_DEVICE void inflow_row(const RecurrentArguments& a) {
  const int64_t width = byte_width(a.dtype), samples = int64_t{a.steps} * a.batch;
  const int direction = static_cast<int>(block_z());
  const int row = static_cast<int>(block_x()) * (block_threads() / kWarp) + warp_index();
  const std::byte* x = a.x + int64_t{block_y()} * a.input * width;
  const std::byte* w = a.w + (int64_t{direction} * a.rows + (row < a.rows ? row : 0)) * a.input * width;
  V sum = 0;
  for (int k = lane(); k < a.input; k += kWarp)
    sum = m_fma(load_float<V>(x + k * width, a.dtype), load_float<V>(w + k * width, a.dtype), sum);
  sum = fold_warp(sum, AddUp());
  if (row < a.rows && lane() == 0)
    reinterpret_cast<V*>(a.inflow)[(direction * samples + block_y()) * a.rows + row] =
        sum + bias_of<V>(a, direction, row);
}

}  // namespace

SINTER_KERNEL(recurrent_inflow_floats, RecurrentArguments) { inflow_tile<float>(a); }
SINTER_KERNEL(recurrent_inflow_doubles, RecurrentArguments) { inflow_tile<double>(a); }
SINTER_KERNEL(recurrent_inflow_few_floats, RecurrentArguments) { inflow_row<float>(a); }
SINTER_KERNEL(recurrent_inflow_few_doubles, RecurrentArguments) { inflow_row<double>(a); }

}  // namespace sinter::cuda
