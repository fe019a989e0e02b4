// Attention of many queries in 16-bit floats, on tensor cores: a block for 64 queries of a head and for 64 or
// 128 values, each of its warps for 16 queries. It goes through the keys once, a tile at a time. Scores are
// float32 sums, and stay in registers; weights, relative to the largest score so far, are rounded to 16 bits
// there, where they are the left operand of the product with the values. While a tile's keys are multiplied,
// its values are copied to shared memory; while these are, the next keys.
//
// A product with tensor cores reads the values of hidden keys too, with the weight 0, which is NaN where they
// are not finite. If keys may be hidden, warps look for such results in the end, and compute them again.
//
// Source of the order of copies and products: Dao, FlashAttention-2 (2023).
#pragma once

#include "platforms/cuda/kernels/attention/attention_score.h"

namespace sinter::cuda::half_attention {

inline constexpr int kQueries = kAttentionQueries, kThreads = 128, kRows = 16;
inline constexpr int kPiece = 8;  // elements that are copied at a time: 16 bytes
inline constexpr int kPad = 8;    // elements between lines, so that eight of them are in different banks
inline constexpr float kLog2OfE = 1.44269504f;

// The elements, which are only moved here.
using Half = uint16_t;
struct alignas(16) Eight {
  Half v[kPiece];
};
template <class V>
struct alignas(2 * sizeof(V)) Pair {
  V v[2];
};

// Weights are multiplied by 2 to the power of this, so that few of them are float16's subnormal numbers.
SINTER_DEVICE constexpr float weight_exponent(Float16) { return 15; }
SINTER_DEVICE constexpr float weight_exponent(BFloat16) { return 0; }

SINTER_DEVICE void multiply_words(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Float16) {
  multiply_float16(d, a, b);
}
SINTER_DEVICE void multiply_words(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], BFloat16) {
  multiply_bfloat16(d, a, b);
}

// Copies elements column .. + kWidth - 1 of lines first .. + kLines - 1, with zeros beyond the ends.
template <int kLines, int kWidth>
SINTER_DEVICE void copy_lines(const Shared<Half>& to, const Half* from, int32_t first, int32_t lines,
                              int32_t column, int32_t size, bool vectors) {
  constexpr int kPieces = kWidth / kPiece, kCount = kLines * kPieces / kThreads;
  static_assert(kLines * kPieces % kThreads == 0);
  SINTER_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const int n = thread_index() + i * kThreads;
    const int32_t line = first + n / kPieces, at = column + n % kPieces * kPiece;
    const int place = n / kPieces * (kWidth + kPad) + n % kPieces * kPiece;
    const Half* source = from + int64_t{line} * size + at;
    if (vectors) {
      const bool inside = line < lines && at < size;
      copy_async(to, place, inside ? source : from, inside ? 16 : 0);
      continue;
    }
    Eight v = {};
    SINTER_UNROLL
    for (int j = 0; j < kPiece; ++j)
      if (line < lines && at + j < size) v.v[j] = source[j];
    to.store(place, v);
  }
}

// Computes a query by a warp, without the values of hidden keys: kMine values a lane, up to `values`.
template <class T, int kMine>
SINTER_CALLED void attend_alone(const AttentionArguments& a, const T* q, const T* k, const T* v,
                                const std::byte* bias, KeyRange visible, uint32_t head, T* y,
                                int32_t values) {
  RunningWeights<float> w;
  float sum[kMine] = {};
  SINTER_ROLLED
  for (int32_t first = visible.begin; first < visible.end; first += kWarp) {
    const int32_t key = first + lane();
    bool hidden = true;
    float score = minus_infinity<float>();
    if (key < visible.end) {
      const T* at = k + int64_t{key} * a.key_size;
      float product = 0;
      SINTER_ROLLED
      for (int32_t d = 0; d < a.key_size; ++d) product = m_fma(widen(q[d]), widen(at[d]), product);
      const float extra =
          bias != nullptr ? *reinterpret_cast<const float*>(bias + key * a.bias_steps[3]) : 0.0f;
      score = score_of(a, product, extra, &hidden);
      if (hidden) score = minus_infinity<float>();
    }
    const float higher = m_fmax(w.top, fold_warp(score, [](float x, float z) { return m_fmax(x, z); }));
    const float factor = rescale(w.top, higher);
    float weight = weight_of(score, higher);
    w.total = w.total * factor + fold_warp(hidden ? 0.0f : weight, AddUp{});
    w.any |= ballot(!hidden) != 0;
    w.top = higher;
    if (hidden || (a.rule == kRuleHides && weight == 0)) weight = -1;
    SINTER_UNROLL
    for (int i = 0; i < kMine; ++i) sum[i] *= factor;
    SINTER_ROLLED
    for (int j = 0; j < kWarp; ++j) {
      const float one = shuffle(weight, j);
      if (one == -1) continue;
      SINTER_UNROLL
      for (int i = 0; i < kMine; ++i)
        if (lane() + i * kWarp < values)
          sum[i] = m_fma(one, widen(v[int64_t{first + j} * a.value_size + lane() + i * kWarp]), sum[i]);
    }
  }
  const float factor = add_sink<T>(a, head, 1.0f, &w);
  SINTER_UNROLL
  for (int i = 0; i < kMine; ++i)
    if (lane() + i * kWarp < values)
      narrow(finish_value(a, w, sum[i] * factor, visible), y + lane() + i * kWarp);
}

// Adds the products of the queries with a tile of keys to the scores.
template <class T, int kDepth, int kKeys>
SINTER_DEVICE void multiply_keys(int32_t key_size, const uint32_t (&query)[kDepth / 16][4],
                                 const Shared<Half>& room, float (&score)[kKeys / 8][4]) {
  SINTER_UNROLL
  for (int d = 0; d < kDepth / 16; ++d) {
    if (d * 16 >= key_size) continue;
    SINTER_UNROLL
    for (int j = 0; j < kKeys / 16; ++j) {
      uint32_t both[4];
      load_matrices(both, room,
                    (j * 16 + lane() / 16 * 8 + lane() % 8) * (kDepth + kPad) + d * 16 + lane() / 8 % 2 * 8);
      const uint32_t left[2] = {both[0], both[1]}, right[2] = {both[2], both[3]};
      multiply_words(score[2 * j], query[d], left, T{});
      multiply_words(score[2 * j + 1], query[d], right, T{});
    }
  }
}

// Adds the products of the weights with a tile of values to the sums.
template <class T, int kValues, int kKeys>
SINTER_DEVICE void multiply_values(int32_t values, const uint32_t (&weight)[kKeys / 16][4],
                                   const Shared<Half>& room, float (&sum)[kValues / 8][4]) {
  SINTER_UNROLL
  for (int n = 0; n < kValues / 16; ++n) {
    if (n * 16 >= values) continue;
    SINTER_UNROLL
    for (int j = 0; j < kKeys / 16; ++j) {
      uint32_t both[4];
      load_transposed(both, room, (j * 16 + lane() % 16) * (kValues + kPad) + n * 16 + lane() / 16 * 8);
      const uint32_t left[2] = {both[0], both[1]}, right[2] = {both[2], both[3]};
      multiply_words(sum[2 * n], weight[j], left, T{});
      multiply_words(sum[2 * n + 1], weight[j], right, T{});
    }
  }
}

// Scales one query's scores of the keys from `first` on, which may be hidden unless `plain`. Returns the
// largest one of this lane; `*shown`: some key is not hidden.
template <int kKeys>
SINTER_DEVICE float scale_scores(const AttentionArguments& a, int h, int32_t first, bool plain,
                                 KeyRange visible, const std::byte* bias, float (&score)[kKeys / 8][4],
                                 RunningWeights<float>* w, bool* shown) {
  float top = minus_infinity<float>();
  if (plain) {
    SINTER_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) SINTER_UNROLL
    for (int l = 0; l < 2; ++l) {
      float& s = score[n][h * 2 + l];
      s *= static_cast<float>(a.scale);
      top = m_fmax(top, s);
    }
    w->any = 1;
    return top;
  }
  SINTER_UNROLL
  for (int n = 0; n < kKeys / 8; ++n) SINTER_UNROLL
  for (int l = 0; l < 2; ++l) {
    float& s = score[n][h * 2 + l];
    const int32_t key = first + n * 8 + lane() % 4 * 2 + l;
    bool hidden = true;
    if (key >= visible.begin && key < visible.end) {
      const float extra =
          bias != nullptr ? *reinterpret_cast<const float*>(bias + key * a.bias_steps[3]) : 0.0f;
      s = score_of(a, s, extra, &hidden);
    }
    if (hidden) s = minus_infinity<float>();
    *shown |= !hidden;
    w->any |= static_cast<int32_t>(!hidden);
    top = m_fmax(top, s);
  }
  return top;
}

// Makes weights of one query's scores. Four lanes hold a query's, and `top` is the largest of this one.
// Returns the factor of what was added up before.
template <class T, int kKeys>
SINTER_DEVICE float weigh_scores(int h, float top, float (&score)[kKeys / 8][4], RunningWeights<float>* w) {
  top = m_fmax(top, shuffle_xor(top, 1));
  top = m_fmax(top, shuffle_xor(top, 2));
  const float higher = m_fmax(w->top, top);
  // Weights relative to -infinity would be NaN; there are none but 0 then.
  const float anchor = higher == minus_infinity<float>() ? 0.0f : higher;
  const float factor = w->top == higher ? 1.0f : m_exp2_short((w->top - anchor) * kLog2OfE);
  float total = 0;
  SINTER_UNROLL
  for (int n = 0; n < kKeys / 8; ++n) SINTER_UNROLL
  for (int l = 0; l < 2; ++l) {
    float& s = score[n][h * 2 + l];
    s = m_exp2_short(m_fma(s - anchor, kLog2OfE, weight_exponent(T{})));
    total += s;
  }
  w->total = w->total * factor + total;  // of this lane's keys
  w->top = higher;
  return factor;
}

// Writes the results of two queries from their sums.
template <class T, int kValues>
SINTER_DEVICE void write_results(const AttentionArguments& a, uint32_t head, int32_t row,
                                 const float (&sum)[kValues / 8][4], RunningWeights<float> (&w)[2],
                                 const KeyRange (&visible)[2], int32_t values, T* y) {
  const bool pairs = a.value_size % 2 == 0 && (reinterpret_cast<uintptr_t>(a.y) & 3) == 0;
  SINTER_UNROLL
  for (int h = 0; h < 2; ++h) {
    if (row + h * 8 >= a.queries_of_head) continue;
    T* to = y + int64_t{row + h * 8} * a.value_size;
    const float factor = add_sink<T>(a, head, m_exp2_short(weight_exponent(T{})), &w[h]);
    SINTER_UNROLL
    for (int n = 0; n < kValues / 8; ++n) {
      const int32_t value = n * 8 + lane() % 4 * 2;
      Pair<T> both;
      SINTER_UNROLL
      for (int l = 0; l < 2; ++l)
        narrow(finish_value(a, w[h], sum[n][h * 2 + l] * factor, visible[h]), &both.v[l]);
      if (pairs) {
        if (value < values) *reinterpret_cast<Pair<T>*>(to + value) = both;
      } else {
        if (value < values) to[value] = both.v[0];
        if (value + 1 < values) to[value + 1] = both.v[1];
      }
    }
  }
}

// Reads a warp's queries from shared memory, where the block's are copied.
template <class T, int kDepth>
SINTER_DEVICE void load_queries(const AttentionArguments& a, const T* q, int32_t first_query,
                                const Shared<Half>& room, uint32_t (&query)[kDepth / 16][4]) {
  copy_lines<kQueries, kDepth>(room, reinterpret_cast<const Half*>(q), first_query, a.queries_of_head, 0,
                               a.key_size, a.key_size % kPiece == 0 && begins_sixteen(a.q));
  commit_copies();
  wait_for_copies<0>();
  barrier();
  SINTER_UNROLL
  for (int d = 0; d < kDepth / 16; ++d)
    load_matrices(query[d], room,
                  (warp_index() * kRows + lane() % 16) * (kDepth + kPad) + d * 16 + lane() / 16 * 8);
  barrier();
}

// Multiplies the sums by their queries' factors, unless all of the warp's are 1.
template <int kValues>
SINTER_DEVICE void scale_sums(const float (&factor)[2], float (&sum)[kValues / 8][4]) {
  if (ballot(factor[0] != 1 || factor[1] != 1) == 0) return;
  SINTER_UNROLL
  for (int n = 0; n < kValues / 8; ++n) SINTER_UNROLL
  for (int l = 0; l < 4; ++l) sum[n][l] *= factor[l / 2];
}

// Rounds weights to the 16 bits in which they are the left operand of a product.
template <class T, int kKeys>
SINTER_DEVICE void narrow_weights(const float (&score)[kKeys / 8][4], uint32_t (&weight)[kKeys / 16][4]) {
  SINTER_UNROLL
  for (int j = 0; j < kKeys / 16; ++j) SINTER_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float(&s)[4] = score[2 * j + i / 2];
    narrow_both(s[i % 2 * 2], s[i % 2 * 2 + 1], &weight[j][i], T{});
  }
}

// Adds up the weights that four lanes hold of each of two queries. Returns whether the sums of this lane are
// finite, or have to be NaN.
template <int kValues>
SINTER_DEVICE bool add_lanes(int32_t row, int32_t last, const float (&sum)[kValues / 8][4],
                             RunningWeights<float> (&w)[2]) {
  bool finite = true;
  SINTER_UNROLL
  for (int h = 0; h < 2; ++h) {
    SINTER_UNROLL
    for (int mask = 1; mask <= 2; mask *= 2) {
      w[h].total += shuffle_xor(w[h].total, mask);
      w[h].any |= shuffle_xor(w[h].any, mask);
    }
    if (row + h * 8 > last || m_isnan(w[h].total)) continue;
    SINTER_UNROLL
    for (int n = 0; n < kValues / 8; ++n) SINTER_UNROLL
    for (int l = 0; l < 2; ++l) finite &= m_fabs(sum[n][h * 2 + l]) < -minus_infinity<float>();
  }
  return finite;
}

// Attends to keys of up to kDepth elements, kKeys at a time, and computes kValues values.
template <class T, int kDepth, int kValues, int kKeys>
SINTER_DEVICE void attend(const AttentionArguments& a) {
  uint32_t tile, head;
  const uint32_t matrix_of_queries = a.queries.divide(block_x(), &tile);
  const uint32_t batch = a.heads.divide(matrix_of_queries, &head);
  const int64_t matrix = int64_t{batch} * a.groups + head / static_cast<uint32_t>(a.heads_per_group);
  // With causality, the tiles that take most time come first.
  if (a.causal != 0) tile = a.queries.divisor - 1 - tile;
  const T* q = reinterpret_cast<const T*>(a.q) + int64_t{matrix_of_queries} * a.queries_of_head * a.key_size;
  const T* k = reinterpret_cast<const T*>(a.k) + matrix * a.keys * a.key_size;
  const T* v = reinterpret_cast<const T*>(a.v) + matrix * a.keys * a.value_size;
  T* y = reinterpret_cast<T*>(a.y) + int64_t{matrix_of_queries} * a.queries_of_head * a.value_size;
  const bool key_pieces = a.key_size % kPiece == 0 && begins_sixteen(a.k);
  const bool value_pieces = a.value_size % kPiece == 0 && begins_sixteen(a.v);
  const int32_t first_query = static_cast<int32_t>(tile) * kQueries;
  const int32_t first_value = static_cast<int32_t>(block_y()) * kValues;
  const int32_t values = a.value_size - first_value < kValues ? a.value_size - first_value : kValues;

  const Shared<Half> room =
      shared_memory<Half>(0, static_cast<int>(attention_half_elements(kDepth, kValues, kKeys)));
  const Shared<Half> room_k = room, room_v = room + kKeys * (kDepth + kPad);
  uint32_t query[kDepth / 16][4];
  load_queries<T, kDepth>(a, q, first_query, room, query);

  // This lane's parts of two queries; those beyond the last one repeat it.
  const int32_t last = a.queries_of_head - 1, row = first_query + warp_index() * kRows + lane() / 4;
  const int32_t length = keys_of_batch(a, batch);
  KeyRange visible[2];
  const std::byte* bias[2];
  SINTER_UNROLL
  for (int h = 0; h < 2; ++h) {
    const int32_t mine = row + h * 8 < last ? row + h * 8 : last;
    visible[h] = attended_keys(a, length, mine);
    bias[h] = bias_of(a, batch, head, mine);
  }
  const int32_t first_of_warp = first_query + warp_index() * kRows;
  const int32_t end_of_warp = first_of_warp + kRows - 1, end_query = first_query + kQueries - 1;
  // The keys that all queries of the warp attend to, and those that any query of the tile attends to, from a
  // multiple of kKeys on.
  const KeyRange common = {attended_keys(a, length, end_of_warp < last ? end_of_warp : last).begin,
                           attended_keys(a, length, first_of_warp < last ? first_of_warp : last).end};
  const int32_t begin = attended_keys(a, length, first_query).begin / kKeys * kKeys;
  const int32_t keys = attended_keys(a, length, end_query < last ? end_query : last).end;

  RunningWeights<float> w[2];
  float sum[kValues / 8][4] = {};
  if (keys > begin)
    copy_lines<kKeys, kDepth>(room_k, reinterpret_cast<const Half*>(k), begin, length, 0, a.key_size,
                              key_pieces);
  commit_copies();
  for (int32_t first = begin; first < keys; first += kKeys) {
    wait_for_copies<0>();
    barrier();
    copy_lines<kKeys, kValues>(room_v, reinterpret_cast<const Half*>(v), first, length, first_value,
                               a.value_size, value_pieces);
    commit_copies();
    float score[kKeys / 8][4] = {};
    multiply_keys<T, kDepth, kKeys>(a.key_size, query, room_k, score);
    barrier();
    if (first + kKeys < keys)
      copy_lines<kKeys, kDepth>(room_k, reinterpret_cast<const Half*>(k), first + kKeys, length, 0,
                                a.key_size, key_pieces);
    commit_copies();

    const bool plain =
        a.bias == nullptr && a.softcap == 0 && first >= common.begin && first + kKeys <= common.end;
    float factor[2];
    bool shown = plain;
    SINTER_UNROLL
    for (int h = 0; h < 2; ++h) {
      const float top = scale_scores<kKeys>(a, h, first, plain, visible[h], bias[h], score, &w[h], &shown);
      factor[h] = weigh_scores<T, kKeys>(h, top, score, &w[h]);
    }
    scale_sums<kValues>(factor, sum);
    uint32_t weight[kKeys / 16][4];
    narrow_weights<T, kKeys>(score, weight);
    wait_for_copies<1>();
    barrier();
    if (ballot(shown) == 0) continue;
    multiply_values<T, kValues, kKeys>(values, weight, room_v, sum);
  }
  wait_for_copies<0>();

  const bool finite = add_lanes<kValues>(row, last, sum, w);
  const bool may_hide = a.causal != 0 || (a.bias != nullptr && a.rule == kRuleHides);
  if (may_hide && ballot(!finite) != 0) {
    SINTER_ROLLED
    for (int32_t query_of_warp = first_of_warp; query_of_warp < first_of_warp + kRows; ++query_of_warp) {
      if (query_of_warp > last) break;
      attend_alone<T, kValues / kWarp>(a, q + int64_t{query_of_warp} * a.key_size, k, v + first_value,
                                       bias_of(a, batch, head, query_of_warp),
                                       attended_keys(a, length, query_of_warp), head,
                                       y + int64_t{query_of_warp} * a.value_size + first_value, values);
    }
    return;
  }

  write_results<T, kValues>(a, head, row, sum, w, visible, values, y + first_value);
}

}  // namespace sinter::cuda::half_attention
