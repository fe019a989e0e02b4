// NonZero, and Unique of sorted records.
#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/grid/scan.h"
#include "platforms/cuda/kernels/index/find.h"

namespace sinter::cuda {
namespace {

// Counts the selected elements of each chunk; selected(i) is whether element i, below `length`, is one.
template <class F>
SINTER_DEVICE void count_selected(uint32_t length, uint32_t* counts, F&& selected) {
  const auto room = shared_memory<uint32_t>(0, kWarp);
  const uint32_t chunks = (length + kSelectChunk - 1) / kSelectChunk;
  for (uint32_t chunk = block_x(); chunk < chunks; chunk += blocks_x()) {
    uint32_t mine = 0;
    for (int i = thread_index(); i < kSelectChunk; i += block_threads()) {
      const uint32_t at = chunk * kSelectChunk + static_cast<uint32_t>(i);
      if (at < length && selected(at)) ++mine;
    }
    const uint32_t all = fold_block(mine, room, AddUp{});
    if (thread_index() == 0) counts[chunk] = all;
  }
}

// Calls place(i, whether it is selected, the number of selected ones before it) for each element.
template <class F, class G>
SINTER_DEVICE void place_selected(uint32_t length, const uint32_t* counts, F&& selected, G&& place) {
  const auto room = shared_memory<uint32_t>(0, kWarp);
  const uint32_t chunks = (length + kSelectChunk - 1) / kSelectChunk;
  for (uint32_t chunk = block_x(); chunk < chunks; chunk += blocks_x()) {
    uint32_t before = counts[chunk];
    for (int i = thread_index(); i < kSelectChunk; i += block_threads()) {
      const uint32_t at = chunk * kSelectChunk + static_cast<uint32_t>(i);
      const bool is_selected = at < length && selected(at);
      uint32_t in_row;
      const uint32_t here = scan_block(is_selected ? 1 : 0, room, &in_row);
      if (at < length) place(at, is_selected, before + here);
      before += in_row;
    }
  }
}

SINTER_DEVICE bool is_non_zero(const NonZeroArguments& a, uint32_t n) {
  const std::byte* at = a.x + offset_of(a.box, a.steps, n);
  const bool halved = a.is_float != 0;  // zero has two signs
  switch (a.width) {
    case 1:
      return (load<uint8_t>(at) & (halved ? 0x7f : 0xff)) != 0;
    case 2:
      return (load<uint16_t>(at) & (halved ? 0x7fff : 0xffff)) != 0;
    case 4:
      return (load<uint32_t>(at) & (halved ? 0x7fffffffu : ~0u)) != 0;
    default:
      return (load<uint64_t>(at) & (halved ? ~uint64_t{0} >> 1 : ~uint64_t{0})) != 0;
  }
}

SINTER_DEVICE bool begins_group(const UniqueArguments& a, uint32_t record) {
  return record == 0 || a.records.keys[record] != a.records.keys[record - 1];
}

}  // namespace

SINTER_KERNEL(add_counts, AddCountsArguments) {
  const auto room = shared_memory<uint32_t>(0, kWarp);
  uint32_t before = 0;
  for (uint32_t begin = 0; begin < a.chunks; begin += static_cast<uint32_t>(block_threads())) {
    const uint32_t at = begin + static_cast<uint32_t>(thread_index());
    const uint32_t mine = at < a.chunks ? a.counts[at] : 0;
    uint32_t all;
    const uint32_t here = scan_block(mine, room, &all);
    if (at < a.chunks) a.counts[at] = before + here;
    before += all;
  }
  if (thread_index() == 0 && a.total != nullptr) *a.total = before;
}

SINTER_KERNEL(count_non_zero, NonZeroArguments) {
  count_selected(a.box.size, a.counts, [&](uint32_t n) { return is_non_zero(a, n); });
}

SINTER_KERNEL(place_non_zero, NonZeroArguments) {
  place_selected(
      a.box.size, a.counts, [&](uint32_t n) { return is_non_zero(a, n); },
      [&](uint32_t n, bool selected, uint32_t place) {
        if (!selected) return;
        for (int k = a.rank - 1; k >= 0; --k) {
          uint32_t index;
          n = a.dims[k].divide(n, &index);
          a.indices[int64_t{k} * a.box.size + place] = index;
        }
      });
}

SINTER_KERNEL(count_groups, UniqueArguments) {
  count_selected(a.length, a.counts, [&](uint32_t record) { return begins_group(a, record); });
}

SINTER_KERNEL(place_groups, UniqueArguments) {
  place_selected(
      a.length, a.counts, [&](uint32_t record) { return begins_group(a, record); },
      [&](uint32_t record, bool begins, uint32_t before) {
        const uint32_t element = a.records.numbers[record], group = begins ? before : before - 1;
        a.group_of[element] = group;
        if (begins) a.start_of[group] = record;
        if (a.is_first != nullptr) a.is_first[element] = begins ? 1 : 0;
      });
}

SINTER_KERNEL(count_firsts, UniqueArguments) {
  count_selected(a.length, a.counts, [&](uint32_t element) { return a.is_first[element] != 0; });
}

SINTER_KERNEL(place_firsts, UniqueArguments) {
  place_selected(
      a.length, a.counts, [&](uint32_t element) { return a.is_first[element] != 0; },
      [&](uint32_t element, bool first, uint32_t before) {
        if (first) a.rank_of[element] = before;
      });
}

SINTER_KERNEL(write_unique, UniqueArguments) {
  const auto groups = static_cast<uint32_t>(*a.groups);
  const auto place_of = [&](uint32_t group) {
    return a.rank_of == nullptr ? group : a.rank_of[a.records.numbers[a.start_of[group]]];
  };
  for (int64_t n = global_thread(); n < a.length; n += global_threads()) {
    const auto i = static_cast<uint32_t>(n);
    if (a.inverse != nullptr) a.inverse[i] = place_of(a.group_of[i]);
    if (i >= groups) continue;
    const uint32_t start = a.start_of[i], end = i + 1 < groups ? a.start_of[i + 1] : a.length;
    const uint32_t first = a.records.numbers[start], place = place_of(i);
    if (a.firsts != nullptr) a.firsts[place] = first;
    if (a.sizes != nullptr) a.sizes[place] = end - start;
    if (a.values == nullptr) continue;
    for (int b = 0; b < a.width; ++b)
      a.values[int64_t{place} * a.width + b] = a.x[int64_t{first} * a.width + b];
  }
}

}  // namespace sinter::cuda
