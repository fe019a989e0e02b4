// Fills kernels/window/window.h's WindowRows from the geometry of a call.
#pragma once

#include "platforms/cuda/kernels/window/window.h"
#include "runtime/backend/transposed_phase.h"

namespace sinter::cuda {

// Makes the rows of a convolution. Fails with kUnsupported beyond the kernels' 32-bit positions.
Status window_rows(const WindowGeometry& g, WindowRows* rows);
// Makes those of one phase of a transposed convolution.
Status phase_rows(const WindowGeometry& g, const TransposedPhase& phase, WindowRows* rows);
// Returns those of a matrix of `depth` columns.
WindowRows matrix_rows(int64_t depth, int64_t row_step);

}  // namespace sinter::cuda
