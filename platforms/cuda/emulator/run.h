// Runs a kernel's grid on the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter::cuda::emulator {

struct Grid {
  uint32_t blocks[3] = {1, 1, 1};
  int threads = 32;
  size_t shared_bytes = 0;
  bool cooperates = false;  // its threads meet at barriers or exchange values
};

// Returns null, or the first breach of the language's rules (grid/grid.h): the text lives until the next
// call.
const char* run_grid(const Grid& grid, void (*kernel)(const void* arguments), const void* arguments);

// Takes the memory that this thread needs for it: run_grid then allocates nothing.
void be_ready();

}  // namespace sinter::cuda::emulator
