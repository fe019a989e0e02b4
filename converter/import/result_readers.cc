#include "converter/import/result_readers.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <set>

#include "converter/import/onnx_operator.h"

namespace sinter::convert {
namespace {

// Its result has operand i's elements, moved.
bool moves(const OnnxOperator& op, size_t operand) {
  const char word = operand_word(op.operand_rules(), operand);
  return op.has(kLinear) && word != 'i' && (op.operands.empty() || word == '*' || word == 'A');
}

class IndexReader {
 public:
  explicit IndexReader(const ImportedGraph& source) : source_(source) {}

  std::string of(const std::string& value) {
    if (value.empty() || !seen_.insert(value).second) return {};
    std::string found;
    each_reader(source_, value, [&](const ImportedNode& reader, size_t operand) {
      const OnnxOperator* op = found.empty() ? find_operator(reader.domain, reader.op_type) : nullptr;
      if (op == nullptr) return;
      const char word = operand_word(op->operand_rules(), operand);
      if (word == 'i') {
        found = fmt::format("node '{}' ({})", reader.name, reader.op_type);
      } else if (moves(*op, operand) || (!op->has(kOwnType) && (word == 'A' || word == 'N'))) {
        for (const std::string& out : reader.outputs)
          if (found.empty()) found = of(out);
      }
    });
    if (found.empty()) found = behind_bodies(source_, value);
    return found;
  }

 private:
  // What a body of an If or a Loop gives is a result of that node, and what a Loop carries a value of its
  // body.
  std::string behind_bodies(const ImportedGraph& graph, const std::string& value) {
    std::string found;
    for (const ImportedNode& node : graph.nodes) {
      const bool loop = node.op_type == "Loop";
      for (const ImportedAttribute& a : node.attributes)
        for (const auto& body : a.graphs) {
          for (size_t i = loop ? 1 : 0; i < body->outputs.size() && found.empty(); ++i) {
            const size_t result = loop ? i - 1 : i;
            if (body->outputs[i].name == value && result < node.outputs.size())
              found = of(node.outputs[result]);
          }
          for (size_t i = 2; loop && i < node.inputs.size() && i < body->inputs.size() && found.empty(); ++i)
            if (node.inputs[i] == value) found = of(body->inputs[i].name);
          if (found.empty()) found = behind_bodies(*body, value);
        }
    }
    return found;
  }

  const ImportedGraph& source_;
  std::set<std::string> seen_;
};

struct Owner {
  const ImportedGraph* graph;
  const ImportedNode* node;
};
// The node that has the body, and its graph.
std::optional<Owner> owner_of(const ImportedGraph& graph, const ImportedGraph& wanted) {
  for (const ImportedNode& node : graph.nodes)
    for (const ImportedAttribute& a : node.attributes)
      for (const auto& body : a.graphs) {
        if (body.get() == &wanted) return Owner{&graph, &node};
        if (const auto inner = owner_of(*body, wanted)) return inner;
      }
  return std::nullopt;
}

// Does a body of a node of the graph give the value as one of its results?
bool is_body_result(const ImportedGraph& graph, const std::string& value) {
  for (const ImportedNode& node : graph.nodes)
    for (const ImportedAttribute& a : node.attributes)
      for (const auto& body : a.graphs) {
        for (const ImportedValueInfo& output : body->outputs)
          if (output.name == value) return true;
        if (is_body_result(*body, value)) return true;
      }
  return false;
}

using Takes = std::function<bool(const ImportedNode&, size_t operand, char word)>;

// Does every reader take the value, or move its elements to readers that do? A result of the graph may only
// be declared as `leaves`, and is none where that is kNone.
bool all_take(const ImportedGraph& source, const std::string& value, const Takes& takes, DType leaves,
              std::set<std::string>* seen) {
  if (!seen->insert(value).second) return true;
  for (const ImportedValueInfo& output : source.outputs)
    if (output.name == value && (leaves == DType::kNone || output.dtype != leaves)) return false;
  bool good = true;
  each_reader(source, value, [&](const ImportedNode& reader, size_t operand) {
    const OnnxOperator* op = good ? find_operator(reader.domain, reader.op_type) : nullptr;
    if (op == nullptr) {
      good = false;
    } else if (!takes(reader, operand, operand_word(op->operand_rules(), operand))) {
      good = moves(*op, operand);
      for (const std::string& out : reader.outputs)
        good = good && (out.empty() || all_take(source, out, takes, leaves, seen));
    }
  });
  return good && !is_body_result(source, value);
}

}  // namespace

std::string index_reader(const ImportedGraph& model, const ImportedGraph& source, const std::string& value) {
  std::string found = IndexReader(source).of(value);
  const auto owner = found.empty() ? owner_of(model, source) : std::nullopt;
  for (size_t i = 0; owner && i < source.outputs.size() && found.empty(); ++i) {
    const size_t result = owner->node->op_type == "Loop" ? i - 1 : i;  // a Loop's condition is no result
    if (source.outputs[i].name == value && result < owner->node->outputs.size())
      found = index_reader(model, *owner->graph, owner->node->outputs[result]);
  }
  return found;
}

bool read_as_truth(const ImportedGraph& source, const std::string& value) {
  std::set<std::string> seen;
  return all_take(
      source, value,
      [](const ImportedNode& reader, size_t operand, char word) {
        const bool condition = operand == (reader.op_type == "Loop" ? 1 : 0);
        if (condition && (reader.op_type == "If" || reader.op_type == "Loop")) return true;
        const ImportedAttribute* to = reader.op_type == "Cast" ? reader.find("to") : nullptr;
        return word == 'b' || (to != nullptr && dtype_from_onnx(to->i) == DType::kBool);
      },
      DType::kBool, &seen);
}

bool read_as_bits(const ImportedGraph& source, const std::string& value) {
  std::set<std::string> seen;
  return all_take(
      source, value, [](const ImportedNode&, size_t, char word) { return word == 'I'; }, DType::kNone, &seen);
}

}  // namespace sinter::convert
