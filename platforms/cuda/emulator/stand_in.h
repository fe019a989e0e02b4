// A stand-in for the CUDA driver: its entry points on the host, with the emulator as the device.
//
// It keeps the driver's rules, so that code that breaks them fails without a device. Jobs in a stream are not
// done before synchronize(), which is as late as a device may do them; the host cannot access device memory;
// calls need a current context; addresses must be of memory that was allocated; kernels must stay within the
// numbers that a launch states.
#pragma once

#include "platforms/cuda/driver/library.h"

namespace sinter::cuda {

// The functions that its library exports, in C, by the function sinter_cuda_stand_in.
struct StandIn {
  const char* kernels = nullptr;  // kKernelNames of the sources that it was built from
  const EntryPoints* entries = nullptr;
  // For tests: kernels must not access these bytes of device memory from now on, or may again if not `on`.
  void (*fence)(const void* at, size_t bytes, bool on) = nullptr;
};
inline constexpr char kStandInFunction[] = "sinter_cuda_stand_in";
using StandInFunction = const StandIn* (*)();

// Counts for tests, which link the library, since the program began.
struct StandInCounts {
  int64_t allocations = 0, frees = 0, bytes = 0;  // of device memory; bytes that are allocated now
  int64_t staging_allocations = 0, staging_frees = 0;
  int64_t uploads = 0, downloads = 0, launches = 0;  // done, including those of graphs
  int64_t overlapping_launches = 0;                  // put into a stream or graph
  int64_t graphs = 0, graph_launches = 0, synchronizations = 0;
};
const StandInCounts& stand_in_counts();
// Makes the next call of an entry point (EntryPoints' field) fail with the result. Null: none does.
void fail_next(const char* entry, DriverResult result);

}  // namespace sinter::cuda
