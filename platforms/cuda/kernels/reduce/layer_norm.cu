// LayerNorm and RmsNorm: a team of threads for each row. A row that a team's threads can keep is read once.
//
// The deviations are of the computed mean, whose rounding the mean of the deviations corrects, so that
// elements of a large mean lose only the rounding of the subtraction.
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/reduce/layer_norm.h"
#include "platforms/cuda/kernels/reduce/team_folds.h"

namespace sinter::cuda {
namespace {

template <class V>
struct Moments {
  V sum, squares;
};
struct AddMoments {
  template <class V>
  SINTER_DEVICE Moments<V> operator()(const Moments<V>& s, const Moments<V>& t) const {
    return {s.sum + t.sum, s.squares + t.squares};
  }
};

// The numbers of a row that all of its elements need.
template <class V>
struct RowOf {
  V mean, shift, inverse;  // shift: the mean of the deviations
};

// `each(f)` calls f(element's place in the row, its value) for this thread's elements.
template <class V, class Each>
SINTER_DEVICE RowOf<V> statistics_of(const LayerNormArguments& a, const Shared<Moments<V>>& room, Each each) {
  const V count = static_cast<V>(a.length);
  V mean = 0, shift = 0;
  if (a.centre != 0) {
    Moments<V> m = {0, 0};
    each([&](uint32_t, V v) { m.sum += v; });
    mean = fold_team(m, room, a.teams, AddMoments()).sum / count;
  }
  Moments<V> m = {0, 0};
  each([&](uint32_t, V v) {
    const V d = v - mean;
    m.sum += d, m.squares += d * d;
  });
  m = fold_team(m, room, a.teams, AddMoments());
  if (a.centre != 0) shift = m.sum / count;
  const V variance = m.squares / count - shift * shift;
  return {mean, shift, V(1) / m_sqrt(variance + static_cast<V>(a.epsilon))};
}

// With kSame, scale and bias are the same in every row.
template <class V, bool kSame, class Each>
SINTER_DEVICE void normalise_row(const LayerNormArguments& a, const Shared<Moments<V>>& room, int64_t row,
                                 Each each) {
  const RowOf<V> of = statistics_of<V>(a, room, each);
  if (row >= a.rows) return;
  if (place_of(a.teams) == 0) {
    if (a.mean != nullptr) reinterpret_cast<V*>(a.mean)[row] = of.mean + of.shift;
    if (a.inverse != nullptr) reinterpret_cast<V*>(a.inverse)[row] = of.inverse;
  }
  if (a.y == nullptr) return;
  const int64_t width = byte_width(a.dtype), first = row * a.length;
  each([&](uint32_t i, V v) {
    const auto n = static_cast<uint32_t>(first + i);
    const int64_t scale_at = kSame ? i * a.scale_step : offset_of(a.box, a.scale_steps, n);
    V r = (v - of.mean - of.shift) * of.inverse * load_float<V>(a.scale + scale_at, a.dtype);
    if (a.bias != nullptr) {
      const int64_t bias_at = kSame ? i * a.bias_step : offset_of(a.box, a.bias_steps, n);
      r += load_float<V>(a.bias + bias_at, a.dtype);
    }
    store_float<V>(a.y + n * width, a.dtype, r);
  });
}

// A thread has up to kMost elements.
template <class V, int kMost>
SINTER_DEVICE void normalise_kept(const LayerNormArguments& a, const Shared<Moments<V>>& room, int64_t row) {
  const int64_t width = byte_width(a.dtype);
  const auto size = static_cast<uint32_t>(a.teams.size), place = static_cast<uint32_t>(place_of(a.teams));
  const uint32_t length = row < a.rows ? a.length : 0;
  Loaded<V> loaded[kMost];
  V v[kMost];
  SINTER_UNROLL
  for (uint32_t k = 0; k < kMost; ++k)
    if (place + k * size < length)
      loaded[k] = begin_load<V>(a.x + (row * a.length + place + k * size) * width, a.dtype);
  SINTER_UNROLL
  for (uint32_t k = 0; k < kMost; ++k)
    if (place + k * size < length) v[k] = value_of<V>(loaded[k], a.dtype);
  normalise_row<V, true>(a, room, row, [&](auto f) {
    SINTER_UNROLL
    for (uint32_t k = 0; k < kMost; ++k)
      if (place + k * size < length) f(place + k * size, v[k]);
  });
}
template <class V, bool kSame>
SINTER_DEVICE void normalise_long(const LayerNormArguments& a, const Shared<Moments<V>>& room, int64_t row) {
  const int64_t width = byte_width(a.dtype);
  const auto size = static_cast<uint32_t>(a.teams.size), place = static_cast<uint32_t>(place_of(a.teams));
  const uint32_t length = row < a.rows ? a.length : 0;
  normalise_row<V, kSame>(a, room, row, [&](auto f) {
    for (uint32_t i = place; i < length; i += size)
      f(i, load_float<V>(a.x + (row * a.length + i) * width, a.dtype));
  });
}

template <class V>
SINTER_DEVICE void normalise_rows(const LayerNormArguments& a) {
  const auto room = shared_memory<Moments<V>>(0, kTeamBlock);
  const uint32_t each =
      (a.length + static_cast<uint32_t>(a.teams.size) - 1) / static_cast<uint32_t>(a.teams.size);
  const int64_t step = int64_t{blocks_x()} * a.teams.count;
  for (int64_t first = int64_t{block_x()} * a.teams.count; first < a.rows; first += step) {
    const int64_t row = first + team_of(a.teams);
    if (a.same_in_rows == 0)
      normalise_long<V, false>(a, room, row);
    else if (each <= 4)
      normalise_kept<V, 4>(a, room, row);
    else if (sizeof(V) == 4 && each <= 8)
      normalise_kept<V, sizeof(V) == 4 ? 8 : 4>(a, room, row);
    else
      normalise_long<V, true>(a, room, row);
  }
}

}  // namespace

SINTER_KERNEL(layer_norm_floats, LayerNormArguments) { normalise_rows<float>(a); }
SINTER_KERNEL(layer_norm_doubles, LayerNormArguments) { normalise_rows<double>(a); }

}  // namespace sinter::cuda
