#include "converter/import/caches/cache_flow.h"

#include <algorithm>
#include <cmath>

#include "converter/import/onnx_operator.h"

namespace sinter::convert {
namespace {

using Reader = Dataflow::Reader;

// An operand of an operator that keeps rows from call to call, and the result that it becomes. `rows`: they
// are past keys or values, to which the operator joins new ones.
struct PastOperand {
  std::string_view op;
  size_t operand, result;
  bool rows = true;
};
constexpr PastOperand kPasts[] = {
    {"GroupQueryAttention", 3, 1},
    {"GroupQueryAttention", 4, 2},
    {"MultiHeadAttention", 6, 1},
    {"MultiHeadAttention", 7, 2},
    {"Attention", 4, 1},
    {"Attention", 5, 2},
    {"DecoderMaskedMultiHeadAttention", 5, 1},
    {"DecoderMaskedMultiHeadAttention", 6, 2},
    {"LinearAttention", 3, 1, false},
    {"CausalConvWithState", 3, 1, false},
    {"VarlenCausalConvWithState", 4, 1, false},
    {"GatedDeltaNet", 6, 1, false},
    {"RNN", 5, 1, false},
    {"GRU", 5, 1, false},
    {"LSTM", 5, 1, false},
    {"LSTM", 6, 2, false},
};

// An operand of an attention operator that masks its scores or counts its keys, or else has positions.
struct MaskOperand {
  std::string_view op;
  size_t operand;
  bool positions = false;
};
constexpr MaskOperand kMasks[] = {
    {"GroupQueryAttention", 5},
    {"GroupQueryAttention", 6},
    {"GroupQueryAttention", 10},
    {"MultiHeadAttention", 4},
    {"MultiHeadAttention", 5},
    {"Attention", 3},
    {"Attention", 5},
    {"Attention", 6},
    {"DecoderMaskedSelfAttention", 3},
    {"DecoderMaskedMultiHeadAttention", 3},
    {"DecoderMaskedMultiHeadAttention", 4},
    {"GroupQueryAttention", 9, true},
    {"RotaryEmbedding", 1, true},
    {"RotaryEmbedding", 3, true},
    {"MRotaryEmbedding", 1, true},
};

bool has_part(const std::string& op, std::string_view part) { return op.find(part) != std::string::npos; }

bool joins_rows(const ImportedNode& node) {
  const ImportedAttribute* axis = node.find("axis");
  return node.op_type == "Concat" && axis != nullptr && (axis->i == 2 || axis->i == -2);
}

// How a result of the node's that is carried so becomes one of its operands.
Carry carried_through(const ImportedNode& node, size_t operand, size_t result, Carry carry) {
  const std::string& op = node.op_type;
  const bool first = operand == 0, whole = carry == Carry::kPassed;
  if (op == "Identity" || op == "Transpose" || op == "Cast" || op == "CastLike")
    return first ? carry : Carry::kNone;
  if (first && joins_rows(node)) return whole ? Carry::kJoined : Carry::kComputed;
  if (first && has_part(op, "Scatter"))
    return whole || carry == Carry::kWritten ? Carry::kWritten : Carry::kComputed;
  for (const PastOperand& past : kPasts)
    if (past.op == op && past.operand == operand && past.result == result)
      return whole && past.rows ? Carry::kJoined : Carry::kComputed;
  const OnnxOperator* known = find_operator(node.domain, op);
  // An operator of the application may do anything with its operands.
  if (known == nullptr || (op == "Where" && operand > 0) || (op == "Pad" && first)) return Carry::kComputed;
  return known->has(kLinear) && operand_word(known->operand_rules(), operand) != 'i' ? Carry::kComputed
                                                                                     : Carry::kNone;
}

bool is_softmax(const ImportedNode& node) { return has_part(node.op_type, "Softmax"); }

bool is_product(const ImportedNode& node) {
  const OnnxOperator* known = find_operator(node.domain, node.op_type);
  return has_part(node.op_type, "MatMul") || has_part(node.op_type, "Gemm") || node.op_type == "Einsum" ||
         (known != nullptr && known->has(kSumsProducts));
}

bool is_index(const Reader& reader) {
  const OnnxOperator* known = find_operator(reader.node->domain, reader.node->op_type);
  return known != nullptr && operand_word(known->operand_rules(), reader.operand) == 'i';
}

// Follows the elements of values up to products, norms, indices and the readers for which `see` is true.
// Returns the results of the products.
template <class See>
std::vector<std::string> follow_elements(const Dataflow& flow, const std::vector<std::string>& values,
                                         const See& see) {
  std::vector<std::string> products;
  for (const std::string& value : values)
    flow.follow(value, [&](const Reader& reader) {
      const ImportedNode& node = *reader.node;
      if (see(reader) || is_index(reader) || has_part(node.op_type, "Normalization") ||
          node.op_type == "Shape" || node.op_type == "Size")
        return false;
      if (!is_product(node)) return true;
      products.insert(products.end(), node.outputs.begin(), node.outputs.end());
      return false;
    });
  return products;
}

// A table of cosines, beside sines or alone: its first row, at position 0, has nothing but the largest number
// and zeros.
bool has_cosines(const ConstantPtr& table) {
  if (!table || !is_float(table->dtype()) || table->dims().size() != 2 || table->size() == 0) return false;
  const LoadedBytes loaded = table->load();
  const Dims columns{table->dims()[1]};
  const std::vector<double> first = Constant::mapped(table->dtype(), columns, loaded.owner,
                                                     loaded.bytes.first(dense_bytes(table->dtype(), columns)))
                                        ->as_doubles();
  const double most = *std::max_element(first.begin(), first.end());
  if (!(most > 0) || std::any_of(first.begin(), first.end(), [&](double x) { return x != 0 && x != most; }))
    return false;
  const std::vector<double> all = table->as_doubles();
  return std::all_of(all.begin(), all.end(), [&](double x) { return std::abs(x) <= most; });
}

const ImportedGraph* branch(const ImportedNode& node, const char* name) {
  const ImportedAttribute* a = node.find(name);
  return a != nullptr && !a->graphs.empty() ? a->graphs[0].get() : nullptr;
}

}  // namespace

std::map<std::string, Carry> carried_by(const Dataflow& flow, const std::string& output) {
  std::map<std::string, Carry> strongest;
  std::set<std::pair<std::string, Carry>> seen;
  std::vector<std::pair<std::string, Carry>> open{{output, Carry::kPassed}};
  while (!open.empty()) {
    const auto [name, carry] = open.back();
    open.pop_back();
    if (name.empty() || carry == Carry::kNone || !seen.insert({name, carry}).second) continue;
    strongest[name] = std::max(strongest[name], carry);
    for (const std::string& from : flow.comes_from(name)) open.emplace_back(from, carry);
    for (const ImportedNode* node : flow.producers(name)) {
      const auto at = std::find(node->outputs.begin(), node->outputs.end(), name);
      const auto result = static_cast<size_t>(at - node->outputs.begin());
      for (size_t i = 0; i < node->inputs.size(); ++i)
        open.emplace_back(node->inputs[i], carried_through(*node, i, result, carry));
    }
  }
  return strongest;
}

Scores scores_of_cache(const Dataflow& flow, const std::string& cache) {
  // Keys meet queries in the first product, or in the second one where they are computed from the cache.
  constexpr int kMostProducts = 2;
  Scores found;
  std::vector<std::string> values{cache};
  for (int products = 0; products <= kMostProducts; ++products)
    values = follow_elements(flow, values, [&](const Reader& reader) {
      const bool ends = is_softmax(*reader.node) || has_part(reader.node->op_type, "Attention");
      if (ends) found.insert(reader.node);
      return ends;
    });
  return found;
}

InputUses uses_of(const Dataflow& flow, const ImportedGraph& graph, const std::string& input) {
  InputUses uses;
  const std::set<std::string> reached = flow.follow(input, [](const Reader& reader) {
    return reader.node->op_type != "Shape" && reader.node->op_type != "Size";
  });
  uses.any = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                         [&](const ImportedValueInfo& output) { return reached.count(output.name) != 0; });
  const auto sees_angle = [&](const Reader& reader) {
    const bool angle = reader.node->op_type == "Cos" || reader.node->op_type == "Sin";
    uses.angles |= angle;
    return angle;
  };
  const std::vector<std::string> products = follow_elements(flow, {input}, [&](const Reader& reader) {
    const ImportedNode& node = *reader.node;
    const std::string& op = node.op_type;
    for (const MaskOperand& mask : kMasks) {
      if (mask.op != op || mask.operand != reader.operand) continue;
      uses.angles |= mask.positions;
      if (!mask.positions) uses.masked.insert(&node);
      return true;
    }
    if (is_softmax(node)) return uses.masked.insert(&node), true;
    const bool chooses = has_part(op, "Gather") || has_part(op, "Scatter") || has_part(op, "Embed");
    if (is_index(reader) && chooses) {
      uses.index = true;
      uses.angles |= op == "Gather" && has_cosines(flow.constant(node.inputs[0]));
    }
    return sees_angle(reader);
  });
  // Positions times the speeds of a rotation may be a product of matrices.
  follow_elements(flow, products, sees_angle);
  return uses;
}

std::optional<CacheSwitch> cache_switch(const ImportedGraph& graph, const std::vector<std::string>& caches) {
  for (const ImportedNode& node : graph.nodes) {
    const ImportedGraph *then = branch(node, "then_branch"), *otherwise = branch(node, "else_branch");
    if (node.op_type != "If" || node.inputs.empty() || then == nullptr || otherwise == nullptr) continue;
    const bool given = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                   [&](const ImportedValueInfo& i) { return i.name == node.inputs[0]; });
    const std::set<std::string> a = names_read(*then), b = names_read(*otherwise);
    const auto all = [&](const std::set<std::string>& names, size_t wanted) {
      return std::all_of(caches.begin(), caches.end(),
                         [&](const std::string& cache) { return names.count(cache) == wanted; });
    };
    if (!given) continue;
    if (all(a, 1) && all(b, 0)) return CacheSwitch{node.inputs[0], true};
    if (all(a, 0) && all(b, 1)) return CacheSwitch{node.inputs[0], false};
  }
  return std::nullopt;
}

}  // namespace sinter::convert
