// XNNPACK's parallel loops on any ThreadPool. XNNPACK is written for the library pthreadpool; scripts/deps.sh
// renames the functions of that library which it calls to sinter_xnnpack_*, and parallel.cc defines these.
#pragma once

#include <pthreadpool.h>

#include "runtime/core/parallel.h"

namespace sinter::xnnpack {

// Returns the library's form of a pool: its address, or null for the calling thread alone.
pthreadpool_t as_pthreadpool(ThreadPool* pool);

}  // namespace sinter::xnnpack
