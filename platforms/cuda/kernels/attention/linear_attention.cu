// LinearAttention: token by token, a state of each key head is decayed, updated and read. A column of the
// state, the numbers of all keys' elements for one value, depends on no other: a lane has one, and the warps
// of a block share its elements, which stay in shared memory.
#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/attention/linear_attention.h"

namespace sinter::cuda {
namespace {

template <class T, class R>
SINTER_DEVICE R read(const std::byte* from, int64_t i) {
  return static_cast<R>(widen(reinterpret_cast<const T*>(from)[i]));
}

// Returns the sum of the warps' numbers for this lane. Two barriers follow, so that `room` is free again.
template <class R>
SINTER_DEVICE R add_warps(R v, const Shared<R>& room) {
  room[warp_index() * kLinearColumns + lane()] = v;
  barrier();
  R all = 0;
  for (int w = 0; w < kLinearWarps; ++w) all += room[w * kLinearColumns + lane()];
  barrier();
  return all;
}

// R is the type of sums and states.
template <class T, class R>
SINTER_DEVICE void attend(const LinearAttentionArguments& a) {
  uint32_t tile, head;
  const uint32_t unit = a.tiles.divide(block_x(), &tile);
  const uint32_t batch = a.heads.divide(unit, &head);
  const auto heads = static_cast<int32_t>(a.heads.divisor), mine = static_cast<int32_t>(head);
  const int32_t column = static_cast<int32_t>(tile) * kLinearColumns + lane();
  const bool inside = column < a.value_size;
  const int32_t group = a.queries > heads ? a.queries / heads : 1, results = group * heads;
  const Shared<R> state = shared_memory<R>(0, linear_attention_elements(a.key_size));
  const Shared<R> room = state + a.key_size * kLinearColumns;
  const int64_t of_head = int64_t{unit} * a.key_size * a.value_size;
  const int64_t of_all = int64_t{a.batches} * heads * a.key_size * a.value_size;
  const auto place = [&](int d) { return d * kLinearColumns + lane(); };
  // State `slot` becomes this one, or zeros.
  const auto keep = [&](int32_t slot, bool zeros) {
    if (a.next == nullptr || !inside) return;
    R* to = reinterpret_cast<R*>(a.next) + slot * of_all + of_head + column;
    for (int d = warp_index(); d < a.key_size; d += kLinearWarps)
      to[int64_t{d} * a.value_size] = zeros ? R(0) : R(state[place(d)]);
  };
  for (int d = warp_index(); d < a.key_size; d += kLinearWarps)
    state[place(d)] = a.state != nullptr && inside
                          ? reinterpret_cast<const R*>(a.state)[of_head + int64_t{d} * a.value_size + column]
                          : R(0);
  // The state after token t is kept in slot t - first.
  const int32_t first = a.tokens - a.slots;
  if (a.window == 0 && a.tokens == 0) keep(0, false);
  if (a.window > 0)
    for (int32_t slot = 0; slot < -first && slot < a.slots; ++slot) keep(slot, true);
  for (int32_t t = 0; t < a.tokens; ++t) {
    const int64_t row = int64_t{batch} * a.tokens + t, of_row = row * heads + mine;
    const int64_t key = of_row * a.key_size;
    R added = inside ? read<T, R>(a.v, of_row * a.value_size + column) : R(0);
    R known = 0;
    for (int d = warp_index(); d < a.key_size; d += kLinearWarps) {
      R s = state[place(d)];
      if (a.decay != nullptr)
        s *= m_exp(read<T, R>(a.decay, of_row * a.decay_size + (a.decay_size == 1 ? 0 : d)));
      state[place(d)] = s;
      known = m_fma(read<T, R>(a.k, key + d), s, known);
    }
    if (a.beta != nullptr)
      added = (added - add_warps(known, room)) *
              read<T, R>(a.beta, a.beta_heads == 1 ? row : row * a.beta_heads + mine);
    for (int d = warp_index(); d < a.key_size; d += kLinearWarps)
      state[place(d)] = m_fma(read<T, R>(a.k, key + d), added, R(state[place(d)]));
    if (t >= first) keep(t - first, false);
    // The query heads of this head, or the head that it shares with others.
    for (int32_t i = 0; i < group && a.y != nullptr; ++i) {
      const int32_t result = mine * group + i;
      const int32_t query = a.queries >= heads ? result : mine / (heads / a.queries);
      const int64_t from = (row * a.queries + query) * a.key_size;
      R sum = 0;
      for (int d = warp_index(); d < a.key_size; d += kLinearWarps)
        sum = m_fma(read<T, R>(a.q, from + d), R(state[place(d)]), sum);
      sum = add_warps(sum, room);
      if (warp_index() == 0 && inside)
        narrow(static_cast<R>(a.scale) * sum,
               reinterpret_cast<T*>(a.y) + (row * results + result) * a.value_size + column);
    }
  }
}

}  // namespace

SINTER_KERNEL(linear_attention, LinearAttentionArguments) {
  switch (a.dtype) {
    case DType::kFloat16:
      return attend<Float16, float>(a);
    case DType::kBFloat16:
      return attend<BFloat16, float>(a);
    default:
      return attend<float, float>(a);
  }
}
SINTER_KERNEL(linear_attention_double, LinearAttentionArguments) { attend<double, double>(a); }

}  // namespace sinter::cuda
