// Before an operator is lowered its operands' types are settled (converter/types/settle.h): here the facts
// are gathered from the graph, and the decisions are applied and recorded in the ledger.
#include <algorithm>
#include <set>
#include <string_view>

#include "converter/import/lower.h"
#include "converter/import/result_readers.h"
#include "converter/ir/integer_range.h"
#include "converter/ir/op_traits.h"
#include "converter/types/representable.h"

namespace sinter::convert {
namespace {

constexpr int kDepth = 12;
constexpr int64_t kExactInFloat32 = int64_t{1} << 24;
// Sums of at least this many products are taken to be no more precise than float32 operands make them.
constexpr int64_t kLongSum = 16;

const Node* producer_of(const Graph& graph, ValueId id) {
  for (size_t i = graph.nodes.size(); i-- > 0;)
    for (const ValueId out : graph.nodes[i].outputs)
      if (out == id) return &graph.nodes[i];
  return nullptr;
}

// Everything that the value's elements come from satisfies `source`; what only moves data is passed through.
template <class Source>
bool comes_from(const Graph& graph, ValueId id, int depth, const Source& source) {
  if (id < 0 || depth == 0) return false;
  const Value& value = graph.value(id);
  const Node* node = value.constant ? nullptr : producer_of(graph, id);
  if (source(value, node)) return true;
  if (node == nullptr) return false;
  const size_t operands = moves_one(node->attrs)                         ? 1
                          : elements_of(node->op()) == Elements::kJoined ? node->inputs.size()
                                                                         : 0;
  if (operands == 0) return false;
  for (size_t i = 0; i < operands; ++i)
    if (!comes_from(graph, node->inputs[i], depth - 1, source)) return false;
  return true;
}

// An integer proven to be within 2^24.
bool exact_in_float(const Graph& graph, ValueId id) {
  return comes_from(graph, id, kDepth, [&](const Value& v, const Node* node) {
    if (v.constant) return survives(*v.constant, DType::kFloat32, true);
    if (bit_width(v.dtype) <= 16) return true;
    if (node == nullptr) return false;
    if (const auto* cast = node->as<CastAttrs>(); cast != nullptr) {
      const DType from = graph.value(node->inputs[0]).dtype;
      return from == DType::kBool || (is_integer(from) && bit_width(from) <= 16);
    }
    if (const auto* clamp = node->as<ClampAttrs>())
      return clamp->min >= -kExactInFloat32 && clamp->max <= kExactInFloat32;
    // TopK gives the elements of integers, too.
    const bool positions = elements_of(node->op()) == Elements::kPositions ||
                           (node->as<TopKAttrs>() != nullptr && is_float(graph.value(node->inputs[0]).dtype));
    if (positions)
      return std::all_of(graph.value(node->inputs[0]).dims.begin(), graph.value(node->inputs[0]).dims.end(),
                         [](int64_t d) { return d <= kExactInFloat32; });
    return false;
  });
}

// A floating-point value of modest size whose producer is not more sensitive than float32: nothing is lost
// when it is rounded to float32.
bool bounded(const Graph& graph, ValueId id) {
  return comes_from(graph, id, kDepth, [&](const Value& v, const Node* node) {
    if (v.constant) return survives(*v.constant, DType::kFloat32, false);
    if (node == nullptr) return false;
    const Elements elements = elements_of(node->op());
    if (elements == Elements::kWithinOne || elements == Elements::kNormalized) return true;
    if (const auto* trig = node->as<TrigAttrs>()) {
      const auto fn = static_cast<TrigFn>(trig->fn);
      return fn == TrigFn::kSin || fn == TrigFn::kCos || fn == TrigFn::kAtan || fn == TrigFn::kAsin ||
             fn == TrigFn::kAcos;
    }
    // A cast loses nothing from float32 or narrower, or from a small integer.
    const DType from = node->inputs.empty() ? DType::kNone : graph.value(node->inputs[0]).dtype;
    return node->as<CastAttrs>() != nullptr && from != DType::kFloat64 &&
           (is_float(from) || exact_in_float(graph, node->inputs[0]));
  });
}

// Do sums and products of these values, or the values themselves, end in a sine or a cosine?
bool feeds_angle(const ImportedGraph& graph, const std::vector<std::string>& outputs) {
  std::set<std::string> reached(outputs.begin(), outputs.end());
  // Nodes are in topological order.
  for (const ImportedNode& node : graph.nodes) {
    if (!node.domain.empty() ||
        std::none_of(node.inputs.begin(), node.inputs.end(),
                     [&](const std::string& name) { return !name.empty() && reached.count(name) != 0; }))
      continue;
    if (node.op_type == "Sin" || node.op_type == "Cos") return true;
    const ImportedAttribute* to = node.op_type == "Cast" ? node.find("to") : nullptr;
    const DType cast = to != nullptr ? dtype_from_onnx(to->i) : DType::kNone;
    const OnnxOperator* op = find_operator(node.domain, node.op_type);
    if ((op != nullptr && op->has(kLinear)) || is_wide_float(cast))
      reached.insert(node.outputs.begin(), node.outputs.end());
  }
  return false;
}

// The type of a Constant node, which may come after the node that reads it.
DType constant_type(const ImportedGraph& model, const std::string& name) {
  for (const ImportedNode& node : model.nodes) {
    if (node.op_type != "Constant" || node.outputs.empty() || node.outputs[0] != name) continue;
    for (const ImportedAttribute& a : node.attributes) {
      if (a.name == "value_float" || a.name == "value_floats") return DType::kFloat32;
      if (!a.tensors.empty() && a.tensors[0].data) return a.tensors[0].data->dtype();
    }
  }
  return DType::kNone;
}

}  // namespace

// Bounds of a Clip beyond everything that an integer type holds, in a type that it does not meet without loss
// (an infinity, -1 beside uint8), bound nothing.
void NodeLowering::drop_needless_bounds() {
  if (node_.op_type != "Clip" || inputs_.empty()) return;
  const auto range = range_of_type(dtype(inputs_[0]));
  if (!range || dtype(inputs_[0]) == DType::kBool) return;
  for (size_t i = 1; i < inputs_.size() && i <= 2; ++i) {
    const ConstantPtr c = constant(inputs_[i]);
    if (!c || c->size() != 1 || c->dtype() == dtype(inputs_[0])) continue;
    const double v = c->as_doubles()[0];
    const bool needless =
        i == 1 ? v <= static_cast<double>(range->low) : v >= static_cast<double>(range->high);
    if (!needless) continue;
    record(node_.inputs[i], c->dtype(), c->dtype(), TypeRule::kInputTable,
           fmt::format("no {} is beyond this bound", dtype_name(dtype(inputs_[0]))), TypeEffect::kKept);
    inputs_[i] = kAbsent;
  }
}

std::vector<OperandFact> NodeLowering::facts_of(const OperandRules& rules, const std::vector<ValueId>& values,
                                                const std::vector<std::string>& names, std::string_view what,
                                                bool long_sum) {
  const Graph& graph = parent_.graph();
  bool mixed = false;
  std::vector<OperandFact> facts(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    facts[i].dtype = dtype(values[i]);
    facts[i].constant = constant(values[i]);
    facts[i].name = fmt::format("{} {} ('{}')", what, i, names[i]);
    mixed |= facts[i].dtype != facts[0].dtype;
  }
  // The rest is expensive to find out, and nothing asks for it of operands that have one type.
  for (size_t i = 0; i < values.size(); ++i) {
    const char word = operand_word(rules, i);
    if (word == 'b' && is_float(facts[i].dtype) && !facts[i].constant)
      facts[i].whole = is_whole(graph, values[i]);
    if (facts[i].constant || !mixed || word == 'b' || word == 'i' || word == '*') continue;
    if (is_integer(facts[i].dtype)) {
      facts[i].exact_in_float = exact_in_float(graph, values[i]);
      facts[i].range = integer_range(graph, values[i]);
    }
    if (facts[i].dtype == DType::kFloat64 && !parent_.options().keep_float64 &&
        parent_.options().keep.count(names[i]) == 0) {
      facts[i].bounded = bounded(graph, values[i]);
      facts[i].long_sum = long_sum;
    }
  }
  return facts;
}

ResultFact NodeLowering::result_fact(const OperandRules& rules, const std::vector<OperandFact>& facts) {
  ResultFact result;
  if (facts.empty() || node_.outputs.empty() ||
      rules.operands.find_first_of("NFIA") == std::string_view::npos)
    return result;
  const auto any = [&](auto of) { return std::any_of(facts.begin(), facts.end(), of); };
  const bool mixed = any([&](const OperandFact& f) { return f.dtype != facts[0].dtype; });
  const auto is_truth = [](const OperandFact& f) { return f.dtype == DType::kBool; };
  if (counts_truths(rules) && std::all_of(facts.begin(), facts.end(), is_truth))
    result.truth = read_as_truth(parent_.source(), node_.outputs[0]);
  const OnnxOperator* op = find_operator(node_.domain, node_.op_type);
  if (any(is_truth) && any([](const OperandFact& f) { return is_float(f.dtype); }) && op != nullptr &&
      !op->has(kOwnType))
    result.index = index_reader(parent_.model().graph, parent_.source(), node_.outputs[0]);
  result.angle = mixed && any([](const OperandFact& f) { return f.dtype == DType::kFloat64; }) &&
                 feeds_angle(parent_.source(), node_.outputs);
  const bool power = rules.operands.find('e') != std::string_view::npos;
  if ((mixed || rules.grows) && any([](const OperandFact& f) { return is_integer(f.dtype); }))
    for (const ImportedValueInfo& output : parent_.source().outputs)
      if (output.name == node_.outputs[0]) result.declared = output.dtype;
  // Only sums of few bits, powers, means, roots and logarithms depend on it.
  const bool few =
      mixed && any([](const OperandFact& f) { return is_integer(f.dtype) && bit_width(f.dtype) <= 16; });
  result.fractions = (few || ((power || rules.fractions) && !is_float(facts[0].dtype))) && wants_fractions();
  return result;
}

bool NodeLowering::apply(const Settlement& settled, const std::vector<OperandFact>& facts,
                         const std::vector<std::string>& names, std::vector<ValueId>* values) {
  if (!settled.refusal.empty()) return refuse_text(settled.refusal, settled.advice);
  if (!settled.warning.empty()) warn_text(settled.warning, settled.advice);
  std::vector<TypeRequest> requests;
  for (const OperandFact& f : facts)
    if (f.dtype != DType::kNone) requests.push_back({f.name, f.dtype, f.constant != nullptr});
  for (size_t i = 0; i < values->size(); ++i) {
    const OperandSettlement& s = settled.operands[i];
    if (s.type == DType::kNone) continue;
    const bool retyped = facts[i].constant != nullptr;
    (*values)[i] = emit(CastAttrs{static_cast<int64_t>(s.type), 1}, {(*values)[i]});
    if (refused_) return false;
    record(names[i], facts[i].dtype, s.type, s.rule, s.reason,
           retyped ? TypeEffect::kRetyped : TypeEffect::kCast, requests);
    if (!s.advice.empty()) warn_text(s.reason, s.advice);
  }
  return true;
}

bool NodeLowering::settle_operands() {
  const OnnxOperator* op = find_operator(node_.domain, node_.op_type);
  if (op == nullptr || op->operands.empty()) return true;
  const OperandRules rules = op->operand_rules();
  drop_needless_bounds();
  const bool long_sum = rules.sums && (node_.op_type != "MatMul" && node_.op_type != "Gemm"
                                           ? true
                                           : rank(inputs_.empty() ? kAbsent : inputs_[0]) > 0 &&
                                                 dims(inputs_[0]).back() >= kLongSum);
  const std::vector<OperandFact> facts = facts_of(rules, inputs_, node_.inputs, "operand", long_sum);
  const Settlement settled = settle(rules, facts, result_fact(rules, facts));
  inner_ = settled.inner, result_ = settled.result, settled_ = settled.operands;
  if (!apply(settled, facts, node_.inputs, &inputs_)) return false;
  // Rule store.scale.
  for (size_t i = 0; i < inputs_.size() && rules.sums; ++i)
    if (facts[i].constant && is_float(settled.operands[i].type) && !is_float(facts[i].dtype) &&
        bit_width(facts[i].dtype) <= 8 && facts[i].constant->dims().size() >= 2)
      warn_text(
          fmt::format("weights '{}' are {} without a scale and are used as plain integers; a "
                      "DequantizeLinear seems to be missing",
                      node_.inputs[i], dtype_name(facts[i].dtype)));
  return true;
}

bool NodeLowering::settle_tensors(std::vector<ValueId>* tensors) {
  std::vector<std::string> names;
  for (const ValueId v : *tensors) names.push_back(v < 0 ? std::string() : parent_.graph().value(v).name);
  const OperandRules rules{node_.op_type, "A+"};
  const std::vector<OperandFact> facts = facts_of(rules, *tensors, names, "tensor", false);
  return apply(settle(rules, facts), facts, names, tensors);
}

// Numbers keep their type on the way through arithmetic and what moves data: only a Cast ends the search.
bool NodeLowering::read_as_fractions(const std::string& name, std::set<std::string>& seen) {
  if (name.empty() || !seen.insert(name).second) return false;
  const ImportedGraph& source = parent_.source();
  for (const ImportedValueInfo& output : source.outputs)
    if (output.name == name) return is_float(output.dtype);
  bool found = false;
  each_reader(source, name, [&](const ImportedNode& reader, size_t operand) {
    const OnnxOperator* op = found ? nullptr : find_operator(reader.domain, reader.op_type);
    if (op == nullptr || op->operands.empty()) {
      if (op != nullptr && reader.op_type == "Identity") found = read_as_fractions(reader.outputs[0], seen);
      return;
    }
    const OperandRules rules = op->operand_rules();
    const char word = operand_word(rules, operand);
    if (word == 'F') found = true;
    if (word != 'N' && word != 'A' && !(word == '*' && operand == 0)) return;
    for (size_t i = 0; i < reader.inputs.size(); ++i)
      if (i != operand && operand_word(rules, i) == word && word != '*')
        found |= is_float(dtype(parent_.lookup(reader.inputs[i]))) ||
                 is_float(constant_type(source, reader.inputs[i]));
    if (op->has(kOwnType)) return;
    for (const std::string& out : reader.outputs) found = found || read_as_fractions(out, seen);
  });
  return found;
}

bool NodeLowering::wants_fractions() {
  std::set<std::string> seen;
  return !node_.outputs.empty() && read_as_fractions(node_.outputs[0], seen);
}

}  // namespace sinter::convert
