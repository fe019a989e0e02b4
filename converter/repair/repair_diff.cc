#include "converter/repair/repair_diff.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/diagnostics/printable.h"
#include "converter/repair/type_walk.h"

namespace sinter::convert {
namespace {

std::string node_text(const ImportedNode& n, const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
  return printable(
      fmt::format("{} = {}({})  # {}", fmt::join(outputs, ", "), op, fmt::join(inputs, ", "), n.name));
}

std::string cast_text(const NewCast& cast) {
  return printable(
      fmt::format("{} = Cast({}, to={})  # {}", cast.output, cast.input, onnx_type_name(cast.to), cast.name));
}

std::string literal_text(const ConstantPtr& data) {
  if (!data) return "no data";
  std::string text = to_string(data->dtype(), data->dims());
  if (data->size() == 1) text += fmt::format(" = {}", data->as_doubles()[0]);
  return text;
}

class DiffWriter {
 public:
  explicit DiffWriter(const RootEdits& edits) : edits_(edits) {}

  void graph(const ImportedGraph& g, const std::string& key, const std::string& where) {
    const auto at = edits_.graphs.find(key);
    const GraphEdits none, &e = at == edits_.graphs.end() ? none : at->second;
    begin(where);
    for (const ImportedTensor& t : g.initializers) {
      const auto retyped = e.retyped.find(t.name);
      const auto clones = e.clones.find(t.name);
      if (retyped != e.retyped.end()) {
        line('-', fmt::format("initializer {} {}", t.name, literal_text(t.data)));
        line('+', fmt::format("initializer {} {}", t.name, literal_text(retyped->second.data)));
      }
      if (clones != e.clones.end())
        for (const NewTensor& made : clones->second)
          line('+', fmt::format("initializer {} {}", made.name, literal_text(made.data)));
    }
    const auto declared = [&](const char* what, const ImportedValueInfo& v, OnnxType type,
                              const std::string& name) {
      if (type == 0 && name == v.name) return;
      line('-', fmt::format("{} {} {}", what, v.name, onnx_type_name(v.onnx_type)));
      line('+', fmt::format("{} {} {}", what, name, onnx_type_name(type == 0 ? v.onnx_type : type)));
    };
    const auto type_in = [](const std::map<std::string, OnnxType>& types, const std::string& name) {
      const auto found = types.find(name);
      return found == types.end() ? 0 : found->second;
    };
    for (const auto* list : {&g.inputs, &g.initialized_inputs})
      for (const ImportedValueInfo& v : *list) declared("input", v, type_in(e.inputs, v.name), v.name);
    for (size_t i = 0; i < g.outputs.size(); ++i) {
      const auto type = e.outputs.find(i);
      const auto name = e.output_names.find(i);
      declared("output", g.outputs[i], type == e.outputs.end() ? 0 : type->second,
               name == e.output_names.end() ? g.outputs[i].name : name->second);
    }
    for (const ImportedValueInfo& v : g.value_info) declared("value", v, type_in(e.infos, v.name), v.name);
    if (!e.order.empty()) line('+', "the nodes in another order");
    for (const NewCast& cast : e.first) line('+', cast_text(cast));
    nodes(g.nodes);
  }

  void function(const ImportedFunction& f, const std::string& name) {
    begin(fmt::format("function {}", name));
    const auto at = edits_.graphs.find("");
    if (at != edits_.graphs.end())
      for (const NewCast& cast : at->second.first) line('+', cast_text(cast));
    nodes(f.nodes);
  }

  std::string take() { return std::move(text_); }

 private:
  void begin(const std::string& where) { heading_ = where; }

  void line(char sign, const std::string& content) {
    if (!heading_.empty()) text_ += "@ " + printable(heading_) + "\n";
    heading_.clear();
    text_ += fmt::format("{} {}\n", sign, printable(content));
  }

  void nodes(const std::vector<ImportedNode>& all) {
    const std::string where = heading_;
    for (const ImportedNode& n : all) {
      const size_t place = place_number(n);
      const auto at = edits_.nodes.find(place);
      if (at != edits_.nodes.end()) {
        const NodeEdits& e = at->second;
        std::vector<std::string> inputs = n.inputs, outputs = n.outputs;
        for (const auto& [i, name] : e.inputs) inputs[i] = name;
        for (const auto& [i, name] : e.outputs) outputs[i] = name;
        std::string op = qualified_op(n), before = op;
        if (!e.op_type.empty()) op = n.domain.empty() ? e.op_type : n.domain + ":" + e.op_type;
        if (e.value) op += fmt::format("[{}]", literal_text(e.value->data));
        if (!e.inputs.empty() || !e.outputs.empty() || op != before) {
          line('-', node_text(n, before, n.inputs, n.outputs));
          line('+', node_text(n, op, inputs, outputs));
        }
        for (const NewCast& cast : e.after) line('+', cast_text(cast));
      }
      size_t number = 0;
      for (const ImportedAttribute& a : n.attributes)
        for (const auto& body : a.graphs)
          graph(*body, body_key(place, number++), fmt::format("{} of node {}", a.name, n.name));
    }
    heading_.clear();
  }

  const RootEdits& edits_;
  std::string text_, heading_;
};

}  // namespace

std::string diff_text(const Repair& repair) {
  DiffWriter main(repair.edits.main);
  main.graph(repair.model.graph, "", "graph");
  std::string text = main.take();
  if (repair.edits.opset)
    text = fmt::format("@ model\n- opset {}\n+ opset {}\n", repair.model.opsets.at(""), *repair.edits.opset) +
           text;
  for (const auto& [number, variants] : repair.edits.functions)
    for (const ModelEdits::Function& variant : variants) {
      DiffWriter writer(variant.edits);
      writer.function(repair.model.functions[number], variant.name);
      text += writer.take();
    }
  return text;
}

}  // namespace sinter::convert
