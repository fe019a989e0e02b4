// Attention of single queries: a block for one, its warps for a part of the keys each, 32 at a time. Eight
// lanes multiply a key; then all lanes add up the weighted values, of which each lane holds four.
#include "platforms/cuda/kernels/attention_score.h"

namespace sinter::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kKeyLanes = 8, kKeysAtOnce = kWarp / kKeyLanes;
constexpr int kMine = kAttentionValues / kWarp;  // values of a lane

template <class T>
struct alignas(sizeof(T) * kMine) Values {
  T v[kMine];
};

// The product of a key and the query, by eight lanes; all of them get it.
template <class T, class R>
SINTER_DEVICE R multiply_key(const AttentionArguments& a, const T* key, const Shared<R>& query,
                             bool vectors) {
  constexpr int kPiece = Piece<T>::kCount;
  const int part = lane() % kKeyLanes;
  R sum = 0;
  if (key != nullptr) {
    if (vectors) {
      for (int d = part * kPiece; d < a.key_size; d += kKeyLanes * kPiece) {
        const Piece<T> k = *reinterpret_cast<const Piece<T>*>(key + d);
        SINTER_UNROLL
        for (int i = 0; i < kPiece; ++i) sum = m_fma(static_cast<R>(query[d + i]), R(widen(k.v[i])), sum);
      }
    } else {
      for (int d = part; d < a.key_size; d += kKeyLanes)
        sum = m_fma(static_cast<R>(query[d]), R(widen(key[d])), sum);
    }
  }
  SINTER_UNROLL
  for (int mask = kKeyLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  return sum;
}

template <class T>
SINTER_DEVICE void attend(const AttentionArguments& a) {
  using R = typename RealOf<T>::Type;
  uint32_t query, head;
  const uint32_t row = block_x();
  const uint32_t batch = a.heads.divide(a.queries.divide(row, &query), &head);
  const int64_t matrix = int64_t{batch} * a.groups + head / static_cast<uint32_t>(a.heads_per_group);
  const T* q = reinterpret_cast<const T*>(a.q) + int64_t{row} * a.key_size;
  const T* k = reinterpret_cast<const T*>(a.k) + matrix * a.keys * a.key_size;
  const T* v = reinterpret_cast<const T*>(a.v) + matrix * a.keys * a.value_size;
  const std::byte* bias =
      a.bias == nullptr ? nullptr
                        : a.bias + batch * a.bias_steps[0] + head * a.bias_steps[1] + query * a.bias_steps[2];
  const int32_t visible = visible_keys(a, static_cast<int32_t>(query));
  const int first_value = static_cast<int>(block_y()) * kAttentionValues + lane() * kMine;
  const bool key_vectors = a.key_size % Piece<T>::kCount == 0 && begins_sixteen(a.k);
  const bool value_vectors =
      a.value_size % kMine == 0 && reinterpret_cast<uintptr_t>(a.v) % alignof(Values<T>) == 0;

  const int query_room = (a.key_size + 3) / 4 * 4;
  const Shared<R> wide = shared_memory<R>(0, query_room);
  const Shared<R> parts =
      shared_memory<R>(query_room * static_cast<int>(sizeof(R)), kWarps * (kAttentionValues + 4));
  for (int d = thread_index(); d < a.key_size; d += block_threads()) wide[d] = widen(q[d]);
  barrier();

  RunningWeights<R> w;
  R sum[kMine] = {};
  for (int32_t first = warp_index() * kWarp; first < visible; first += kWarps * kWarp) {
    // Lane l's key is the one that it multiplies in round l % 8.
    R product = 0;
    SINTER_UNROLL
    for (int round = 0; round < kKeyLanes; ++round) {
      const int32_t key = first + round * kKeysAtOnce + lane() / kKeyLanes;
      const R one =
          multiply_key<T, R>(a, key < visible ? k + int64_t{key} * a.key_size : nullptr, wide, key_vectors);
      if (lane() % kKeyLanes == round) product = one;
    }
    const int32_t mine = first + lane() % kKeyLanes * kKeysAtOnce + lane() / kKeyLanes;
    bool hidden = true;
    R score = minus_infinity<R>();
    if (mine < visible) {
      const R extra =
          bias != nullptr ? R(widen(*reinterpret_cast<const T*>(bias + mine * a.bias_steps[3]))) : R(0);
      score = score_of(a, product, extra, &hidden);
      if (hidden) score = minus_infinity<R>();
    }
    const R top = fold_warp(score, [](R x, R y) { return y > x || m_isnan(x) ? y : x; });
    const R higher = top > w.top ? top : w.top;
    const R factor = rescale(w.top, higher);
    R weight = weight_of(score, higher);
    w.total = w.total * factor + fold_warp(hidden ? R(0) : weight, AddUp{});
    w.any |= ballot(!hidden) != 0;
    w.top = higher;
    if (hidden || (a.rule == kRuleHides && weight == R(0))) weight = R(-1);  // the value is not read
    SINTER_UNROLL
    for (int i = 0; i < kMine; ++i) sum[i] *= factor;
    for (int round = 0; round < kWarp; ++round) {
      const R one = shuffle(weight, round % kKeysAtOnce * kKeyLanes + round / kKeysAtOnce);
      if (one == R(-1)) continue;
      const T* from = v + int64_t{first + round} * a.value_size + first_value;
      if (value_vectors) {
        if (first_value >= a.value_size) continue;
        const auto x = *reinterpret_cast<const Values<T>*>(from);
        SINTER_UNROLL
        for (int i = 0; i < kMine; ++i) sum[i] = m_fma(one, R(widen(x.v[i])), sum[i]);
      } else {
        SINTER_UNROLL
        for (int i = 0; i < kMine; ++i)
          if (first_value + i < a.value_size) sum[i] = m_fma(one, R(widen(from[i])), sum[i]);
      }
    }
  }

  // All warps' sums, in their order.
  const Shared<R> own = parts + warp_index() * (kAttentionValues + 4);
  SINTER_UNROLL
  for (int i = 0; i < kMine; ++i) own[lane() * kMine + i] = sum[i];
  if (lane() == 0) {
    own[kAttentionValues] = w.top;
    own[kAttentionValues + 1] = w.total;
    own[kAttentionValues + 2] = static_cast<R>(w.any);
  }
  barrier();
  const int value = static_cast<int>(block_y()) * kAttentionValues + thread_index();
  if (thread_index() >= kAttentionValues || value >= a.value_size) return;
  RunningWeights<R> all;
  R result = 0;
  for (int i = 0; i < kWarps; ++i) {
    const Shared<R> other = parts + i * (kAttentionValues + 4);
    const R top = other[kAttentionValues];
    const R higher = top > all.top ? top : all.top;
    const R mine = rescale(all.top, higher), others = rescale(top, higher);
    result = result * mine + static_cast<R>(other[thread_index()]) * others;
    all.total = all.total * mine + static_cast<R>(other[kAttentionValues + 1]) * others;
    all.any |= static_cast<R>(other[kAttentionValues + 2]) != R(0);
    all.top = higher;
  }
  narrow(finish_value(a, all, result, visible),
         reinterpret_cast<T*>(a.y) + int64_t{row} * a.value_size + value);
}

}  // namespace

SINTER_KERNEL(attention_rows_float, AttentionArguments) { attend<float>(a); }
SINTER_KERNEL(attention_rows_double, AttentionArguments) { attend<double>(a); }

}  // namespace sinter::cuda
