// A block of a grid while the emulator runs it: its threads are fibers of one host thread, which run one at a
// time from barrier to barrier.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter::cuda::emulator {

// The position of the running thread.
struct Position {
  int thread = 0, threads = 0;
  uint32_t block[3] = {}, blocks[3] = {};
};
extern const Position* here;

// The functions for grid/host_grid.h. A breach of its rules ends the launch: the first one is kept (run.h).

void barrier();
void warp_barrier();
// Gives `bytes` of this lane to its warp, and returns the place where lane i's are, at i * kExchangeBytes,
// until this thread's second exchange from now. It orders no accesses to memory.
inline constexpr size_t kExchangeBytes = 32;
const std::byte* exchange(const void* mine, size_t bytes);

// Return checked addresses of shared memory.
const std::byte* read_shared(int at, size_t bytes, size_t alignment = 1);
std::byte* write_shared(int at, size_t bytes, size_t alignment = 1);
void claim_shared(int at, int bytes);

// Copies begin when the thread waits for them.
void copy_async(int to, const void* from, int bytes);
void commit_copies();
void wait_for_copies(int under_way);

// Make the two accesses of an atomic operation on device memory.
void load_atomic(const void* at, void* value, size_t bytes);
void store_atomic(void* at, const void* value, size_t bytes);

}  // namespace sinter::cuda::emulator
