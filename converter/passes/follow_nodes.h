// The passes with a record of where the ONNX nodes go.
#pragma once

#include "converter/diagnostics/node_fates.h"
#include "converter/passes/pass.h"

namespace sinter::convert {

// run_passes() of pass.h that enters what becomes of each node into `fates`.
PassReport run_passes(Graph& graph, const PassOptions& options, NodeFates& fates);

}  // namespace sinter::convert
