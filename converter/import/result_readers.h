// The nodes that read a value of the ONNX graph, directly or behind others that hand its elements on.
#pragma once

#include <string>

#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// The readers of a value: calls `see(node, operand)` for nodes of the graph and of the bodies within it.
template <class See>
void each_reader(const ImportedGraph& source, const std::string& name, const See& see) {
  for (const ImportedNode& node : source.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == name) see(node, i);
    for (const ImportedAttribute& a : node.attributes)
      for (const auto& body : a.graphs) each_reader(*body, name, see);
  }
}

// "node 'g' (Gather)": the first that reads a value of `source`, which is the model's graph or a body in it,
// as an index or a count, by way of arithmetic, choices and movement too. Empty: there is none.
std::string index_reader(const ImportedGraph& model, const ImportedGraph& source, const std::string& value);

// Do all of its readers, and the model's declaration, take the value for a truth value?
bool read_as_truth(const ImportedGraph& source, const std::string& value);

// Do all of its readers combine its bits?
bool read_as_bits(const ImportedGraph& source, const std::string& value);

}  // namespace sinter::convert
