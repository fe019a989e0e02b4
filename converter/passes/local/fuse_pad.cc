// fuse-pad: zeros that a Pad puts around the spatial axes become pads of the convolution or average that
// reads them.
#include <algorithm>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

bool pads_zeros(const Editor& e, const Node& pad) {
  if (pad.as<PadAttrs>()->mode != static_cast<int64_t>(PadMode::kConstant)) return false;
  if (pad.inputs.size() < 2 || pad.inputs[1] < 0) return true;
  return e.scalar(pad.inputs[1]) == 0.0;
}

IntList* pads_of(Node& node) {
  if (auto* a = node.as<ConvAttrs>()) return &a->pads;
  if (auto* a = node.as<DepthwiseConvAttrs>()) return &a->pads;
  // An average that counts its pads; ceil_mode's extra window is outside of any pad, so it must stay exact.
  if (auto* a = node.as<AvgPoolAttrs>()) {
    const bool unpadded = std::all_of(a->pads.begin(), a->pads.end(), [](int64_t p) { return p == 0; });
    const bool dense =
        std::all_of(a->dilations.begin(), a->dilations.end(), [](int64_t d) { return d == 1; });
    return a->ceil_mode == 0 && dense && (unpadded || a->count_include_pad != 0) ? &a->pads : nullptr;
  }
  return nullptr;
}

// Nothing in the padded value precedes `keep`'s axes.
bool spatial_only(const IntList& pads, int rank) {
  return pads.size() == 2 * rank && pads[0] == 0 && pads[rank] == 0 && pads[rank - 1] == 0 &&
         pads[2 * rank - 1] == 0;
}

// Beyond these an average has windows of pads only, which the operation may refuse.
bool within_kernel(const Node& node, const IntList& pads) {
  const auto* a = node.as<AvgPoolAttrs>();
  if (a == nullptr) return true;
  const int axes = a->kernel.size();
  for (int i = 0; i < pads.size(); ++i)
    if (pads[i] >= a->kernel[i % axes]) return false;
  return true;
}

}  // namespace

int fuse_pad(Graph& graph) {
  Editor e(graph);
  return e.sweep([&](int n) {
    Node& node = e.node(n);
    if (node.inputs.empty()) return;
    const int p = e.made_by<PadAttrs>(node.inputs[0]);
    if (p < 0 || pads_of(node) == nullptr || !pads_zeros(e, e.node(p))) return;
    const IntList& pad = e.node(p).as<PadAttrs>()->pads;
    const ValueId x = e.node(p).inputs[0];
    const auto rank = static_cast<int>(e.value(x).dims.size());
    if (!spatial_only(pad, rank) || !e.value(x).bounded_dims.empty()) return;
    OpAttrs attrs = node.attrs;
    Node changed{attrs, {}, {}, {}, {}, {}};
    IntList& pads = *pads_of(changed);
    const int axes = rank - 2;
    if (pads.size() != 2 * axes) return;
    for (int i = 0; i < axes; ++i) pads[i] += pad[i + 1], pads[axes + i] += pad[rank + i + 1];
    if (!within_kernel(changed, pads)) return;
    if (auto* average = changed.as<AvgPoolAttrs>()) average->count_include_pad = 1;
    // The operation must still give what it gave (a kernel may not take pads of this size).
    std::vector<ValueFact> facts, out;
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = x;
    for (const ValueId id : inputs)
      facts.push_back(id < 0 ? ValueFact{} : ValueFact{e.value(id).dtype, e.value(id).dims});
    if (!infer_outputs(changed.attrs, facts, 1, {true}, &out).ok() ||
        out[0].dims != e.value(node.outputs[0]).dims)
      return;
    e.replace(n, changed.attrs, inputs);
  });
}

}  // namespace sinter::convert
