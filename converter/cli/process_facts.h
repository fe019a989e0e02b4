// The resources that this process has used.
#pragma once

#include <cstdint>

namespace sinter::convert {

// Returns the largest resident memory of this program so far; rusage also counts the program before exec.
uint64_t peak_rss_bytes();
// Returns the processor time of all threads, user and system.
double cpu_seconds();

}  // namespace sinter::convert
