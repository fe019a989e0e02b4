// Attention of many queries: a block for 64 of a head and for 64 or 128 values. It goes through the keys
// once, 64 at a time: scores stay in registers, weights go through shared memory, by key, to be multiplied
// with the values.
#include "platforms/cuda/kernels/attention/attention_score.h"

namespace sinter::cuda {
namespace {

constexpr int kQueries = kAttentionQueries, kKeys = kAttentionQueries;
constexpr int kDepth = 16;           // of queries and keys at a time
constexpr int kStep = kQueries + 4;  // floats from one depth, or key, to the next
constexpr int kLanes = 16;           // threads of a row of 4x4 scores

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T v[4];
};

// Reads elements depth .. + 3 of a line, zeros beyond the ends.
template <class T>
SINTER_DEVICE Four<T> read_four(const T* from, int64_t line, int64_t lines, int32_t depth, int32_t size,
                                bool vectors) {
  Four<T> v = {};
  if (line >= lines) return v;
  const T* at = from + line * size + depth;
  if (vectors) {
    if (depth < size) v = *reinterpret_cast<const Four<T>*>(at);
    return v;
  }
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i)
    if (depth + i < size) v.v[i] = at[i];
  return v;
}

// A tile of lines, by depth.
template <class T>
SINTER_DEVICE void put_four(const Shared<float>& to, const Four<T>& v) {
  const int line = thread_index() / 4, depth = thread_index() % 4 * 4;
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) to[(depth + i) * kStep + line] = widen(v.v[i]);
}

// Makes weights of a query's scores of four keys, and scales its sums. 16 threads hold a query's scores.
template <int kRight, class T>
SINTER_DEVICE void weigh_scores(const AttentionArguments& a, const std::byte* bias, int32_t first_key,
                                KeyRange visible, float (&score)[4], RunningWeights<float>* w,
                                float (&sum)[kRight]) {
  bool hidden[4];
  float top = minus_infinity<float>();
  SINTER_UNROLL
  for (int j = 0; j < 4; ++j) {
    const int32_t key = first_key + j;
    hidden[j] = true;
    if (key >= visible.begin && key < visible.end) {
      const float extra =
          bias != nullptr ? widen(*reinterpret_cast<const T*>(bias + key * a.bias_steps[3])) : 0.0f;
      score[j] = score_of(a, score[j], extra, &hidden[j]);
    }
    if (hidden[j]) score[j] = minus_infinity<float>();
    if (score[j] > top) top = score[j];
  }
  int32_t any = !(hidden[0] && hidden[1] && hidden[2] && hidden[3]);
  SINTER_UNROLL
  for (int mask = kLanes / 2; mask > 0; mask /= 2) {
    const float other = shuffle_xor(top, mask);
    if (other > top) top = other;
    any |= shuffle_xor(any, mask);
  }
  const float higher = top > w->top ? top : w->top;
  const float factor = rescale(w->top, higher);
  float total = 0;
  SINTER_UNROLL
  for (int j = 0; j < 4; ++j) {
    const float weight = weight_of(score[j], higher);
    total += weight;
    score[j] = hidden[j] || (a.rule == kRuleHides && weight == 0) ? kAbsentKey : weight;
  }
  SINTER_UNROLL
  for (int mask = kLanes / 2; mask > 0; mask /= 2) total += shuffle_xor(total, mask);
  w->total = w->total * factor + total;
  w->top = higher;
  w->any |= any;
  SINTER_UNROLL
  for (int j = 0; j < kRight; ++j) sum[j] *= factor;
}

// Adds the values of a tile's keys, times their weights, to the sums of four queries.
template <int kRight, class T>
SINTER_DEVICE void add_values(const AttentionArguments& a, const T* v, int32_t first, int32_t keys,
                              int32_t length, int first_value, bool value_vectors,
                              const Shared<float>& weights, int down, float (&sum)[4][kRight]) {
  const int32_t count = keys - first < kKeys ? keys - first : kKeys;
  for (int32_t key = 0; key < count; ++key) {
    const auto x = weights.template load<Four<float>>(key * kStep + down);
    float z[kRight];
    SINTER_UNROLL
    for (int j = 0; j < kRight / 4; ++j) {
      const auto four =
          read_four(v, first + key, length, first_value + j * 4 * kLanes, a.value_size, value_vectors);
      SINTER_UNROLL
      for (int l = 0; l < 4; ++l) z[j * 4 + l] = widen(four.v[l]);
    }
    SINTER_UNROLL
    for (int i = 0; i < 4; ++i)
      if (x.v[i] != kAbsentKey) {
        SINTER_UNROLL
        for (int j = 0; j < kRight; ++j) sum[i][j] = m_fma(x.v[i], z[j], sum[i][j]);
      }
  }
}

// Attends with kRight values of each thread.
template <class T, int kRight>
SINTER_DEVICE void attend(const AttentionArguments& a) {
  uint32_t query_tile, head;
  const uint32_t rest = a.queries.divide(block_x(), &query_tile);
  const uint32_t batch = a.heads.divide(rest, &head);
  const int64_t matrix = int64_t{batch} * a.groups + head / static_cast<uint32_t>(a.heads_per_group);
  const T* q = reinterpret_cast<const T*>(a.q) + int64_t{rest} * a.queries_of_head * a.key_size;
  const T* k = reinterpret_cast<const T*>(a.k) + matrix * a.keys * a.key_size;
  const T* v = reinterpret_cast<const T*>(a.v) + matrix * a.keys * a.value_size;
  T* y = reinterpret_cast<T*>(a.y) + int64_t{rest} * a.queries_of_head * a.value_size;
  const int32_t first_query = static_cast<int32_t>(query_tile) * kQueries;
  const bool vectors = a.key_size % 4 == 0 && begins_sixteen(a.q) && begins_sixteen(a.k);
  const bool value_vectors = a.value_size % 4 == 0 && begins_sixteen(a.v);

  const Shared<float> room_q = shared_memory<float>(0, kDepth * kStep);
  const Shared<float> room_k = shared_memory<float>(kDepth * kStep * 4, kDepth * kStep);
  const Shared<float> weights = shared_memory<float>(2 * kDepth * kStep * 4, kKeys * kStep);
  const int down = thread_index() / kLanes * 4, right = thread_index() % kLanes * 4;
  const int first_value = static_cast<int>(block_y()) * kLanes * kRight + right;

  const int32_t length = keys_of_batch(a, batch);
  KeyRange visible[4];
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int32_t query = first_query + down + i;
    visible[i] = query < a.queries_of_head ? attended_keys(a, length, query) : KeyRange{};
  }
  const int32_t last =
      first_query + kQueries < a.queries_of_head ? first_query + kQueries : a.queries_of_head;
  const int32_t begin = attended_keys(a, length, first_query).begin / kKeys * kKeys;
  const int32_t keys = attended_keys(a, length, last - 1).end;  // the most of any query in the tile

  RunningWeights<float> w[4];
  float sum[4][kRight] = {};
  const int line = thread_index() / 4, part = thread_index() % 4 * 4;
  for (int32_t first = begin; first < keys; first += kKeys) {
    float score[4][4] = {};
    Four<T> next_q = read_four(q, first_query + line, a.queries_of_head, part, a.key_size, vectors);
    Four<T> next_k = read_four(k, first + line, length, part, a.key_size, vectors);
    for (int32_t depth = 0; depth < a.key_size; depth += kDepth) {
      barrier();
      put_four(room_q, next_q);
      put_four(room_k, next_k);
      barrier();
      if (depth + kDepth < a.key_size) {
        next_q =
            read_four(q, first_query + line, a.queries_of_head, depth + kDepth + part, a.key_size, vectors);
        next_k = read_four(k, first + line, length, depth + kDepth + part, a.key_size, vectors);
      }
      SINTER_UNROLL
      for (int d = 0; d < kDepth; ++d) {
        const auto x = room_q.template load<Four<float>>(d * kStep + down);
        const auto z = room_k.template load<Four<float>>(d * kStep + right);
        SINTER_UNROLL
        for (int i = 0; i < 4; ++i) SINTER_UNROLL
        for (int j = 0; j < 4; ++j) score[i][j] = m_fma(x.v[i], z.v[j], score[i][j]);
      }
    }

    SINTER_UNROLL
    for (int i = 0; i < 4; ++i) {
      weigh_scores<kRight, T>(a, bias_of(a, batch, head, first_query + down + i), first + right, visible[i],
                              score[i], &w[i], sum[i]);
    }
    // The values of the last keys have been added up: every thread has passed a barrier since.
    if (a.key_size == 0) barrier();
    SINTER_UNROLL
    for (int j = 0; j < 4; ++j)
      weights.store(right * kStep + j * kStep + down,
                    Four<float>{{score[0][j], score[1][j], score[2][j], score[3][j]}});
    barrier();
    add_values<kRight>(a, v, first, keys, length, first_value, value_vectors, weights, down, sum);
  }

  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int32_t query = first_query + down + i;
    if (query >= a.queries_of_head) continue;
    const float factor = add_sink<T>(a, head, 1.0f, &w[i]);
    SINTER_UNROLL
    for (int j = 0; j < kRight; ++j) {
      const int value = first_value + j / 4 * 4 * kLanes + j % 4;
      if (value < a.value_size)
        narrow(finish_value(a, w[i], sum[i][j] * factor, visible[i]),
               y + int64_t{query} * a.value_size + value);
    }
  }
}

}  // namespace

SINTER_KERNEL(attention_tiles_float_64, AttentionArguments) { attend<float, 4>(a); }
SINTER_KERNEL(attention_tiles_float_128, AttentionArguments) { attend<float, 8>(a); }

}  // namespace sinter::cuda
