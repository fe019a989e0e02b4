#include "converter/import/result_readers.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <set>

#include "converter/import/dataflow.h"
#include "converter/import/onnx_operator.h"

namespace sinter::convert {
namespace {

// Returns whether the operator's result has the elements of this operand, moved.
bool moves(const OnnxOperator& op, size_t operand) {
  const char word = operand_word(op.operand_rules(), operand);
  return op.has(kLinear) && word != 'i' && (op.operands.empty() || word == '*' || word == 'A');
}

std::string index_reader_here(const ImportedGraph& source, const std::string& value) {
  std::string found;
  Dataflow(source).follow(value, [&](const Dataflow::Reader& reader) {
    const ImportedNode& node = *reader.node;
    const OnnxOperator* op = found.empty() ? find_operator(node.domain, node.op_type) : nullptr;
    if (op == nullptr) return false;
    const char word = operand_word(op->operand_rules(), reader.operand);
    if (word == 'i') found = fmt::format("node '{}' ({})", node.name, node.op_type);
    return moves(*op, reader.operand) || (!op->has(kOwnType) && (word == 'A' || word == 'N'));
  });
  return found;
}

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

using Takes = std::function<bool(const ImportedNode&, size_t operand, char word)>;

// Does every reader take the value, or move its elements to readers that do? A result of the graph may only
// be declared as `leaves`, and is none where that is kNone.
bool all_take(const ImportedGraph& source, const std::string& value, const Takes& takes, DType leaves) {
  const Dataflow flow(source);
  bool good = true;
  const std::set<std::string> reached = flow.follow(value, [&](const Dataflow::Reader& reader) {
    const ImportedNode& node = *reader.node;
    const OnnxOperator* op = find_operator(node.domain, node.op_type);
    const bool takes_it =
        op != nullptr && takes(node, reader.operand, operand_word(op->operand_rules(), reader.operand));
    const bool passes = op != nullptr && !takes_it && moves(*op, reader.operand);
    good &= takes_it || passes;
    return passes && good;
  });
  for (const std::string& name : reached) good &= flow.becomes(name).empty();
  for (const ImportedValueInfo& output : source.outputs)
    if (reached.count(output.name) != 0) good &= leaves != DType::kNone && output.dtype == leaves;
  return good;
}

}  // namespace

std::string index_reader(const ImportedGraph& model, const ImportedGraph& source, const std::string& value) {
  std::string found = index_reader_here(source, value);
  const auto owner = found.empty() ? owner_of(model, source) : std::nullopt;
  for (size_t i = 0; owner && i < source.outputs.size() && found.empty(); ++i) {
    const size_t result = owner->node->op_type == "Loop" ? i - 1 : i;  // a Loop's condition is no result
    if (source.outputs[i].name == value && result < owner->node->outputs.size())
      found = index_reader(model, *owner->graph, owner->node->outputs[result]);
  }
  return found;
}

bool read_as_truth(const ImportedGraph& source, const std::string& value) {
  return all_take(
      source, value,
      [](const ImportedNode& reader, size_t operand, char word) {
        const bool condition = operand == (reader.op_type == "Loop" ? 1 : 0);
        if (condition && (reader.op_type == "If" || reader.op_type == "Loop")) return true;
        const ImportedAttribute* to = reader.op_type == "Cast" ? reader.find("to") : nullptr;
        return word == 'b' || (to != nullptr && dtype_from_onnx(to->i) == DType::kBool);
      },
      DType::kBool);
}

bool read_as_bits(const ImportedGraph& source, const std::string& value) {
  return all_take(
      source, value, [](const ImportedNode&, size_t, char word) { return word == 'I'; }, DType::kNone);
}

}  // namespace sinter::convert
