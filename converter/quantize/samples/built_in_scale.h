// A graph and samples as they would be without --input-type uint8: the scale of the numbers is looked at
// there.
#pragma once

#include <memory>
#include <optional>

#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

// The two parts of a graph, as lowered, whose inputs of bytes have their preprocessing built in.
struct BuiltInScale {
  Graph scale;                   // the outputs are the numbers of these inputs,
  std::vector<size_t> in_bytes;  // in this order
  Graph network;                 // takes the numbers in place of the bytes
};
// nullopt: no input has.
std::optional<BuiltInScale> split_built_in_scale(const Graph& graph);

// The samples of the whole graph as the network takes them.
std::unique_ptr<SampleSource> behind_scale(std::unique_ptr<SampleSource> source, const BuiltInScale& parts,
                                           const RunnerOptions& options);

}  // namespace sinter::convert
