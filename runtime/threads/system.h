// The functions of the system for PthreadPool: processors and the settings of threads.
#pragma once

#include "sinter/thread_pool.h"

namespace sinter {

// Returns the number of processors that this process may use, at least 1.
int usable_processors();

// Returns whether the values are within the ranges that ThreadSettings states, and this system has such
// settings at all.
Status check_settings(const ThreadSettings& settings);

// Applies the settings to the calling thread, the i-th that a pool starts.
Status apply_settings(const ThreadSettings& settings, size_t i);

}  // namespace sinter
