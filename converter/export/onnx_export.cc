#include "converter/export/onnx_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "converter/export/model_file.h"
#include "converter/export/rows.h"
#include "converter/import/read/onnx.pb.h"

namespace sinter::convert {
namespace {

// The version of the file format that came with a version of ai.onnx.
int ir_version_of(int opset) {
  return opset >= 23 ? 11 : opset >= 21 ? 10 : opset >= 19 ? 9 : opset >= 15 ? 8 : 7;
}

// Refuses what only a session of Sinter keeps.
void check_ports(const Graph& graph, Diagnostics& diagnostics) {
  for (const GraphState& state : graph.states)
    diagnostics.refuse("", "",
                       fmt::format("'{}' is a state, which an ONNX model does not keep", state.input_name),
                       "leave out --state");
  for (const GraphLength& length : graph.lengths)
    diagnostics.refuse("", "", fmt::format("dimension '{}' has a range", length.name),
                       fmt::format("give it one size with --dim {}=N", length.name));
}

// Element types that came with later versions of ai.onnx.
void check_types(const ModelParts& parts, const Graph& graph, Diagnostics& diagnostics) {
  const int opset = parts.options().opset;
  const auto check = [&](DType type, const std::string& name) {
    const int needed = type == DType::kInt2 || type == DType::kUint2 ? 25
                       : type == DType::kFloat4E2M1 || type == DType::kFloat8E8M0
                           ? (type == DType::kFloat4E2M1 ? 23 : 24)
                       : is_sub_byte(type)        ? 21
                       : is_float8(type)          ? 19
                       : type == DType::kBFloat16 ? 16  // which Where, If and others take since
                                                  : 0;
    if (needed <= opset) return;
    diagnostics.refuse(name, "",
                       fmt::format("ONNX has the type {} from opset {} on", dtype_name(type), needed),
                       needed <= kNewestWrittenOpset ? fmt::format("give --opset {}", needed)
                                                     : "store these numbers in another type");
  };
  for (const Initializer& initializer : parts.initializers())
    check(initializer.data->dtype(), initializer.name);
  for (const Value& value : graph.values)
    if (!value.constant && value.dtype != DType::kNone) check(value.dtype, value.name);
}

// Removes nodes whose results nothing reads, from the last one on, and enters the names that are read.
void drop_unread_nodes(onnx_pb::GraphProto* graph, std::unordered_set<std::string>* read) {
  for (const auto& output : graph->output()) read->insert(output.name());
  std::vector<bool> keep(static_cast<size_t>(graph->node_size()), false);
  for (int i = graph->node_size() - 1; i >= 0; --i) {
    onnx_pb::NodeProto* node = graph->mutable_node(i);
    for (const std::string& y : node->output())
      if (read->count(y) != 0) keep[static_cast<size_t>(i)] = true;
    if (!keep[static_cast<size_t>(i)]) continue;
    read->insert(node->input().begin(), node->input().end());
    for (auto& attribute : *node->mutable_attribute())
      if (attribute.has_g()) drop_unread_nodes(attribute.mutable_g(), read);
  }
  int kept = 0;
  for (int i = 0; i < graph->node_size(); ++i)
    if (keep[static_cast<size_t>(i)]) graph->mutable_node()->SwapElements(kept++, i);
  graph->mutable_node()->DeleteSubrange(kept, graph->node_size() - kept);
  auto* infos = graph->mutable_value_info();
  infos->erase(std::remove_if(infos->begin(), infos->end(),
                              [&](const auto& info) { return read->count(info.name()) == 0; }),
               infos->end());
}

// Gives nodes names of their own, and lists the values that they read, in the order of reading.
void finish_nodes(ModelParts& parts, onnx_pb::GraphProto* graph, std::vector<std::string>* names) {
  // The last of several nodes with one name keeps it, because it gives the result that the model's node gave.
  for (int i = graph->node_size() - 1; i >= 0; --i)
    graph->mutable_node(i)->set_name(parts.unique_node(graph->node(i).name()));
  const auto& docs = parts.options().node_docs;
  for (auto& node : *graph->mutable_node()) {
    if (const auto doc = docs.find(node.name()); doc != docs.end()) node.set_doc_string(doc->second);
    names->insert(names->end(), node.input().begin(), node.input().end());
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) finish_nodes(parts, attribute.mutable_g(), names);
  }
  for (const auto& output : graph->output()) names->push_back(output.name());
}

void set_frame(const OnnxExport& options, bool microsoft, onnx_pb::ModelProto* model) {
  model->set_ir_version(ir_version_of(options.opset));
  if (!options.producer.empty()) model->set_producer_name(options.producer);
  if (!options.domain.empty()) model->set_domain(options.domain);
  if (!options.doc.empty()) model->set_doc_string(options.doc);
  if (options.model_version != 0) model->set_model_version(options.model_version);
  auto* opset = model->add_opset_import();
  opset->set_domain(""), opset->set_version(options.opset);
  if (microsoft) {
    opset = model->add_opset_import();
    opset->set_domain("com.microsoft"), opset->set_version(1);
  }
  for (const auto& [key, value] : options.metadata) {
    auto* entry = model->add_metadata_props();
    entry->set_key(key), entry->set_value(value);
  }
}

}  // namespace

void keep_texts(const ImportedModel& model, OnnxExport* options) {
  options->domain = model.domain, options->doc = model.doc, options->model_version = model.version;
  options->metadata = model.metadata, options->node_docs = model.node_docs;
}

std::optional<WrittenOnnx> export_onnx(const Graph& graph, const std::filesystem::path& out,
                                       const OnnxExport& options, Diagnostics& diagnostics) {
  check_ports(graph, diagnostics);
  ModelParts parts(options, diagnostics);
  onnx_pb::ModelProto model;
  onnx_pb::GraphProto* proto = model.mutable_graph();
  proto->set_name(graph.name.empty() ? "graph" : graph.name);
  std::vector<std::string> outputs;
  for (const ValueId id : graph.inputs) parts.reserve(graph.value(id).name);
  for (const ValueId id : graph.outputs) {
    parts.reserve(graph.value(id).name);
    outputs.push_back(graph.value(id).name);
  }
  Scope scope(parts, graph, proto);
  const auto port = [&](ValueId id, onnx_pb::ValueInfoProto* info) {
    info->set_name(graph.value(id).name);
    set_tensor_type(graph.value(id).dtype, graph.value(id).dims, info->mutable_type());
  };
  for (const ValueId id : graph.inputs) {
    port(id, proto->add_input());
    scope.enter(id, {graph.value(id).name, same_axes(graph.value(id).dims.size())});
  }
  for (const ValueId id : graph.outputs) port(id, proto->add_output());
  if (!scope.write_nodes()) return std::nullopt;
  scope.write_outputs(outputs);
  check_types(parts, graph, diagnostics);
  if (diagnostics.refused()) return std::nullopt;
  std::unordered_set<std::string> read;
  drop_unread_nodes(proto, &read);
  std::vector<std::string> in_order;
  finish_nodes(parts, proto, &in_order);
  parts.keep_initializers(in_order);
  set_frame(options, parts.uses_microsoft, &model);
  WrittenOnnx written;
  written.nodes = static_cast<size_t>(proto->node_size());
  written.external_data = write_model_file(out, model, parts.initializers(), options.external_data);
  return written;
}

}  // namespace sinter::convert
