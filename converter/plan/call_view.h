// CallView: a node's operands as kernels see them (dense, without data).
#pragma once

#include <vector>

#include "converter/ir/graph.h"
#include "runtime/backend/kernel.h"

namespace sinter::convert {

struct CallView {
  std::vector<TensorView> inputs, outputs;
  OpCall call;

  CallView(const Graph& graph, const Node& node) {
    for (const ValueId id : node.inputs) inputs.push_back(view(graph, id));
    for (const ValueId id : node.outputs) outputs.push_back(view(graph, id));
    call = {node.op(), attrs_pointer(node.attrs), inputs, outputs};
  }
  CallView(const CallView&) = delete;
  CallView& operator=(const CallView&) = delete;

 private:
  static TensorView view(const Graph& graph, ValueId id) {
    TensorView v;
    if (id < 0) return v;
    v.dtype = graph.value(id).dtype;
    v.set_shape(graph.value(id).dims);
    v.constant = graph.is_constant(id);
    return v;
  }
};

}  // namespace sinter::convert
