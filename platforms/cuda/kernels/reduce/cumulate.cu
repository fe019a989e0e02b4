// Cumulate: a team of threads for each line goes through it in rounds, in which each thread folds a few
// neighbouring elements. The fold of earlier elements is found by Hillis and Steele, Data Parallel Algorithms
// (1986).
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/reduce/cumulate.h"
#include "platforms/cuda/kernels/reduce/team_folds.h"

namespace sinter::cuda {
namespace {

constexpr uint32_t kEach = 4;  // elements of a thread in a round

// Sum is the type of the accumulated number, double or uint64_t.
template <class Sum, class Load, class Store>
SINTER_DEVICE void cumulate_lines(const CumulateArguments& a, Load load, Store store) {
  const Shared<Sum> room = shared_memory<Sum>(0, kTeamBlock);
  const Sum none = a.product != 0 ? 1 : 0;
  const auto fold = [&](Sum s, Sum v) { return a.product != 0 ? s * v : s + v; };
  const int place = place_of(a.teams), slot = thread_index();
  const int apart = a.teams.across != 0 ? a.teams.count : 1;  // slots of a team's neighbours
  const auto round = static_cast<uint32_t>(a.teams.size) * kEach;
  const int64_t step = int64_t{blocks_x()} * a.teams.count;
  for (int64_t first = int64_t{block_x()} * a.teams.count; first < a.lines.size; first += step) {
    const int64_t line = first + team_of(a.teams);
    const bool exists = line < a.lines.size;
    const auto n = static_cast<uint32_t>(exists ? line : 0);
    const std::byte* x = a.x + offset_of(a.lines, a.x_lines, n);
    std::byte* y = a.y + offset_of(a.lines, a.y_lines, n);
    Sum before = none;  // of all rounds that are done
    for (uint32_t begin = 0; begin < a.length; begin += round) {
      const uint32_t i = begin + static_cast<uint32_t>(place) * kEach;
      Sum v[kEach], own = none;
      SINTER_UNROLL
      for (uint32_t k = 0; k < kEach; ++k) {
        v[k] = exists && i + k < a.length ? load(x + (i + k) * a.x_step) : none;
        own = fold(own, v[k]);
      }
      Sum all = own;  // of this thread and those before it
      room[slot] = all;
      barrier();
      for (int reach = 1; reach < a.teams.size; reach *= 2) {
        if (place >= reach) all = fold(room[slot - reach * apart], all);
        barrier();
        room[slot] = all;
        barrier();
      }
      Sum sum = place > 0 ? fold(before, room[slot - apart]) : before;
      before = fold(before, room[slot + (a.teams.size - 1 - place) * apart]);
      barrier();
      SINTER_UNROLL
      for (uint32_t k = 0; k < kEach; ++k) {
        const Sum with = fold(sum, v[k]);
        if (exists && i + k < a.length) store(y + (i + k) * a.y_step, a.exclusive != 0 ? sum : with);
        sum = with;
      }
    }
  }
}

template <class V>
SINTER_DEVICE void cumulate_floats_as(const CumulateArguments& a) {
  cumulate_lines<double>(
      a, [&](const std::byte* p) { return static_cast<double>(load_float<V>(p, a.dtype)); },
      [&](std::byte* p, double v) { store_float<V>(p, a.dtype, static_cast<V>(v)); });
}

}  // namespace

SINTER_KERNEL(cumulate_floats, CumulateArguments) { cumulate_floats_as<float>(a); }
SINTER_KERNEL(cumulate_doubles, CumulateArguments) { cumulate_floats_as<double>(a); }
SINTER_KERNEL(cumulate_integers, CumulateArguments) {
  cumulate_lines<uint64_t>(
      a, [&](const std::byte* p) { return static_cast<uint64_t>(load_integer(p, a.dtype)); },
      [&](std::byte* p, uint64_t v) { store_integer(p, a.dtype, static_cast<int64_t>(v)); });
}

}  // namespace sinter::cuda
