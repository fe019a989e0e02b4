// The passes with a record of where the ONNX nodes go.
#pragma once

#include "converter/passes/pass.h"
#include "converter/report/node_fates.h"

namespace sinter::convert {

// run_passes() of pass.h that enters what becomes of each node into `fates`.
PassReport run_passes(Graph& graph, const PassOptions& options, NodeFates& fates);

}  // namespace sinter::convert
