// The first entry is written as an ONNX model, and no plan is made.
#include <algorithm>
#include <filesystem>

#include "converter/export/onnx_export.h"
#include "converter/ir/recipe.h"
#include "converter/stages/conversion.h"

namespace sinter::convert {
namespace {

constexpr int kOpsetOfBlocks = 21;  // QuantizeLinear and DequantizeLinear of 4 and 16 bits, and in blocks

// Whether QuantizeLinear and DequantizeLinear take these integers since opset 21 only.
bool is_of_opset_21(DType type) {
  return is_sub_byte(type) || type == DType::kInt16 || type == DType::kUint16;
}

// Whether a constant is stored as integers that DequantizeLinear takes since opset 21 only.
bool has_new_form(const Constant& constant) {
  const auto& recipe = constant.recipe();
  const auto* attrs = recipe ? std::get_if<DequantizeAttrs>(&recipe->attrs) : nullptr;
  return attrs != nullptr && (attrs->block_size > 0 || is_of_opset_21(recipe->inputs[0]->dtype()));
}

bool needs_blocks(const Graph& graph, const Node& node) {
  if (node.as<LowBitFullyConnectedAttrs>() != nullptr) return true;
  if ((node.as<QuantizeAttrs>() || node.as<DequantizeAttrs>()) &&
      (is_of_opset_21(graph.value(node.outputs[0]).dtype) ||
       is_of_opset_21(graph.value(node.inputs[0]).dtype)))
    return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return graph.is_constant(id) && has_new_form(*graph.value(id).constant);
  });
}

bool needs_blocks(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return needs_blocks(graph, node) || std::any_of(node.bodies.begin(), node.bodies.end(),
                                                    [](const auto& body) { return needs_blocks(*body); });
  });
}

}  // namespace

bool write_onnx(Conversion& c) {
  const OnnxOutput& how = *c.options.onnx;
  compact_values(c.graph());
  c.report.ledger = c.graph().ledger;
  c.graph().name = c.imported->graph.name;
  OnnxExport to;
  to.opset = how.opset != 0 ? how.opset : needs_blocks(c.graph()) ? kOpsetOfBlocks : kUsualOpset;
  to.microsoft = how.microsoft, to.external_data = how.external_data;
  to.producer = "sinter quantize";
  keep_texts(*c.imported, &to);
  const std::optional<WrittenOnnx> written = export_onnx(c.graph(), c.out, to, c.diagnostics);
  if (!written) return false;
  OnnxFileReport& file = c.report.onnx.emplace();
  file.opset = to.opset, file.nodes = written->nodes;
  std::error_code ignored;
  file.bytes = std::filesystem::file_size(c.out, ignored);
  if (written->external_data)
    file.data_bytes = std::filesystem::file_size(external_data_path(c.out), ignored);
  return true;
}

}  // namespace sinter::convert
