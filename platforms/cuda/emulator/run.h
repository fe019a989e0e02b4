// Runs a kernel's grid on the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter::cuda::emulator {

struct Grid {
  uint32_t blocks[3] = {1, 1, 1};
  int threads = 32;
  size_t shared_bytes = 0;
  bool cooperates = false;  // its threads use barriers or exchange values
};

// Returns null, or the first breach of the language's rules (grid/grid.h), which ends the launch. The text
// lives until the next call. Launches of several threads take turns.
const char* run_grid(const Grid& grid, void (*kernel)(const void* arguments), const void* arguments);

// Takes the memory in advance, so that run_grid allocates nothing.
void be_ready();

// Ends the launch that runs, because it breaks a rule. The second one is for an access to global memory.
[[noreturn]] void breach(const char* text);
[[noreturn]] void breach_global(const char* fault, const void* at);

}  // namespace sinter::cuda::emulator
