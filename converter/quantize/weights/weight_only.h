// Weights in 2 to 8 bits, activations in float: needs no samples (--quantize int8w, int4w, ...).
//
// Products with a kernel for weights that stay packed get it (products of rows, LowBitFullyConnected); rows
// of tables are dequantized after they were looked up; all other weights are stored as integers with scales
// and widened when a session is created. Weights that are kept in float have a reason.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "converter/ir/graph.h"
#include "converter/quantize/integers/insert_quantizers.h"

namespace sinter::convert {

// A value of --quantize for weights alone, and its bits.
struct WeightOnlyMode {
  const char* name;
  int bits;
};
inline constexpr WeightOnlyMode kWeightOnlyModes[] = {
    {"int8w", 8}, {"int6w", 6}, {"int5w", 5}, {"int4w", 4}, {"int3w", 3}};
// Returns the bits of a mode; 0: it is another one.
constexpr int weight_only_bits(std::string_view mode) {
  for (const WeightOnlyMode& m : kWeightOnlyModes)
    if (mode == m.name) return m.bits;
  return 0;
}
// Returns the mode with these bits.
constexpr const char* weight_only_name(int bits) {
  for (const WeightOnlyMode& m : kWeightOnlyModes)
    if (bits == m.bits) return m.name;
  return "";
}

struct WeightOnlyOptions {
  int bits = 8;                    // 8, or 3 to 6 where that makes sense; 0: weights stay as they are
  int64_t block = 32;              // weights that share a scale, where it is not one for a channel; even
  bool round_activations = false;  // --activations int8: round_activations()
  bool recurrent_only = false;     // only weights of recurrent layers
  std::set<ValueId> skipped = {};  // operations of the main graph that make one of these keep their weights
};

struct WeightOnlySummary {
  int narrowed = 0;
  int rounded_products = 0;                    // that round their activations
  std::vector<LayerFate> layers;               // one for each large constant and its reader
  uint64_t bytes_before = 0, bytes_after = 0;  // of all constants, as they are stored
};

// Narrows the weights of a graph that all other passes are done with, bodies included.
WeightOnlySummary narrow_weights(Graph& graph, const WeightOnlyOptions& options);

}  // namespace sinter::convert
