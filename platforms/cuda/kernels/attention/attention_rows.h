// Attention of few queries, which takes the time of reading keys and values. A block takes up to kRows
// queries that have the same keys, and a part of the keys; its warps take 32 of these at a time. Eight lanes
// multiply a key with every query; then the lanes add up the weighted values, a piece of 16 bytes each, of
// several keys where a key has fewer pieces. If the keys are cut into several parts, attention_sums combines
// the results.
//
// Queries and results have the type T, keys and values S, which may be narrower.
#pragma once

#include "platforms/cuda/grid/float8.h"
#include "platforms/cuda/kernels/attention/attention_score.h"

namespace sinter::cuda::attention_rows {

inline constexpr int kWarps = kAttentionWarps;
inline constexpr int kKeyLanes = 8, kKeysAtOnce = kWarp / kKeyLanes;
inline constexpr int kRounds = 4;  // of kKeysAtOnce keys that are read before they are multiplied
inline constexpr int kAhead = 4;   // values that are read before they are added up

// The elements that a lane reads of a key or value at a time.
template <class S>
struct alignas(attention_piece(sizeof(S)) * sizeof(S)) RowPiece {
  static constexpr int kCount = attention_piece(sizeof(S));
  S v[kCount];
};

// The elements that are read of shared memory at a time.
template <class R>
struct alignas(16) Group {
  static constexpr int kCount = 16 / sizeof(R);
  R v[kCount];
};

// Returns the place of element d of a query in shared memory, where a key's lanes read adjacent groups.
template <class S, class R>
SINTER_DEVICE int query_place(int d) {
  constexpr int kPiece = RowPiece<S>::kCount, kGroup = Group<R>::kCount, kLine = kKeyLanes * kPiece;
  const int part = d / kPiece % kKeyLanes, i = d % kPiece;
  return d / kLine * kLine + i / kGroup * kKeyLanes * kGroup + part * kGroup + i % kGroup;
}

// Returns a weight times the scale of the value's row; it is not kAbsentKey.
template <class R>
SINTER_DEVICE R scaled_weight(R weight, R scale) {
  const R v = weight * scale;
  return v == kAbsentKey ? R(-0.99999994) : v;
}

// Computes the products of kRounds keys, `kKeysAtOnce` apart, with all queries, by eight lanes, as parts of
// their sums. Keys from `end` on give zeros.
template <class S, class R, int kRows>
SINTER_DEVICE void multiply_keys(const AttentionArguments& a, const S* k, int32_t first, int32_t end,
                                 const Shared<R>& queries, bool vectors, R (&sum)[kRows][kRounds]) {
  constexpr int kPiece = RowPiece<S>::kCount, kGroup = Group<R>::kCount;
  const int part = lane() % kKeyLanes, room = attention_query_room(a.key_size);
  if (vectors) {
    for (int d = part * kPiece; d < a.key_size; d += kKeyLanes * kPiece) {
      RowPiece<S> key[kRounds];
      SINTER_UNROLL
      for (int j = 0; j < kRounds; ++j) {
        const int32_t at = first + j * kKeysAtOnce;
        key[j] = RowPiece<S>{};
        if (at < end) key[j] = *reinterpret_cast<const RowPiece<S>*>(k + int64_t{at} * a.key_size + d);
      }
      SINTER_UNROLL
      for (int r = 0; r < kRows; ++r) SINTER_UNROLL
      for (int g = 0; g < kPiece / kGroup; ++g) {
        const auto q = queries.template load<Group<R>>(r * room + query_place<S, R>(d + g * kGroup));
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
      const R q = queries[r * room + query_place<S, R>(d)];
      SINTER_UNROLL
      for (int j = 0; j < kRounds; ++j) sum[r][j] = m_fma(q, key[j], sum[r][j]);
    }
  }
}

template <class T, class S, int kRows>
SINTER_DEVICE void attend(const AttentionArguments& a) {
  using R = typename RealOf<T>::Type;
  constexpr int kMine = RowPiece<S>::kCount;  // values of a lane
  uint32_t row_block;
  const uint32_t matrix = a.row_blocks.divide(block_x(), &row_block);
  const int32_t first_row = static_cast<int32_t>(row_block) * kRows;
  const int32_t rows = a.rows_of_matrix - first_row < kRows ? a.rows_of_matrix - first_row : kRows;
  const int64_t result = int64_t{matrix} * a.rows_of_matrix + first_row;  // the first row among all
  const T* q = reinterpret_cast<const T*>(a.q) + result * a.key_size;
  const S* k = reinterpret_cast<const S*>(a.k) + int64_t{matrix} * a.keys * a.key_size;
  const S* v = reinterpret_cast<const S*>(a.v) + int64_t{matrix} * a.keys * a.value_size;
  const float* key_scales = a.key_scales == nullptr ? nullptr : a.key_scales + int64_t{matrix} * a.keys;
  const float* value_scales = a.value_scales == nullptr ? nullptr : a.value_scales + int64_t{matrix} * a.keys;
  const int values = a.value_lanes * kMine;  // of this block
  const bool key_vectors = a.key_size % kMine == 0 && begins_sixteen(a.k);
  const bool value_vectors = a.value_size % kMine == 0 && begins_sixteen(a.v);

  const int room = attention_query_room(a.key_size);
  const Shared<R> queries = shared_memory<R>(0, kRows * (room + kWarps * (kWarp + values + 4)));
  const Shared<R> weights = queries + kRows * room + warp_index() * kRows * kWarp;  // [key][row]
  const Shared<R> parts = queries + kRows * (room + kWarps * kWarp);
  for (int r = 0; r < kRows; ++r)
    for (int d = thread_index(); d < a.key_size; d += block_threads())
      queries[r * room + query_place<S, R>(d)] =
          r < rows ? static_cast<R>(widen(q[int64_t{r} * a.key_size + d])) : R(0);
  barrier();

  // The keys of this block are a part of those that any query of the sequence attends to. Rows beyond the
  // last one have no keys.
  uint32_t batch, head_of_row[kRows], query_of_row[kRows];
  batch = a.heads.divide(a.queries.divide(static_cast<uint32_t>(result), &query_of_row[0]), &head_of_row[0]);
  const int32_t length = keys_of_batch(a, batch);
  const KeyRange part = attention_split(a, length, static_cast<int32_t>(block_z()));
  KeyRange keys[kRows], block = {part.end, part.begin};
  const std::byte* bias[kRows];
  SINTER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    a.heads.divide(a.queries.divide(static_cast<uint32_t>(result + (r < rows ? r : 0)), &query_of_row[r]),
                   &head_of_row[r]);
    bias[r] = a.bias == nullptr ? nullptr
                                : a.bias + batch * a.bias_steps[0] + head_of_row[r] * a.bias_steps[1] +
                                      query_of_row[r] * a.bias_steps[2];
    keys[r] = r < rows ? attended_keys(a, length, static_cast<int32_t>(query_of_row[r])) : KeyRange{};
    if (keys[r].begin < part.begin) keys[r].begin = part.begin;
    if (keys[r].end > part.end) keys[r].end = part.end;
    if (keys[r].begin >= keys[r].end) continue;
    if (keys[r].begin < block.begin) block.begin = keys[r].begin;
    if (keys[r].end > block.end) block.end = keys[r].end;
  }
  const int32_t end = block.end;

  RunningWeights<R> w[kRows];
  R sum[kRows][kMine] = {};
  const int lanes = a.value_lanes, keys_of_values = kWarp / lanes;
  const int first_value = static_cast<int>(block_y()) * values + lane() % lanes * kMine;
  for (int32_t first = block.begin + warp_index() * kWarp; first < end; first += kWarps * kWarp) {
    // A lane's key is one of those that it multiplies.
    R score[kRows] = {};
    SINTER_UNROLL
    for (int batch = 0; batch < kKeyLanes / kRounds; ++batch) {
      R product[kRows][kRounds] = {};
      multiply_keys<S, R, kRows>(a, k, first + batch * kRounds * kKeysAtOnce + lane() / kKeyLanes, end,
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
    R key_scale = 1, value_scale = 1;
    if (key_scales != nullptr && mine < end) key_scale = static_cast<R>(key_scales[mine]);
    if (value_scales != nullptr && mine < end) value_scale = static_cast<R>(value_scales[mine]);
    warp_barrier();  // the last weights are used
    SINTER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      bool hidden = true;
      R s = minus_infinity<R>();
      if (mine >= keys[r].begin && mine < keys[r].end) {
        const R extra =
            bias[r] != nullptr ? *reinterpret_cast<const R*>(bias[r] + mine * a.bias_steps[3]) : R(0);
        s = score_of(a, score[r] * key_scale, extra, &hidden);
        if (hidden) s = minus_infinity<R>();
      }
      const R top = fold_warp(s, [](R x, R y) { return y > x || m_isnan(x) ? y : x; });
      const R higher = top > w[r].top ? top : w[r].top;
      const R factor = rescale(w[r].top, higher);
      R weight = weight_of(s, higher);
      w[r].total = w[r].total * factor + (hidden ? R(0) : weight);  // sum over this lane's keys
      w[r].any |= ballot(!hidden) != 0;
      w[r].top = higher;
      if (hidden || (a.rule == kRuleHides && weight == R(0)))
        weight = kAbsentKey;  // the value is not used
      else if (value_scales != nullptr)
        weight = scaled_weight(weight, value_scale);
      weights[own * kRows + r] = weight;
      SINTER_UNROLL
      for (int i = 0; i < kMine; ++i) sum[r][i] *= factor;
    }
    warp_barrier();
    for (int j = 0; j < kWarp; j += kAhead * keys_of_values) {
      RowPiece<S> value[kAhead];
      SINTER_UNROLL
      for (int u = 0; u < kAhead; ++u) {
        value[u] = RowPiece<S>{};
        const int32_t key = first + j + u * keys_of_values + lane() / lanes;
        if (key >= end) continue;
        const S* from = v + int64_t{key} * a.value_size + first_value;
        if (value_vectors) {
          if (first_value < a.value_size) value[u] = *reinterpret_cast<const RowPiece<S>*>(from);
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

  // The keys of a warp, then those of all warps, are added in their order.
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
      const int64_t to = int64_t{block_z()} * a.rows + result + r;
      reinterpret_cast<R*>(a.sums)[to * a.value_size + value] = added;
      if (value == 0) {
        R* kept = reinterpret_cast<R*>(a.weights) + to * kAttentionWeights;
        kept[0] = all.top, kept[1] = all.total, kept[2] = static_cast<R>(all.any);
      }
      continue;
    }
    uint32_t query, head;
    a.heads.divide(a.queries.divide(static_cast<uint32_t>(result + r), &query), &head);
    added *= add_sink<T>(a, head, R(1), &all);
    narrow(finish_value(a, all, added, attended_keys(a, length, static_cast<int32_t>(query))),
           reinterpret_cast<T*>(a.y) + (result + r) * a.value_size + value);
  }
}

}  // namespace sinter::cuda::attention_rows
