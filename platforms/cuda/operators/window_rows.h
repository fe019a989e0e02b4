// Fills kernels/window/window.h's WindowRows from the geometry of a call.
#pragma once

#include "platforms/cuda/kernels/window/window.h"
#include "runtime/backend/transposed_phase.h"

namespace sinter::cuda {

// The rows of a convolution; kUnsupported beyond what the kernels' 32-bit positions hold.
Status window_rows(const WindowGeometry& g, WindowRows* rows);
// Those of one phase of a transposed convolution.
Status phase_rows(const WindowGeometry& g, const TransposedPhase& phase, WindowRows* rows);
// Those of a matrix of `depth` columns.
WindowRows matrix_rows(int64_t depth, int64_t row_step);

}  // namespace sinter::cuda
