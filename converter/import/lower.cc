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
      fates_(outer != nullptr ? outer->fates_ : nullptr) {
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

ValueId GraphLowering::capture(ValueId outside, const std::string& name) {
  for (size_t i = 0; i < captures_.size(); ++i)
    if (captures_[i] == outside) return graph_.inputs[graph_.inputs.size() - captures_.size() + i];
  const Value value = outer_->graph().value(outside);
  if (value.constant) return graph_.add_constant(value.constant, name);
  const ValueId inside = graph_.add_value(name, value.dtype, value.dims);
  graph_.inputs.push_back(inside);
  captures_.push_back(outside);
  Lengths& outer = outer_->lengths();
  for (const auto& [axis, count] : std::vector(value.bounded_dims)) {
    const ValueId own = capture(count, {});
    const LengthId length = outer.of_axis(outside, axis), symbol = lengths_.symbol(own, outer.range(length));
    if (const auto size = outer.expected(length)) lengths_.expect_size(symbol, *size);
    lengths_.inherit_names(symbol, outer.given_names(length));
    graph_.value(inside).bounded_dims.push_back({axis, own});
  }
  return inside;
}

bool GraphLowering::captures_computed(ValueId inside) {
  const size_t first = graph_.inputs.size() - captures_.size();
  for (size_t i = 0; i < captures_.size(); ++i)
    if (graph_.inputs[first + i] == inside) return outer_->lengths().computed(captures_[i]);
  return false;
}

std::optional<std::vector<LengthId>> GraphLowering::captured_items(ValueId inside) {
  const size_t first = graph_.inputs.size() - captures_.size();
  for (size_t i = 0; i < captures_.size(); ++i) {
    if (graph_.inputs[first + i] != inside) continue;
    Lengths& outer = outer_->lengths();
    const auto items = outer.items(captures_[i]);
    if (!items) return std::nullopt;
    std::vector<LengthId> own;
    for (const LengthId id : *items) {
      const auto number = outer.known(id);
      own.push_back(number ? lengths_.constant(*number)
                           : lengths_.symbol(capture(outer.value(id), {}), outer.range(id)));
      if (const auto size = outer.expected(id); size && !number) lengths_.expect_size(own.back(), *size);
      if (!number) lengths_.inherit_names(own.back(), outer.given_names(id));
    }
    return own;
  }
  return std::nullopt;
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

std::vector<ValueId> GraphLowering::lower_behind(const std::map<std::string, ValueId>& given,
                                                 const std::vector<const ImportedNode*>& nodes,
                                                 const std::vector<std::string>& wanted) {
  // The body's own names mean nothing to them.
  std::vector<std::unordered_map<std::string, ValueId>> own(1);
  own[0].insert(given.begin(), given.end());
  std::swap(scopes_, own);
  sources_.push_back(&outer_->source());
  behind_ = true;
  for (const ImportedNode* node : nodes) lower_node(*node);
  std::vector<ValueId> results;
  for (const std::string& name : wanted) results.push_back(lookup(name));
  behind_ = false;
  sources_.pop_back();
  std::swap(scopes_, own);
  return results;
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
  ledger().add({name,
                "",
                "",
                before,
                it->second,
                TypeRule::kKeep,
                "requested on the command line",
                TypeEffect::kCast,
                {}});
  return cast[0];
}

namespace {

// The limits of the loader (schemas/FORMAT.md).
constexpr int kMostNesting = 8;

std::string unknown_operator_advice(std::string_view domain) {
  // Layouts for the machine at hand, which only onnxruntime's highest levels of optimization write.
  if (domain == "com.microsoft.nchwc" || domain == "com.ms.internal.nhwc")
    return "use the model from before onnxruntime optimized it, or save it at a lower level "
           "(ORT_ENABLE_EXTENDED or ORT_ENABLE_BASIC): this operator is specific to one machine";
  return "export the model with operators that docs/ops.md lists, or compute this one before or after it";
}

}  // namespace

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
  bool misplaced = false;
  for (size_t i = 0; i < lowering.inputs_.size() && rule != nullptr; ++i)
    if (is_sequence(lowering.inputs_[i]) && !rule->takes_sequence(i))
      misplaced = !lowering.refuse("operand '{}' is a sequence, where {} takes tensors", node.inputs[i],
                                   node.op_type);
  for (size_t i = 0; i < lowering.inputs_.size() && rule != nullptr && !misplaced; ++i) {
    ValueId& v = lowering.inputs_[i];
    if (v < 0 || graph_.value(v).bounded_dims.empty() || rule->takes_bounded(i)) continue;
    v = Bounded(lowering).fixed(v);
    if (v < 0 || graph_.value(v).bounded_dims.empty()) continue;
    const int axis = graph_.value(v).bounded_dims[0].axis;
    misplaced = !lowering.refuse_advising(
        lengths_.fixing_advice(lengths_.of_axis(v, axis)),
        "dimension {} of operand '{}' is bounded (at most {}), which {} does not support", axis,
        node.inputs[i], graph_.value(v).dims[static_cast<size_t>(axis)], node.op_type);
  }
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
  } else if (!misplaced && (!unknown_operand || rule->has(kTakesUnknown))) {
    try {
      done = lowering.settle_operands() && rule->lower(lowering) && !lowering.refused();
    } catch (const std::length_error& e) {
      done = lowering.refuse("{}", e.what());
    } catch (const std::out_of_range&) {  // of Dims
      done = lowering.refuse_shapes("an operand has fewer dimensions than it needs");
    } catch (const std::bad_alloc&) {
      // Where not even this is left, it is the machine's fault and not the model's: this throws again.
      ::operator delete(::operator new (size_t{64} << 20));
      done = lowering.refuse_advising("convert it on a machine with more memory",
                                      "its constants do not fit into memory");
    }
    for (size_t i = 0; i < node.attributes.size() && done; ++i) {
      if (lowering.attr_read_[i]) continue;
      done = lowering.refuse_advising("remove the attribute, or export the model with the opset that has it",
                                      "attribute '{}' is not an attribute of {}", node.attributes[i].name,
                                      node.op_type);
    }
  }
  for (size_t i = 0; i < lowering.inputs_.size() && done; ++i)
    if (!lowering.input_read_[i] && lowering.inputs_[i] != kAbsent)
      done =
          lowering.refuse_advising("remove the operand, or export the model with the opset that has it",
                                   "input {} ('{}') is not an input of {}", i, node.inputs[i], node.op_type);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    define(node.outputs[i], done ? kept(node.outputs[i], lowering.outputs_[i]) : kUnknown);
  check_folding(node);
  if (!done) return;
  enter_fate(node, lowering.outputs_, nodes_before);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty() && lowering.outputs_[i] == kUnknown)
      lowering.refuse_advising("remove the readers of this output from the model",
                               "output {} ('{}') is not supported", i, node.outputs[i]);
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

std::optional<LoweredBody> GraphLowering::lower_body(const ImportedGraph& source,
                                                     const std::vector<Parameter>& parameters,
                                                     Diagnostics& diagnostics, const Prologue& prologue,
                                                     const Epilogue& epilogue) {
  int nesting = 0;
  for (const GraphLowering* g = this; g != nullptr; g = g->outer_) ++nesting;
  if (nesting > kMostNesting) {
    diagnostics.refuse("", "",
                       fmt::format("branches and loop bodies are nested more than {} deep", kMostNesting),
                       "give conditions and trip counts with --const, so that they are unrolled");
    return std::nullopt;
  }
  LoweredBody body;
  body.graph = std::make_shared<Graph>();
  body.graph->name = source.name;
  body.graph->ledger = graph_.ledger;
  GraphLowering inner(*body.graph, model_, options_, diagnostics, this);
  const size_t refusals = diagnostics.count(Severity::kRefusal);
  for (const Parameter& p : parameters) {
    const ValueId id = body.graph->add_value(p.name, p.fact.dtype, p.fact.dims);
    body.graph->inputs.push_back(id);
    inner.define(p.name, id);
  }
  if (prologue) prologue(inner);
  inner.lower_nodes(source);
  std::vector<ValueId>& results = body.graph->outputs;
  for (const ImportedValueInfo& out : source.outputs) results.push_back(inner.lookup(out.name));
  if (epilogue) epilogue(inner);
  bool known = true;
  for (size_t i = 0; i < results.size(); ++i) {
    // The epilogue may have replaced them by others.
    inner.refuse_sequence(i < source.outputs.size() ? source.outputs[i].name : source.name, results[i]);
    known &= results[i] >= 0;
  }
  if (!known || diagnostics.count(Severity::kRefusal) != refusals) return std::nullopt;
  body.captures = inner.captures_;
  return body;
}

std::vector<ValueId> GraphLowering::inline_body(const ImportedGraph& source,
                                                const std::vector<ValueId>& parameters) {
  scopes_.emplace_back();
  for (size_t i = 0; i < source.inputs.size() && i < parameters.size(); ++i)
    scopes_.back()[source.inputs[i].name] = parameters[i];
  lower_nodes(source);
  std::vector<ValueId> results;
  for (const ImportedValueInfo& out : source.outputs) results.push_back(lookup(out.name));
  scopes_.pop_back();
  return results;
}

}  // namespace sinter::convert
