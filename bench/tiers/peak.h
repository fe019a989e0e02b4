// What one core can do at most: the rates of single instructions, and of copying memory.
#pragma once

#include <cstddef>
#include <vector>

namespace sinter::bench {

// 10^9 operations a second; a multiply-add counts as two, as in the shapes of networks.
struct Peak {
  const char* name;
  bool integers;
  double rate;
};

// Of the instruction sets up to `tier` (sse41, avx2, avx512, or "full": all that the processor has), lowest
// time of several tries. Empty on architectures other than x86-64.
std::vector<Peak> measure_peaks(const char* tier);

// Seconds that copying `bytes` from one place to another takes, lowest of several tries, after a first one
// that brings them into the nearest cache that holds both.
double seconds_of_copy(size_t bytes);

}  // namespace sinter::bench
