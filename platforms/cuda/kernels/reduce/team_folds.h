// Folds over the threads of a team (teams.h).
#pragma once

#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/reduce/teams.h"

namespace sinter::cuda {

// Returns this thread's team in the block; the other function returns its place in it.
SINTER_DEVICE int team_of(const Teams& t) {
  return t.across != 0 ? thread_index() & (t.count - 1) : thread_index() / t.size;
}
SINTER_DEVICE int place_of(const Teams& t) {
  return t.across != 0 ? thread_index() / t.count : thread_index() & (t.size - 1);
}

// A is a plain struct of whole words.
template <class A>
SINTER_DEVICE A exchange_xor(const A& v, int mask) {
  static_assert(sizeof(A) % 4 == 0);
  struct Words {
    uint32_t word[sizeof(A) / 4];
  };
  Words words;
  memcpy(&words, &v, sizeof(A));
  for (size_t i = 0; i < sizeof(A) / 4; ++i) words.word[i] = shuffle_xor(words.word[i], mask);
  A other;
  memcpy(&other, &words, sizeof(A));
  return other;
}

// Returns, for every thread of a team, combine() of its threads' v in a fixed order. All threads of a block
// call it. `room` has one element for each thread of the block (kTeamRoom), and is free again afterwards.
template <class A, class F>
SINTER_DEVICE A fold_team(A v, const Shared<A>& room, const Teams& t, F combine) {
  if (t.size == 1) return v;
  if (t.across != 0) {
    const int at = thread_index(), place = place_of(t);
    room[at] = v;
    barrier();
    for (int half = t.size / 2; half > 0; half /= 2) {
      if (place < half) {
        v = combine(v, static_cast<A>(room[at + half * t.count]));
        room[at] = v;
      }
      barrier();
    }
    v = room[team_of(t)];
    barrier();
    return v;
  }
  const int within = t.size < kWarp ? t.size : kWarp;
  for (int mask = 1; mask < within; mask *= 2) {
    const A other = exchange_xor(v, mask);
    v = (lane() & mask) != 0 ? combine(other, v) : combine(v, other);
  }
  if (t.size <= kWarp) return v;
  const int warps = t.size / kWarp, first = warp_index() & ~(warps - 1);
  if (lane() == 0) room[warp_index()] = v;
  barrier();
  v = room[first];
  for (int w = 1; w < warps; ++w) v = combine(v, static_cast<A>(room[first + w]));
  barrier();
  return v;
}
}  // namespace sinter::cuda
