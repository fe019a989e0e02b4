// GroupNorm and Lrn.
//
// GroupNorm takes three launches: statistics of each channel of some of the pixels, which are those of a
// group together, and the result. Neighbouring threads take neighbouring channels, whatever the width of a
// group. Statistics are merged by Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for
// Computing Sample Variances (1979).
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/reduce/group_norm.h"
#include "platforms/cuda/kernels/reduce/team_folds.h"

namespace sinter::cuda {
namespace {

// The statistics of `count` numbers: their mean, and the sum of the squares of their differences to it.
template <class V>
struct Spread {
  V mean, squares;
};
template <class V>
struct Counted {
  Spread<V> of;
  V count;
};
struct Merge {
  template <class V>
  SINTER_DEVICE Counted<V> operator()(const Counted<V>& s, const Counted<V>& t) const {
    if (t.count == V(0)) return s;
    if (s.count == V(0)) return t;
    const V count = s.count + t.count, d = t.of.mean - s.of.mean, share = t.count / count;
    return {{s.of.mean + d * share, s.of.squares + t.of.squares + d * d * s.count * share}, count};
  }
};

// Blocks are [channels / teams.count, splits, samples].
template <class V>
SINTER_DEVICE void channel_statistics(const GroupNormArguments& a) {
  constexpr uint32_t kKept = 8;
  const auto room = shared_memory<Counted<V>>(0, kTeamBlock);
  const int64_t width = byte_width(a.dtype);
  const uint32_t channel =
      block_x() * static_cast<uint32_t>(a.teams.count) + static_cast<uint32_t>(team_of(a.teams));
  const uint32_t first = block_y() * a.pixels_each;
  const uint32_t end = a.pixels - first < a.pixels_each ? a.pixels : first + a.pixels_each;
  const auto size = static_cast<uint32_t>(a.teams.size);
  const std::byte* x = a.x + (int64_t{block_z()} * a.pixels * a.channels + channel) * width;
  Counted<V> all = {{0, 0}, 0};
  for (uint32_t p = first + static_cast<uint32_t>(place_of(a.teams)); channel < a.channels && p < end;
       p += kKept * size) {
    Loaded<V> loaded[kKept];
    V v[kKept], sum = 0, squares = 0;
    uint32_t count = 0;
    SINTER_UNROLL
    for (uint32_t k = 0; k < kKept; ++k)
      if (p + k * size < end)
        loaded[k] = begin_load<V>(x + int64_t{p + k * size} * a.channels * width, a.dtype), ++count;
    SINTER_UNROLL
    for (uint32_t k = 0; k < kKept; ++k)
      if (k < count) {
        v[k] = value_of<V>(loaded[k], a.dtype);
        sum += v[k];
      }
    const V mean = sum / static_cast<V>(count);
    SINTER_UNROLL
    for (uint32_t k = 0; k < kKept; ++k)
      if (k < count) squares += (v[k] - mean) * (v[k] - mean);
    all = Merge()(all, Counted<V>{{mean, squares}, static_cast<V>(count)});
  }
  all = fold_team(all, room, a.teams, Merge());
  if (channel < a.channels && place_of(a.teams) == 0)
    reinterpret_cast<Spread<V>*>(
        a.parts)[(int64_t{block_z()} * a.splits + block_y()) * a.channels + channel] = all.of;
}

// A team has a group.
template <class V>
SINTER_DEVICE void group_statistics(const GroupNormArguments& a) {
  const auto room = shared_memory<Counted<V>>(0, kTeamBlock);
  const uint32_t group =
      block_x() * static_cast<uint32_t>(a.teams.count) + static_cast<uint32_t>(team_of(a.teams));
  const bool exists = group < a.samples * a.group_count;
  const uint32_t sample = group / a.group_count, first = (group - sample * a.group_count) * a.width;
  const auto* parts =
      reinterpret_cast<const Spread<V>*>(a.parts) + int64_t{sample} * a.splits * a.channels + first;
  Counted<V> all = {{0, 0}, 0};
  for (uint32_t i = static_cast<uint32_t>(place_of(a.teams)); exists && i < a.splits * a.width;
       i += static_cast<uint32_t>(a.teams.size)) {
    uint32_t channel;
    const uint32_t split = a.by_width.divide(i, &channel), rest = a.pixels - split * a.pixels_each;
    const uint32_t count = rest < a.pixels_each ? rest : a.pixels_each;
    all = Merge()(all, Counted<V>{parts[int64_t{split} * a.channels + channel], static_cast<V>(count)});
  }
  all = fold_team(all, room, a.teams, Merge());
  if (exists && place_of(a.teams) == 0)
    reinterpret_cast<Spread<V>*>(a.groups)[group] = {
        all.of.mean, V(1) / m_sqrt(all.of.squares / all.count + static_cast<V>(a.epsilon))};
}

template <class V>
SINTER_DEVICE void normalise_groups(const GroupNormArguments& a) {
  const int64_t width = byte_width(a.dtype);
  for (int64_t i = global_thread(); i < a.size; i += global_threads()) {
    const auto n = static_cast<uint32_t>(i);
    uint32_t channel;
    a.by_channels.divide(n, &channel);
    const uint32_t group = a.by_sample.divide(n) * a.group_count + a.by_width.divide(channel);
    const auto of = reinterpret_cast<const Spread<V>*>(a.groups)[group];
    const V v = (load_float<V>(a.x + i * width, a.dtype) - of.mean) * of.squares;
    store_float<V>(a.y + i * width, a.dtype,
                   v * load_float<V>(a.scale + channel * width, a.dtype) +
                       load_float<V>(a.bias + channel * width, a.dtype));
  }
}

template <class V>
SINTER_DEVICE void lrn_all(const LrnArguments& a) {
  const int64_t width = byte_width(a.dtype);
  const uint32_t channels = a.by_channels.divisor;
  for (int64_t i = global_thread(); i < a.size; i += global_threads()) {
    uint32_t channel;
    a.by_channels.divide(static_cast<uint32_t>(i), &channel);
    const uint32_t low = channel < a.before ? 0 : channel - a.before;
    const uint32_t high = channels - 1 - channel < a.after ? channels - 1 : channel + a.after;
    V squares = 0;
    for (uint32_t c = low; c <= high; ++c) {
      const V v = load_float<V>(a.x + (i - channel + c) * width, a.dtype);
      squares += v * v;
    }
    const V base = static_cast<V>(a.bias) + static_cast<V>(a.factor) * squares;
    store_float<V>(a.y + i * width, a.dtype,
                   load_float<V>(a.x + i * width, a.dtype) / m_pow(base, static_cast<V>(a.beta)));
  }
}

}  // namespace

SINTER_KERNEL(group_norm_channels_floats, GroupNormArguments) { channel_statistics<float>(a); }
SINTER_KERNEL(group_norm_channels_doubles, GroupNormArguments) { channel_statistics<double>(a); }
SINTER_KERNEL(group_norm_groups_floats, GroupNormArguments) { group_statistics<float>(a); }
SINTER_KERNEL(group_norm_groups_doubles, GroupNormArguments) { group_statistics<double>(a); }
SINTER_KERNEL(group_norm_floats, GroupNormArguments) { normalise_groups<float>(a); }
SINTER_KERNEL(group_norm_doubles, GroupNormArguments) { normalise_groups<double>(a); }
SINTER_KERNEL(lrn_floats, LrnArguments) { lrn_all<float>(a); }
SINTER_KERNEL(lrn_doubles, LrnArguments) { lrn_all<double>(a); }

}  // namespace sinter::cuda
