#include "converter/import/lower.h"

#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>

#include "converter/diagnostics/node_fates.h"
#include "converter/import/custom_node.h"
#include "converter/import/lengths/bounded.h"
#include "converter/import/read/reader.h"
#include "converter/import/refused_operators.h"
#include "converter/ir/dims.h"
#include "converter/ir/large_bytes.h"

namespace sinter::convert {

namespace {

// The limit of folding for one model, in bytes: for each operation that it may have, and for each byte of its
// own constants. A weight is computed in several steps, each of which may compute the ones before it again.
constexpr uint64_t kFoldedPerOperation = 4096, kComputedPerByte = 1024, kKeptPerByte = 16;

uint64_t own_constant_bytes(const ImportedGraph& graph) {
  uint64_t sum = 0;
  const auto add = [&](const ImportedTensor& t) { sum += t.data ? t.data->byte_size() : 0; };
  for (const ImportedTensor& t : graph.initializers) add(t);
  for (const ImportedNode& node : graph.nodes)
    for (const ImportedAttribute& a : node.attributes) {
      for (const ImportedTensor& t : a.tensors) add(t);
      for (const auto& body : a.graphs) sum += own_constant_bytes(*body);
    }
  return sum;
}

}  // namespace

GraphLowering::GraphLowering(Graph& graph, const ImportedModel& model, const LoweringOptions& options,
                             Diagnostics& diagnostics, GraphLowering* outer)
    : graph_(graph),
      builder_(graph),
      model_(model),
      options_(options),
      diagnostics_(diagnostics),
      outer_(outer),
      cost_(outer != nullptr ? outer->cost_ : own_cost_),
      fates_(outer != nullptr ? outer->fates_ : nullptr),
      types_(outer != nullptr ? outer->types_ : nullptr) {
  scopes_.emplace_back();
  if (outer != nullptr) return;
  const uint64_t own = own_constant_bytes(model.graph), rest = options.most_operations * kFoldedPerOperation;
  cost_.computed_before = computed_constant_bytes(), cost_.kept_before = kept_constant_bytes();
  cost_.most_computed = rest + kComputedPerByte * own, cost_.most_kept = rest + kKeptPerByte * own;
}

ValueId GraphLowering::lookup(const std::string& name) {
  if (name.empty()) return kAbsent;
  for (size_t s = scopes_.size(); s-- > 0;)
    if (const auto it = scopes_[s].find(name); it != scopes_[s].end()) return it->second;
  if (outer_ == nullptr) return kUnknown;  // the reader has refused names that nothing produces
  const ValueId outside = outer_->lookup(name);
  ValueId inside = outside;
  if (const ValueId stack = outer_->stack(outside); stack != kAbsent) {
    inside = add_stack(capture(stack, {}));
  } else if (const auto* items = outer_->sequence(outside)) {
    std::vector<ValueId> own;
    for (const ValueId item : *items) own.push_back(capture(item, {}));
    inside = add_sequence(std::move(own));
  } else if (outside < 0) {
    return outside;
  } else {
    inside = capture(outside, name);
  }
  scopes_.front()[name] = inside;
  return inside;
}

void GraphLowering::define(const std::string& name, ValueId value) {
  if (name.empty()) return;
  scopes_.back()[name] = value;
  if (value >= 0 && graph_.value(value).name.empty()) graph_.value(value).name = name;
}

void GraphLowering::lower_nodes(const ImportedGraph& source) {
  for (const ImportedTensor& tensor : source.initializers) {
    if (lookup_here(tensor.name)) continue;  // --const gave it
    if (!tensor.data) {
      // Only a model that uses it has a problem.
      define_unusable(tensor.name, onnx_type_name(tensor.onnx_type),
                      tensor.problem.empty() ? onnx_type_name(tensor.onnx_type) + " data is not supported"
                                             : tensor.problem);
      continue;
    }
    if (holds_nan(*tensor.data))
      diagnostics_.warn("", "",
                        fmt::format("initializer '{}' ({}) holds nan, which propagates to the results",
                                    tensor.name, to_string(tensor.data->dtype(), tensor.data->dims())));
    define(tensor.name, kept(tensor.name, graph_.add_constant(tensor.data, tensor.name)));
  }
  sources_.push_back(&source);
  done_.emplace_back();
  for (const ImportedNode& node : source.nodes)
    if (done_.back().count(&node) == 0) lower_node(node);
  done_.pop_back();
  sources_.pop_back();
}

void GraphLowering::lower_early(const ImportedNode& node) {
  if (done_.back().insert(&node).second) lower_node(node);
}

ValueId GraphLowering::add_sequence(std::vector<ValueId> items) {
  sequences_.push_back({std::move(items), kAbsent});
  return kUnknown - static_cast<ValueId>(sequences_.size());
}

const std::vector<ValueId>* GraphLowering::sequence(ValueId value) const {
  if (!is_sequence(value) || stack(value) != kAbsent) return nullptr;
  return &sequences_[static_cast<size_t>(kUnknown - 1 - value)].items;
}

ValueId GraphLowering::add_stack(ValueId stack) {
  if (stack < 0) return stack;
  sequences_.push_back({{}, stack});
  return kUnknown - static_cast<ValueId>(sequences_.size());
}

ValueId GraphLowering::stack(ValueId value) const {
  return is_sequence(value) ? sequences_[static_cast<size_t>(kUnknown - 1 - value)].stack : kAbsent;
}

void GraphLowering::refuse_sequence(const std::string& name, ValueId value) {
  if (is_sequence(value))
    diagnostics_.refuse("", "", fmt::format("result '{}' is a sequence; only tensors can be results", name),
                        "make its tensors separate outputs");
}

void GraphLowering::define_unusable(const std::string& name, std::string type, std::string why) {
  define(name, kUnknown);
  unusable_[name] = {std::move(type), std::move(why)};
}

const GraphLowering::Unusable* GraphLowering::unusable(const std::string& name) const {
  const auto it = unusable_.find(name);
  if (it != unusable_.end()) return &it->second;
  return outer_ != nullptr ? outer_->unusable(name) : nullptr;
}

bool GraphLowering::lookup_here(const std::string& name) const { return scopes_.back().count(name) != 0; }

ValueId GraphLowering::kept(const std::string& name, ValueId value) {
  const auto it = options_.keep.find(name);
  if (it == options_.keep.end() || value < 0 || graph_.value(value).dtype == it->second) return value;
  const DType before = graph_.value(value).dtype;
  std::vector<ValueId> cast;
  if (!builder_.emit(CastAttrs{static_cast<int64_t>(it->second), 1}, {value}, 1, &cast).ok()) {
    diagnostics_.refuse(
        name, "",
        fmt::format("--keep {}: {} cannot become {}", name, dtype_name(before), dtype_name(it->second)),
        "give a type that its values can be cast to");
    return kUnknown;
  }
  graph_.value(cast[0]).bounded_dims = graph_.value(value).bounded_dims;
  ledger().add({name, "", "", before, it->second, TypeRule::kKeep, "requested on the command line",
                TypeEffect::kCast});
  return cast[0];
}

namespace {

std::string unknown_operator_advice(std::string_view domain) {
  // Layouts for the machine at hand, which only onnxruntime's highest levels of optimization write.
  if (domain == "com.microsoft.nchwc" || domain == "com.ms.internal.nhwc")
    return "use the model from before onnxruntime optimized it, or save it at a lower level "
           "(ORT_ENABLE_EXTENDED or ORT_ENABLE_BASIC): this operator is specific to one machine";
  return "export the model with operators that docs/ops.md lists, or compute this one before or after it";
}

}  // namespace

bool NodeLowering::operands_fit(const OnnxOperator& rule) {
  for (size_t i = 0; i < rule.least_inputs(); ++i)
    if (i >= inputs_.size() || inputs_[i] == kAbsent)
      return refuse("needs {} input{}", rule.least_inputs(), rule.least_inputs() == 1 ? "" : "s");
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (is_sequence(inputs_[i]) && !rule.takes_sequence(i))
      return refuse("operand '{}' is a sequence, where {} takes tensors", node_.inputs[i], node_.op_type);
  const Graph& graph = parent_.graph();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    ValueId& v = inputs_[i];
    if (v < 0 || graph.value(v).bounded_dims.empty() || rule.takes_bounded(i)) continue;
    v = Bounded(*this).fixed(v);
    if (v < 0 || graph.value(v).bounded_dims.empty()) continue;
    const int axis = graph.value(v).bounded_dims[0].axis;
    return refuse_advising(parent_.lengths().fixing_advice(parent_.lengths().of_axis(v, axis)),
                           "dimension {} of operand '{}' is bounded (at most {}), which {} does not support",
                           axis, node_.inputs[i], dims(v)[static_cast<size_t>(axis)], node_.op_type);
  }
  return true;
}

bool NodeLowering::lower_by(const OnnxOperator& rule) {
  try {
    if (!settle_operands() || !rule.lower(*this) || refused_) return false;
  } catch (const std::length_error& e) {
    return refuse("{}", e.what());
  } catch (const std::out_of_range&) {  // of Dims
    return refuse_shapes("an operand has fewer dimensions than it needs");
  } catch (const std::bad_alloc&) {
    // This throws again where not even so much is left: that is the machine's fault and not the model's.
    ::operator delete(::operator new (size_t{64} << 20));
    return refuse_advising("convert it on a machine with more memory",
                           "its constants do not fit into memory");
  }
  for (size_t i = 0; i < node_.attributes.size(); ++i)
    if (!attr_read_[i])
      return refuse_advising("remove the attribute, or export the model with the opset that has it",
                             "attribute '{}' is not an attribute of {}", node_.attributes[i].name,
                             node_.op_type);
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!input_read_[i] && inputs_[i] != kAbsent)
      return refuse_advising("remove the operand, or export the model with the opset that has it",
                             "input {} ('{}') is not an input of {}", i, node_.inputs[i], node_.op_type);
  return true;
}

void GraphLowering::lower_node(const ImportedNode& given) {
  if (++cost_.operations > options_.most_operations || !cost_.refusal.empty()) {  // lower_model() refuses
    for (const std::string& name : given.outputs) define(name, kUnknown);
    return;
  }
  // Exporters and hands that patch models write operators under an older set: their first version is meant.
  const OnnxOperator* rule = find_operator(given.domain, given.op_type);
  const bool custom = rule == nullptr && (rule = find_custom(*this, given)) != nullptr;
  const int since = rule != nullptr ? rule->since : 1;
  const bool early = given.opset < since;
  std::optional<ImportedNode> raised;
  if (early) raised.emplace(given).opset = since;
  const ImportedNode& node = early ? *raised : given;
  NodeLowering lowering(*this, node);
  const bool unknown_operand =
      std::find(lowering.inputs_.begin(), lowering.inputs_.end(), kUnknown) != lowering.inputs_.end();
  builder_.set_origin({node.name, node.op_type});
  const size_t nodes_before = graph_.nodes.size();
  for (const std::string& name : node.inputs)
    if (const Unusable* problem = lookup(name) == kUnknown ? unusable(name) : nullptr)
      lowering.refuse_advising(type_advice(problem->type), "operand '{}': {}", name, problem->why);
  bool done = false;
  if (early && rule != nullptr)
    lowering.warn("{} was introduced with opset {}, but the model imports {}; it is read as in opset {}",
                  node.op_type, since, given.opset, since);
  if (const RefusedOperator* refused = rule == nullptr ? find_refused(node.domain, node.op_type) : nullptr) {
    lowering.refuse_advising(std::string(refused->advice), "operator {}.{} is not supported: {}", node.domain,
                             node.op_type, refused->reason);
  } else if (rule == nullptr) {
    lowering.refuse_advising(
        node.domain.empty() ? unknown_operator_advice(node.domain)
                            : unknown_operator_advice(node.domain) + "; " + custom_advice(*this, node),
        "operator {}{}{} is not supported", node.domain, node.domain.empty() ? "" : ".", node.op_type);
  } else if (node.domain.empty() && node.opset > kNewestOpset) {
    // The reader has refused the model for it.
  } else if (!custom && node.opset > kNewestOpset) {
    lowering.refuse_advising(fmt::format("export the model with version {} or older", kNewestOpset),
                             "version {} of operator set '{}' is newer than {}, the newest supported version",
                             node.opset, node.domain, kNewestOpset);
  } else if (lowering.operands_fit(*rule) && (!unknown_operand || rule->has(kTakesUnknown))) {
    done = lowering.lower_by(*rule);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    define(node.outputs[i], done ? kept(node.outputs[i], lowering.outputs_[i]) : kUnknown);
  check_folding(node);
  if (!done) return;
  enter_fate(node, lowering.outputs_, nodes_before);
  enter_types(lowering);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty() && lowering.outputs_[i] == kUnknown)
      lowering.refuse_advising("remove the readers of this output from the model",
                               "output {} ('{}') is not supported", i, node.outputs[i]);
}

void GraphLowering::enter_types(const NodeLowering& lowering) {
  const ImportedNode& node = lowering.node_;
  if (types_ == nullptr || node.place.empty()) return;
  NodeTypes types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    NodeTypes::Operand& operand = types.operands.emplace_back();
    const ValueId given = lookup(node.inputs[i]);
    operand.given = lowering.dtype(given);
    if (i < lowering.settled_.size()) operand.settled = lowering.settled_[i];
    operand.left_out = given >= 0 && i < lowering.inputs_.size() && lowering.inputs_[i] == kAbsent;
  }
  for (const ValueId id : lowering.outputs_) types.results.push_back(lowering.dtype(id));
  (*types_)[node.place] = std::move(types);
}

void GraphLowering::check_folding(const ImportedNode& node) {
  if (!cost_.refusal.empty()) return;
  const uint64_t computed = computed_constant_bytes() - cost_.computed_before, kept = kept_constant_bytes();
  const bool too_many = computed > cost_.most_computed,
             too_large = kept > cost_.kept_before && kept - cost_.kept_before > cost_.most_kept;
  if (!too_many && !too_large) return;
  cost_.refusal =
      fmt::format("folding the model's constants {} more than {} MB up to this node",
                  too_many ? "computes" : "keeps", (too_many ? cost_.most_computed : cost_.most_kept) >> 20);
  cost_.node = node.name, cost_.op = node.op_type;
}

void GraphLowering::enter_fate(const ImportedNode& node, const std::vector<ValueId>& outputs,
                               size_t nodes_before) {
  if (fates_ == nullptr) return;
  NodeFate fate{node.name, node.op_type, node.outputs, NodeFate::Kind::kDropped, {}};
  for (size_t n = nodes_before; n < graph_.nodes.size(); ++n)
    if (graph_.nodes[n].name == node.name) fate.kind = NodeFate::Kind::kStep;
  for (const ValueId id : outputs) {
    if (fate.kind != NodeFate::Kind::kDropped || (id < 0 && !is_sequence(id))) continue;
    if (is_sequence(id)) {  // a list of values, which exists while lowering alone
      fate.kind = NodeFate::Kind::kValue;
      continue;
    }
    fate.kind = graph_.is_constant(id) ? NodeFate::Kind::kConstant : NodeFate::Kind::kValue;
    if (fate.kind == NodeFate::Kind::kValue) fate.into = graph_.value(id).name;
  }
  fates_->add(std::move(fate));
}

}  // namespace sinter::convert
