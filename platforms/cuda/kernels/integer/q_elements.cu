// Integer operations, element by element: QAdd, QMul, QPRelu, QRequantize, Lut, QTable (docs/numerics.md). A
// thread reads all elements of its item before it writes them, so that results may replace an operand.
#include "platforms/cuda/kernels/integer/q_elements.h"
#include "platforms/cuda/kernels/integer/requantize.h"
#include "runtime/core/integer_limits.h"

namespace sinter::cuda {
namespace {

constexpr int kFour = 4;

template <class T>
struct alignas(kFour * sizeof(T)) FourOf {
  T v[kFour];
};

// Reads `count` elements, 1 to 4.
template <class T>
SINTER_DEVICE FourOf<T> load_item(const std::byte* from, int64_t along, int count) {
  if (count == kFour && along == sizeof(T) && is_aligned(from, sizeof(FourOf<T>)))
    return *reinterpret_cast<const FourOf<T>*>(from);
  FourOf<T> all;
  SINTER_UNROLL
  for (int i = 0; i < kFour; ++i) all.v[i] = *reinterpret_cast<const T*>(from + (i < count ? i : 0) * along);
  return all;
}
template <class T>
SINTER_DEVICE void store_item(std::byte* to, int64_t along, int count, const FourOf<T>& all) {
  if (count == kFour && along == sizeof(T) && is_aligned(to, sizeof(FourOf<T>))) {
    *reinterpret_cast<FourOf<T>*>(to) = all;
    return;
  }
  SINTER_UNROLL
  for (int i = 0; i < kFour; ++i)
    if (i < count) *reinterpret_cast<T*>(to + i * along) = all.v[i];
}

// Calls f(item, the number of its elements) for the items of this thread.
template <class F>
SINTER_DEVICE void for_items(const VectorBox& all, F f) {
  for (int64_t n = global_thread(); n < all.box.size; n += global_threads()) {
    const auto item = static_cast<uint32_t>(n);
    const uint32_t rest = all.size - item * all.per;
    f(item, static_cast<int>(rest < all.per ? rest : all.per));
  }
}

template <class T, class B, class F>
SINTER_DEVICE void map_pairs(const QPairArguments& a, F f) {
  for_items(a.all, [&](uint32_t item, int count) {
    const auto u = load_item<T>(a.a + offset_of(a.all.box, a.a_steps.items, item), a.a_steps.along, count);
    const auto v = load_item<B>(a.b + offset_of(a.all.box, a.b_steps.items, item), a.b_steps.along, count);
    FourOf<T> y;
    SINTER_UNROLL
    for (int i = 0; i < kFour; ++i) y.v[i] = static_cast<T>(f(u.v[i], v.v[i]));
    store_item(a.y + offset_of(a.all.box, a.y_steps.items, item), a.y_steps.along, count, y);
  });
}

template <class T>
SINTER_DEVICE void multiply_or_slope(const QPairArguments& a) {
  if (a.fn == PairFn::kMul)
    return map_pairs<T, T>(a, [&](int32_t u, int32_t v) {
      return integer_of(a.result, static_cast<float>((u - a.a_zero) * (v - a.b_zero)) * a.multiplier);
    });
  map_pairs<T, float>(a, [&](int32_t u, float slope) {
    const int32_t x = u - a.a_zero;
    const float below = m_fabs(slope) <= 16384.0f ? slope : 0.0f;  // kMaxIntegerMultiplier
    return integer_of(a.result, static_cast<float>(x) * (x < 0 ? below : a.multiplier));
  });
}

}  // namespace

SINTER_KERNEL(q_pair, QPairArguments) {
  if (a.fn != PairFn::kAdd)
    return a.width == 1 ? multiply_or_slope<int8_t>(a) : multiply_or_slope<int16_t>(a);
  if (a.width == 1) {
    const int32_t low = static_cast<int32_t>(a.result.low), high = static_cast<int32_t>(a.result.high);
    map_pairs<int8_t, int8_t>(a, [&](int32_t u, int32_t v) {
      const int32_t sum =
          shift_right_rne((u - a.a_zero) * a.a_multiplier + (v - a.b_zero) * a.b_multiplier, a.shift);
      return (sum < low ? low : sum > high ? high : sum) + a.result.zero;
    });
  } else {
    map_pairs<int16_t, int16_t>(a, [&](int32_t u, int32_t v) {
      return integer_of(a.result, static_cast<float>(u) * a.a_scale + static_cast<float>(v) * a.b_scale);
    });
  }
}

namespace {

template <class X, class Y, class A, class F>
SINTER_DEVICE void map_items(const A& a, F f) {
  for_items(a.all, [&](uint32_t item, int count) {
    const auto x = load_item<X>(a.x + offset_of(a.all.box, a.x_steps.items, item), a.x_steps.along, count);
    FourOf<Y> y;
    SINTER_UNROLL
    for (int i = 0; i < kFour; ++i) y.v[i] = static_cast<Y>(f(x.v[i]));
    store_item(a.y + offset_of(a.all.box, a.y_steps.items, item), a.y_steps.along, count, y);
  });
}

template <class X, class Y>
SINTER_DEVICE void requantize(const QRequantizeArguments& a) {
  map_items<X, Y>(
      a, [&](int32_t x) { return integer_of(a.result, static_cast<float>(x - a.x_zero) * a.multiplier); });
}

template <class Y>
SINTER_DEVICE void look_up(const LutArguments& a) {
  constexpr int kEntries = 256;
  const Shared<Y> table = shared_memory<Y>(0, kEntries);
  for (int i = thread_index(); i < kEntries; i += block_threads())
    table[i] = *reinterpret_cast<const Y*>(a.table + i * a.table_step);
  barrier();
  const uint32_t flip = a.is_signed != 0 ? 0x80 : 0;
  map_items<uint8_t, Y>(a, [&](uint32_t x) { return static_cast<Y>(table[static_cast<int>(x ^ flip)]); });
}

}  // namespace

SINTER_KERNEL(q_requantize, QRequantizeArguments) {
  if (a.x_width == 1)
    return a.result.width == 1 ? requantize<int8_t, int8_t>(a) : requantize<int8_t, int16_t>(a);
  return a.result.width == 1 ? requantize<int16_t, int8_t>(a) : requantize<int16_t, int16_t>(a);
}

// A block has the table in shared memory before it writes; the only block of a small x may write over the
// table.
SINTER_KERNEL(lut, LutArguments) {
  if (a.width == 1) return look_up<uint8_t>(a);
  if (a.width == 2) return look_up<uint16_t>(a);
  look_up<uint32_t>(a);
}

SINTER_KERNEL(q_table, QTableArguments) {
  const int rest = 16 - a.k;
  const int32_t most = max_table_entry(a.k), whole = 1 << rest;
  const auto entry = [&](int32_t i) {
    const auto v = *reinterpret_cast<const int32_t*>(a.table + i * a.table_step);
    return v < -most ? -most : v > most ? most : v;
  };
  map_items<int16_t, int16_t>(a, [&](int32_t x) {
    const int32_t u = x + 32768, i = u >> rest, f = u & (whole - 1);
    const int32_t v = shift_right_rne(entry(i) * (whole - f) + entry(i + 1) * f, 15);
    return v < a.low ? a.low : v > a.high ? a.high : v;
  });
}

}  // namespace sinter::cuda
