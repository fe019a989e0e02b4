// The division of lines of elements among the threads of a block: teams, each of which goes through one line
// at a time.
#pragma once

#include <cstdint>

namespace sinter::cuda {

inline constexpr int kTeamBlock = 256;  // threads of a block
// The bytes of shared memory for a fold of values of at most 16 bytes.
inline constexpr uint32_t kTeamRoom = kTeamBlock * 16;

// Sizes are powers of two. A team's threads are neighbours if a line's elements are near one another. With
// `across`, neighbours belong to different teams, because lines are near one another.
struct Teams {
  int32_t size = 1;   // threads of a team
  int32_t count = 1;  // teams of a block: kTeamBlock / size
  int32_t across = 0;
};

// Returns the smallest power of two that is at least `n`, at most `most`.
inline int32_t power_of_two_for(int64_t n, int32_t most) {
  int32_t p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

// Returns the teams for `lines` lines of `length` elements, of which a thread takes about `each`.
inline Teams choose_teams(int64_t lines, int64_t length, int64_t each, bool across) {
  Teams t;
  t.across = across ? 1 : 0;
  t.size = power_of_two_for((length + each - 1) / each, kTeamBlock);
  constexpr int32_t kNeighbours = 32, kReadTogether = 8;
  if (across) {
    // A warp reads 32 neighbouring lines, or all if there are fewer.
    const int32_t columns = power_of_two_for(lines, kNeighbours);
    if (t.size > kTeamBlock / columns) t.size = kTeamBlock / columns;
  } else if (t.size < kReadTogether) {
    t.size = power_of_two_for(length, kReadTogether);
  }
  t.count = kTeamBlock / t.size;
  return t;
}

}  // namespace sinter::cuda
