// The resources that this process has used.
#pragma once

#include <cstdint>

namespace sinter::convert {

// Largest resident memory so far, of this program alone: rusage also counts what the process was before exec.
uint64_t peak_rss_bytes();
// All threads, user and system.
double cpu_seconds();

}  // namespace sinter::convert
