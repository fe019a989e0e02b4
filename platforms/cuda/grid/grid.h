// The language in which this platform's kernels are written: one source, which nvcc compiles for the device
// and a C++ compiler for the host, where the emulator (platforms/cuda/emulator) runs it.
//
// A kernel is a function of one argument, a plain struct of at most 4 kB:
//
//   SINTER_KERNEL(scale_rows, ScaleArguments) {
//     const Shared<float> row = shared_memory<float>(0, a.columns);
//     ...
//     barrier();
//   }
//
// Its row in kernels/kernels.def gives its unit (the file), its number of threads a block, and whether the
// threads of a block cooperate. Blocks have one dimension of threads, grids three of blocks. All shared
// memory is dynamic: the launch states its bytes. Functions that kernels call are SINTER_DEVICE.
//
// Both have the place of the thread (thread_index, block_index, ...), shared memory, barriers, exchanges
// within a warp, products of matrices by a warp, conversions of 16-bit floats, mathematics. Operations of a
// whole warp (exchanges, products) must be reached by all 32 threads of it.
//
// Rules. Float arithmetic is not contracted (-fmad=false): a fused multiply-add is written as fma(a, b, c).
// Sums have a fixed order: no atomic operation on floats. No thread may leave a cooperating kernel before its
// last barrier. Shared memory is undefined before it is written.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#include "platforms/cuda/grid/device_grid.h"
#else
#include "platforms/cuda/grid/host_grid.h"
#endif

#include "platforms/cuda/grid/floats.h"
#include "platforms/cuda/grid/warp.h"
