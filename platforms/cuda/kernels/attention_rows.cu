// Attention of few queries, which takes the time of reading keys and values. A block takes up to kRows
// queries that have the same ones, and a part of the keys; its warps take 32 of these at a time. Eight lanes
// multiply a key with every query; then the lanes add up the weighted values, a piece of 16 bytes each, of
// several keys where a key has fewer pieces. Where the keys are cut into several parts, attention_sums
// combines the results.
#include "platforms/cuda/kernels/attention_score.h"

namespace sinter::cuda {
namespace {

constexpr int kWarps = kAttentionWarps;
constexpr int kKeyLanes = 8, kKeysAtOnce = kWarp / kKeyLanes;
constexpr int kRounds = 4;  // of kKeysAtOnce keys that are read before they are multiplied
constexpr int kAhead = 4;   // values that are read before they are added up

// What is read of shared memory at a time.
template <class R>
struct alignas(16) Group {
  static constexpr int kCount = 16 / sizeof(R);
  R v[kCount];
};

// Element d of a query in shared memory: the lanes of a key read groups that are adjacent.
template <class T, class R>
SINTER_DEVICE int query_place(int d) {
  constexpr int kPiece = Piece<T>::kCount, kGroup = Group<R>::kCount, kLine = kKeyLanes * kPiece;
  const int part = d / kPiece % kKeyLanes, i = d % kPiece;
  return d / kLine * kLine + i / kGroup * kKeyLanes * kGroup + part * kGroup + i % kGroup;
}

// The products of kRounds keys, `kKeysAtOnce` apart, with all queries, by eight lanes: parts of their sums.
// Keys from `end` on give zeros.
template <class T, class R, int kRows>
SINTER_DEVICE void multiply_keys(const AttentionArguments& a, const T* k, int32_t first, int32_t end,
                                 const Shared<R>& queries, bool vectors, R (&sum)[kRows][kRounds]) {
  constexpr int kPiece = Piece<T>::kCount, kGroup = Group<R>::kCount;
  const int part = lane() % kKeyLanes, room = attention_query_room(a.key_size);
  if (vectors) {
    for (int d = part * kPiece; d < a.key_size; d += kKeyLanes * kPiece) {
      Piece<T> key[kRounds];
      SINTER_UNROLL
      for (int j = 0; j < kRounds; ++j) {
        const int32_t at = first + j * kKeysAtOnce;
        key[j] = Piece<T>{};
        if (at < end) key[j] = *reinterpret_cast<const Piece<T>*>(k + int64_t{at} * a.key_size + d);
      }
      SINTER_UNROLL
      for (int r = 0; r < kRows; ++r) SINTER_UNROLL
      for (int g = 0; g < kPiece / kGroup; ++g) {
        const auto q = queries.template load<Group<R>>(r * room + query_place<T, R>(d + g * kGroup));
        SINTER_UNROLL
        for (int j = 0; j < kRounds; ++j) SINTER_UNROLL
        for (int i = 0; i < kGroup; ++i)
          sum[r][j] = m_fma(q.v[i], static_cast<R>(widen(key[j].v[g * kGroup + i])), sum[r][j]);
      }
    }
    return;
  }
  for (int d = part; d < a.key_size; d += kKeyLanes) {
    R key[kRounds] = {};
    SINTER_UNROLL
    for (int j = 0; j < kRounds; ++j) {
      const int32_t at = first + j * kKeysAtOnce;
      if (at < end) key[j] = static_cast<R>(widen(k[int64_t{at} * a.key_size + d]));
    }
    SINTER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const R q = queries[r * room + query_place<T, R>(d)];
      SINTER_UNROLL
      for (int j = 0; j < kRounds; ++j) sum[r][j] = m_fma(q, key[j], sum[r][j]);
    }
  }
}

template <class T, int kRows>
SINTER_DEVICE void attend(const AttentionArguments& a) {
  using R = typename RealOf<T>::Type;
  constexpr int kMine = Piece<T>::kCount;  // values of a lane
  uint32_t row_block;
  const uint32_t matrix = a.row_blocks.divide(block_x(), &row_block);
  const int32_t first_row = static_cast<int32_t>(row_block) * kRows;
  const int32_t rows = a.rows_of_matrix - first_row < kRows ? a.rows_of_matrix - first_row : kRows;
  const int64_t result = int64_t{matrix} * a.rows_of_matrix + first_row;  // the first row among all
  const T* q = reinterpret_cast<const T*>(a.q) + result * a.key_size;
  const T* k = reinterpret_cast<const T*>(a.k) + int64_t{matrix} * a.keys * a.key_size;
  const T* v = reinterpret_cast<const T*>(a.v) + int64_t{matrix} * a.keys * a.value_size;
  const int values = a.value_lanes * kMine;  // of this block
  const bool key_vectors = a.key_size % Piece<T>::kCount == 0 && begins_sixteen(a.k);
  const bool value_vectors = a.value_size % kMine == 0 && begins_sixteen(a.v);

  const int room = attention_query_room(a.key_size);
  const Shared<R> queries = shared_memory<R>(0, kRows * (room + kWarps * (kWarp + values + 4)));
  const Shared<R> weights = queries + kRows * room + warp_index() * kRows * kWarp;  // [key][row]
  const Shared<R> parts = queries + kRows * (room + kWarps * kWarp);
  for (int r = 0; r < kRows; ++r)
    for (int d = thread_index(); d < a.key_size; d += block_threads())
      queries[r * room + query_place<T, R>(d)] =
          r < rows ? static_cast<R>(widen(q[int64_t{r} * a.key_size + d])) : R(0);
  barrier();

  // Rows beyond the last one have no keys.
  int32_t visible[kRows], end = 0;
  const std::byte* bias[kRows];
  const auto split = static_cast<int32_t>(block_z());
  const int32_t split_end = split + 1 < a.splits ? (split + 1) * a.split_keys : a.keys;
  SINTER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    uint32_t query, head;
    const uint32_t batch =
        a.heads.divide(a.queries.divide(static_cast<uint32_t>(result + (r < rows ? r : 0)), &query), &head);
    bias[r] = a.bias == nullptr
                  ? nullptr
                  : a.bias + batch * a.bias_steps[0] + head * a.bias_steps[1] + query * a.bias_steps[2];
    visible[r] = r < rows ? visible_keys(a, static_cast<int32_t>(query)) : 0;
    if (visible[r] > split_end) visible[r] = split_end;
    if (visible[r] > end) end = visible[r];
  }

  RunningWeights<R> w[kRows];
  R sum[kRows][kMine] = {};
  const int lanes = a.value_lanes, keys_of_values = kWarp / lanes;
  const int first_value = static_cast<int>(block_y()) * values + lane() % lanes * kMine;
  for (int32_t first = split * a.split_keys + warp_index() * kWarp; first < end; first += kWarps * kWarp) {
    // A lane's key is one of those that it multiplies.
    R score[kRows] = {};
    SINTER_UNROLL
    for (int batch = 0; batch < kKeyLanes / kRounds; ++batch) {
      R product[kRows][kRounds] = {};
      multiply_keys<T, R, kRows>(a, k, first + batch * kRounds * kKeysAtOnce + lane() / kKeyLanes, end,
                                 queries, key_vectors, product);
      SINTER_UNROLL
      for (int r = 0; r < kRows; ++r) SINTER_UNROLL
      for (int j = 0; j < kRounds; ++j) {
        R one = product[r][j];
        SINTER_UNROLL
        for (int mask = kKeyLanes / 2; mask > 0; mask /= 2) one += shuffle_xor(one, mask);
        if (lane() % kKeyLanes == batch * kRounds + j) score[r] = one;
      }
    }
    const int own = lane() % kKeyLanes * kKeysAtOnce + lane() / kKeyLanes;
    const int32_t mine = first + own;
    warp_barrier();  // the last weights are used
    SINTER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      bool hidden = true;
      R s = minus_infinity<R>();
      if (mine < visible[r]) {
        const R extra =
            bias[r] != nullptr ? *reinterpret_cast<const R*>(bias[r] + mine * a.bias_steps[3]) : R(0);
        s = score_of(a, score[r], extra, &hidden);
        if (hidden) s = minus_infinity<R>();
      }
      const R top = fold_warp(s, [](R x, R y) { return y > x || m_isnan(x) ? y : x; });
      const R higher = top > w[r].top ? top : w[r].top;
      const R factor = rescale(w[r].top, higher);
      R weight = weight_of(s, higher);
      w[r].total = w[r].total * factor + (hidden ? R(0) : weight);  // of this lane's keys
      w[r].any |= ballot(!hidden) != 0;
      w[r].top = higher;
      if (hidden || (a.rule == kRuleHides && weight == R(0))) weight = kAbsentKey;  // the value is not used
      weights[own * kRows + r] = weight;
      SINTER_UNROLL
      for (int i = 0; i < kMine; ++i) sum[r][i] *= factor;
    }
    warp_barrier();
    for (int j = 0; j < kWarp; j += kAhead * keys_of_values) {
      Piece<T> value[kAhead];
      SINTER_UNROLL
      for (int u = 0; u < kAhead; ++u) {
        value[u] = Piece<T>{};
        const int32_t key = first + j + u * keys_of_values + lane() / lanes;
        if (key >= end) continue;
        const T* from = v + int64_t{key} * a.value_size + first_value;
        if (value_vectors) {
          if (first_value < a.value_size) value[u] = *reinterpret_cast<const Piece<T>*>(from);
        } else {
          SINTER_UNROLL
          for (int i = 0; i < kMine; ++i)
            if (first_value + i < a.value_size) value[u].v[i] = from[i];
        }
      }
      SINTER_UNROLL
      for (int u = 0; u < kAhead; ++u) SINTER_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const R one = weights[(j + u * keys_of_values + lane() / lanes) * kRows + r];
        if (one == kAbsentKey) continue;
        SINTER_UNROLL
        for (int i = 0; i < kMine; ++i)
          sum[r][i] = m_fma(one, static_cast<R>(widen(value[u].v[i])), sum[r][i]);
      }
    }
  }

  // A warp's keys, then all warps', in their order.
  SINTER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    for (int mask = lanes; mask < kWarp; mask *= 2) SINTER_UNROLL
    for (int i = 0; i < kMine; ++i) sum[r][i] += shuffle_xor(sum[r][i], mask);
    w[r].total = fold_warp(w[r].total, AddUp{});
    const Shared<R> to = parts + (warp_index() * kRows + r) * (values + 4);
    if (lane() < lanes) {
      SINTER_UNROLL
      for (int i = 0; i < kMine; ++i) to[lane() * kMine + i] = sum[r][i];
    }
    if (lane() == 0) {
      to[values] = w[r].top;
      to[values + 1] = w[r].total;
      to[values + 2] = static_cast<R>(w[r].any);
    }
  }
  barrier();
  for (int n = thread_index(); n < rows * values; n += block_threads()) {
    const int r = n / values, i = n % values, value = static_cast<int>(block_y()) * values + i;
    if (value >= a.value_size) continue;
    RunningWeights<R> all;
    R added = 0;
    for (int warp = 0; warp < kWarps; ++warp) {
      const Shared<R> from = parts + (warp * kRows + r) * (values + 4);
      combine<R>(from[values], from[values + 1], from[values + 2], from[i], &all, &added);
    }
    if (a.splits > 1) {
      const int64_t to = int64_t{split} * a.rows + result + r;
      reinterpret_cast<R*>(a.sums)[to * a.value_size + value] = added;
      if (value == 0) {
        R* kept = reinterpret_cast<R*>(a.weights) + to * kAttentionWeights;
        kept[0] = all.top, kept[1] = all.total, kept[2] = static_cast<R>(all.any);
      }
      continue;
    }
    uint32_t query;
    a.queries.divide(static_cast<uint32_t>(result + r), &query);
    narrow(finish_value(a, all, added, visible_keys(a, static_cast<int32_t>(query))),
           reinterpret_cast<T*>(a.y) + (result + r) * a.value_size + value);
  }
}

}  // namespace

SINTER_KERNEL(attention_row_float, AttentionArguments) { attend<float, 1>(a); }
SINTER_KERNEL(attention_row_double, AttentionArguments) { attend<double, 1>(a); }
SINTER_KERNEL(attention_row_float16, AttentionArguments) { attend<Float16, 1>(a); }
SINTER_KERNEL(attention_row_bfloat16, AttentionArguments) { attend<BFloat16, 1>(a); }
SINTER_KERNEL(attention_rows_float, AttentionArguments) { attend<float, kAttentionRows>(a); }
SINTER_KERNEL(attention_rows_float16, AttentionArguments) { attend<Float16, kAttentionRows>(a); }
SINTER_KERNEL(attention_rows_bfloat16, AttentionArguments) { attend<BFloat16, kAttentionRows>(a); }

}  // namespace sinter::cuda
