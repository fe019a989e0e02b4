// CallView: a node's operands as kernels see them, dense or with a plan's strides. Small constants have data.
#pragma once

#include <algorithm>
#include <vector>

#include "converter/ir/graph.h"
#include "runtime/backend/kernel.h"

namespace sinter::convert {

struct CallView {
  // The most bytes of a constant with data. Kernels accept larger ones by their dtype and dims.
  static constexpr size_t kMostData = 4096;

  std::vector<TensorView> inputs, outputs;
  OpCall call;

  CallView(const Graph& graph, const Node& node) {
    for (const ValueId id : node.inputs) inputs.push_back(view(graph, id));
    for (const ValueId id : node.outputs) outputs.push_back(view(graph, id));
    call = {node.op(), attrs_pointer(node.attrs), inputs, outputs};
  }
  // storage.strides(id) returns a value's strides in bytes; empty: dense.
  template <class Storage>
  CallView(const Graph& graph, const Node& node, const Storage& storage) : CallView(graph, node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) stride(storage, node.inputs[i], &inputs[i]);
    for (size_t i = 0; i < node.outputs.size(); ++i) stride(storage, node.outputs[i], &outputs[i]);
  }
  CallView(const CallView&) = delete;
  CallView& operator=(const CallView&) = delete;

 private:
  template <class Storage>
  static void stride(const Storage& storage, ValueId id, TensorView* v) {
    if (id >= 0) std::copy(storage.strides(id).begin(), storage.strides(id).end(), v->strides);
  }
  std::vector<LoadedBytes> held_;

  TensorView view(const Graph& graph, ValueId id) {
    TensorView v;
    if (id < 0) return v;
    v.dtype = graph.value(id).dtype;
    v.set_shape(graph.value(id).dims);
    v.constant = graph.is_constant(id);
    if (v.constant && graph.value(id).constant->byte_size() <= kMostData) {
      held_.push_back(graph.value(id).constant->load());
      v.data = const_cast<std::byte*>(held_.back().bytes.data());
    }
    return v;
  }
};

}  // namespace sinter::convert
