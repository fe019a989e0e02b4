// The ledger's rows about a quantization: every value and constant that became integers, with its scale, and
// every operation that stayed float, with its reason.
#pragma once

#include <vector>

#include "converter/quantize/integers/insert_quantizers.h"

namespace sinter::convert {

// Files the type decisions of `rounded`, which was made from `exact`, in its ledger.
void file_quantized(const Graph& exact, const Graph& rounded, int64_t samples);
// Files a decision for each layer that did not become integers. `graph` has the operations' outputs.
void file_left_float(const Graph& graph, const std::vector<LayerFate>& layers, TypeLedger* ledger);

}  // namespace sinter::convert
