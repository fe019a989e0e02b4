#include "converter/import/lower.h"

#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>

#include "converter/import/bounded.h"
#include "converter/import/check_options.h"
#include "converter/import/given_constant.h"
#include "converter/import/op_since.h"
#include "converter/import/reader.h"
#include "converter/ir/dims.h"
#include "converter/ir/large_bytes.h"
#include "converter/report/node_fates.h"

namespace sinter::convert {

namespace {

// What folding may do to one model, in bytes: for each operation that it may have, and for each byte of its
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
  if (outer_ == nullptr) return kUnknown;  // the reader has refused names that nobody produces
  const ValueId outside = outer_->lookup(name);
  ValueId inside = outside;
  if (const auto* items = outer_->sequence(outside)) {
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
  for (const auto& [axis, count] : std::vector(value.extents)) {
    const ValueId own = capture(count, {});
    lengths_.symbol(own, outer.range(outer.of_axis(outside, axis)));
    graph_.value(inside).extents.emplace_back(axis, own);
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
                        fmt::format("initializer '{}' ({}) holds nan, which no arithmetic removes",
                                    tensor.name, to_string(tensor.data->dtype(), tensor.data->dims())));
    define(tensor.name, kept(tensor.name, graph_.add_constant(tensor.data, tensor.name)));
  }
  sources_.push_back(&source);
  for (const ImportedNode& node : source.nodes) lower_node(node);
  sources_.pop_back();
}

ValueId GraphLowering::add_sequence(std::vector<ValueId> items) {
  sequences_.push_back(std::move(items));
  return kUnknown - static_cast<ValueId>(sequences_.size());
}

const std::vector<ValueId>* GraphLowering::sequence(ValueId value) const {
  return is_sequence(value) ? &sequences_[static_cast<size_t>(kUnknown - 1 - value)] : nullptr;
}

void GraphLowering::refuse_sequence(const std::string& name, ValueId value) {
  if (is_sequence(value))
    diagnostics_.refuse("", "", fmt::format("result '{}' is a sequence; only tensors can be results", name),
                        "give its tensors as outputs of their own");
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
        "keep it in a type that its values can be cast to");
    return kUnknown;
  }
  graph_.value(cast[0]).extents = graph_.value(value).extents;
  ledger().add(
      {name, "", "", before, it->second, "keep", "asked for on the command line", TypeEffect::kCast, {}});
  return cast[0];
}

namespace {

// What the loader takes (schemas/FORMAT.md).
constexpr int kMostNesting = 8;

std::string unknown_operator_advice(std::string_view domain) {
  // Layouts for the machine at hand, which only onnxruntime's highest levels of optimization write.
  if (domain == "com.microsoft.nchwc" || domain == "com.ms.internal.nhwc")
    return "give the model as it was before onnxruntime optimized it, or save it at a lower level "
           "(ORT_ENABLE_EXTENDED or ORT_ENABLE_BASIC): this operator fits one machine's vectors";
  return "export the model with operators that docs/ops.md lists, or compute this one before or after it";
}

}  // namespace

void GraphLowering::lower_node(const ImportedNode& given) {
  if (++cost_.operations > options_.most_operations || !cost_.refusal.empty()) {  // lower_model() refuses
    for (const std::string& name : given.outputs) define(name, kUnknown);
    return;
  }
  // Exporters and hands that patch models write operators under an older set: their first version is meant.
  const int since = op_since(given.domain, given.op_type);
  const bool early = given.opset < since;
  std::optional<ImportedNode> raised;
  if (early) raised.emplace(given).opset = since;
  const ImportedNode& node = early ? *raised : given;
  NodeLowering lowering(*this, node);
  const LowerRule* rule = find_rule(node.domain, node.op_type);
  const bool unknown_operand =
      std::find(lowering.inputs_.begin(), lowering.inputs_.end(), kUnknown) != lowering.inputs_.end();
  builder_.set_origin({node.name, node.op_type});
  const size_t nodes_before = graph_.nodes.size();
  for (const std::string& name : node.inputs)
    if (const Unusable* problem = lookup(name) == kUnknown ? unusable(name) : nullptr)
      lowering.refuse_advising(type_advice(problem->type), "operand '{}': {}", name, problem->why);
  bool misplaced = false;
  for (size_t i = 0; i < lowering.inputs_.size() && rule != nullptr && !rule->takes_sequences; ++i)
    if (is_sequence(lowering.inputs_[i]))
      misplaced = !lowering.refuse("operand '{}' is a sequence, where {} takes tensors", node.inputs[i],
                                   node.op_type);
  for (size_t i = 0; i < lowering.inputs_.size() && rule != nullptr && !misplaced; ++i) {
    const ValueId v = lowering.inputs_[i];
    if (v < 0 || graph_.value(v).extents.empty() || takes_bounded(node.domain, node.op_type)) continue;
    const int axis = graph_.value(v).extents[0].first;
    misplaced = !lowering.refuse_advising(
        "compute it after the model, or export the model so that the length is fixed",
        "dimension {} of operand '{}' is bounded (at most {}), which {} does not take", axis, node.inputs[i],
        graph_.value(v).dims[static_cast<size_t>(axis)], node.op_type);
  }
  bool done = false;
  if (early && rule != nullptr)
    lowering.warn("{} came with opset {}, but the model imports {}; it is taken as it was in {}",
                  node.op_type, since, given.opset, since);
  if (rule == nullptr) {
    lowering.refuse_advising(unknown_operator_advice(node.domain), "operator {}{}{} is not supported",
                             node.domain, node.domain.empty() ? "" : ".", node.op_type);
  } else if (node.domain.empty() && node.opset > kNewestOpset) {
    // The reader has refused the model for it.
  } else if (node.opset > rule->newest) {
    lowering.refuse_advising(fmt::format("export the model with version {} or older", rule->newest),
                             "version {} of operator set '{}' is newer than {}, the newest that is known",
                             node.opset, node.domain.empty() ? "ai.onnx" : node.domain, rule->newest);
  } else if (!misplaced && (!unknown_operand || rule->wants_unknown)) {
    try {
      done = lowering.settle_operands() && rule->lower(lowering) && !lowering.refused();
    } catch (const std::length_error& e) {
      done = lowering.refuse("{}", e.what());
    } catch (const std::bad_alloc&) {
      // Where not even this is left, it is the machine's fault and not the model's: this throws again.
      ::operator delete(::operator new (size_t{64} << 20));
      done = lowering.refuse_advising("convert it where there is more memory",
                                      "its constants do not fit memory");
    }
    for (size_t i = 0; i < node.attributes.size() && done; ++i) {
      if (lowering.attr_read_[i]) continue;
      done = lowering.refuse_advising("remove the attribute, or export the model with the opset that has it",
                                      "attribute '{}' is not one that {} has", node.attributes[i].name,
                                      node.op_type);
    }
  }
  for (size_t i = 0; i < lowering.inputs_.size() && done; ++i)
    if (!lowering.input_read_[i] && lowering.inputs_[i] != kAbsent)
      done =
          lowering.refuse_advising("remove the operand, or export the model with the opset that has it",
                                   "input {} ('{}') is not one that {} has", i, node.inputs[i], node.op_type);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    define(node.outputs[i], done ? kept(node.outputs[i], lowering.outputs_[i]) : kUnknown);
  check_folding(node);
  if (!done) return;
  enter_fate(node, lowering.outputs_, nodes_before);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty() && lowering.outputs_[i] == kUnknown)
      lowering.refuse_advising("remove what reads this output from the model",
                               "output {} ('{}') is not supported", i, node.outputs[i]);
}

void GraphLowering::check_folding(const ImportedNode& node) {
  if (!cost_.refusal.empty()) return;
  const uint64_t computed = computed_constant_bytes() - cost_.computed_before, kept = kept_constant_bytes();
  const bool too_many = computed > cost_.most_computed,
             too_large = kept > cost_.kept_before && kept - cost_.kept_before > cost_.most_kept;
  if (!too_many && !too_large) return;
  cost_.refusal =
      fmt::format("folding the model's constants {} more than {} MB up to here",
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
                                                     Diagnostics& diagnostics, const Prologue& prologue) {
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
  bool known = true;
  for (const ImportedValueInfo& out : source.outputs) {
    body.graph->outputs.push_back(inner.lookup(out.name));
    inner.refuse_sequence(out.name, body.graph->outputs.back());
    known &= body.graph->outputs.back() >= 0;
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

namespace {

// Decides every graph input's dims, or refuses with the list of what is open.
class InputShapes {
 public:
  InputShapes(const ImportedGraph& graph, const LoweringOptions& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {
    for (const ImportedValueInfo& input : graph.inputs)
      for (size_t axis = 0; axis < input.dims.size(); ++axis)
        if (const std::string& symbol = input.dims[axis].symbol; !symbol.empty() && axis > 0)
          inner_.insert(symbol);
    // A symbol that --shape fixes holds for every input that uses it.
    for (const ImportedValueInfo& input : graph.inputs) {
      const auto it = options.shapes.find(input.name);
      if (it == options.shapes.end() || it->second.size() != input.dims.size()) continue;
      for (size_t axis = 0; axis < input.dims.size(); ++axis)
        if (const std::string& symbol = input.dims[axis].symbol; !symbol.empty())
          symbols_.emplace(symbol, it->second[axis]);
    }
  }

  std::optional<Dims> resolve(const ImportedValueInfo& input) {
    const auto given = options_.shapes.find(input.name);
    if (given != options_.shapes.end()) {
      if (input.has_shape && given->second.size() != input.dims.size()) {
        diagnostics_.refuse(
            "", "",
            fmt::format("--shape {}={} has {} dims but the model's input has {}", input.name,
                        fmt::join(given->second, ","), given->second.size(), input.dims.size()),
            "give a size for every dim of the input");
        return std::nullopt;
      }
      for (size_t axis = 0; axis < input.dims.size(); ++axis) {
        const ImportedDim& dim = input.dims[axis];
        if (dim.value < 0 || dim.value == given->second[axis]) continue;
        // A declared dim is a claim; what the operators cannot take is refused where it matters.
        diagnostics_.note("", "",
                          fmt::format("--shape {}={} replaces the declared dim {} of {}", input.name,
                                      fmt::join(given->second, ","), axis, dim.value));
      }
      return given->second;
    }
    if (!input.has_shape) {
      open_.push_back(fmt::format("{} (no shape at all)", input.name));
      return std::nullopt;
    }
    Dims dims;
    bool known = true;
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const ImportedDim& dim = input.dims[axis];
      if (dim.value >= 0) {
        dims.push_back(dim.value);
      } else if (const auto d = options_.dims.find(dim.symbol);
                 !dim.symbol.empty() && d != options_.dims.end()) {
        dims.push_back(d->second);
      } else if (const auto s = symbols_.find(dim.symbol); !dim.symbol.empty() && s != symbols_.end()) {
        dims.push_back(s->second);
      } else if (axis == 0 && (dim.symbol.empty() || inner_.count(dim.symbol) == 0)) {
        dims.push_back(1);
      } else if (options_.assumed > 0) {
        dims.push_back(options_.assumed);
      } else {
        open_.push_back(fmt::format("{} dim {}{}", input.name, axis,
                                    dim.symbol.empty() ? std::string() : " '" + dim.symbol + "'"));
        known = false;
      }
    }
    if (!known) return std::nullopt;
    return dims;
  }

  bool any_open() const { return !open_.empty(); }
  void report_open() {
    if (open_.empty() || options_.assumed > 0) return;
    diagnostics_.refuse("", "", fmt::format("these dimensions are open: {}", fmt::join(open_, "; ")),
                        "give each with --dim NAME=N or --shape INPUT=...");
  }

 private:
  const LoweringOptions& options_;
  Diagnostics& diagnostics_;
  std::set<std::string> inner_;
  std::map<std::string, int64_t> symbols_;
  std::vector<std::string> open_;
};

bool usable_input(DType dtype) { return byte_width(dtype) != 0; }

}  // namespace

void separate_outputs(Graph& graph) {
  std::set<ValueId> seen(graph.inputs.begin(), graph.inputs.end());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    ValueId& id = graph.outputs[i];
    if (seen.count(id) != 0 || graph.is_constant(id)) {
      const ValueId copy = graph.add_value({}, graph.value(id).dtype, graph.value(id).dims);
      graph.nodes.push_back({CopyAttrs{}, {id}, {copy}, graph.value(id).name, "", {}});
      graph.value(copy).extents = graph.value(id).extents;
      id = copy;
    }
    seen.insert(id);
  }
}

namespace {

// What the file says about its inner values, against what they are (rule claim.metadata).
void check_claims(const ImportedGraph& source, GraphLowering& lowering) {
  const Graph& graph = lowering.graph();
  size_t shapes = 0, types = 0;
  for (const ImportedValueInfo& claim : source.value_info) {
    const ValueId id = lowering.lookup(claim.name);
    if (id < 0) continue;
    const Value& value = graph.value(id);
    if (claim.dtype != DType::kNone && claim.dtype != value.dtype) {
      lowering.ledger().add({claim.name,
                             "",
                             "",
                             claim.dtype,
                             value.dtype,
                             "claim.metadata",
                             "the file's value_info names another type than the operators give",
                             TypeEffect::kDeclared,
                             {}});
      ++types;
    }
    if (!claim.has_shape) continue;
    bool same = claim.dims.size() == value.dims.size();
    for (size_t i = 0; i < claim.dims.size() && same; ++i)
      same = claim.dims[i].value < 0 || claim.dims[i].value == value.dims[i];
    shapes += !same;
  }
  if (types + shapes > 0)
    lowering.diagnostics().note(
        "", "",
        fmt::format("the file's value_info is wrong about {} types and {} shapes; it was not relied upon",
                    types, shapes));
}

}  // namespace

namespace {

// Arrays of --const take the place of inputs.
void define_given(const ImportedGraph& source, const LoweringOptions& options, GraphLowering& lowering) {
  for (const auto& [name, array] : options.constants) {
    const auto input = std::find_if(source.inputs.begin(), source.inputs.end(),
                                    [&, &name = name](const ImportedValueInfo& v) { return v.name == name; });
    std::string problem;
    const ConstantPtr constant =
        input == source.inputs.end() ? array : given_constant(array, *input, &problem);
    if (!constant)
      lowering.diagnostics().refuse("", "", fmt::format("--const {}: {}", name, problem),
                                    "give an array of the type and shape that the model declares");
    lowering.define(name, constant ? lowering.graph().add_constant(constant, name) : kUnknown);
  }
}

}  // namespace

namespace {

// What callers reach by name has one.
void check_port_names(const ImportedGraph& graph, Diagnostics& diagnostics) {
  const auto check = [&](const std::vector<ImportedValueInfo>& ports, const char* what) {
    for (size_t i = 0; i < ports.size(); ++i)
      if (ports[i].name.empty())
        diagnostics.refuse("", "", fmt::format("{} {} of the model has no name", what, i),
                           "name it, or remove it from the model");
  };
  check(graph.inputs, "input");
  check(graph.outputs, "output");
}

}  // namespace

namespace {

// Lengths have done their work inside: only those of the model's outputs are asked for while running.
void forget_inner_lengths(Graph& graph, const std::vector<ValueId>& outputs) {
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (std::find(outputs.begin(), outputs.end(), static_cast<ValueId>(i)) == outputs.end())
      graph.values[i].extents.clear();
  for (Node& node : graph.nodes)
    for (const auto& body : node.bodies) forget_inner_lengths(*body, {});
}

// The constants that the model or --const gives, with the nodes that read them.
void enter_constants(const ImportedGraph& main, const LoweringOptions& options, NodeFates* fates) {
  std::map<std::string, std::vector<std::string>> readers;
  each_graph(main, [&](const ImportedGraph& graph) {
    for (const ImportedNode& node : graph.nodes)
      for (const std::string& name : node.inputs)
        if (std::vector<std::string>& nodes = readers[name]; nodes.empty() || nodes.back() != node.name)
          nodes.push_back(node.name);
  });
  const auto enter = [&](const std::string& name, const ConstantPtr& data) {
    if (data) fates->add(GivenConstant{name, to_string(data->dtype(), data->dims()), readers[name]});
  };
  for (const auto& [name, data] : options.constants) enter(name, data);
  each_graph(main, [&](const ImportedGraph& graph) {
    for (const ImportedTensor& tensor : graph.initializers)
      if (options.constants.count(tensor.name) == 0) enter(tensor.name, tensor.data);
  });
}

std::optional<Graph> lower_once(const ImportedModel& model, const LoweringOptions& options,
                                Diagnostics& diagnostics, NodeFates* fates, bool* any_open) {
  Graph graph;
  graph.name = model.graph.name;
  GraphLowering lowering(graph, model, options, diagnostics);
  lowering.set_fates(fates);
  check_options(model, options, diagnostics);
  check_port_names(model.graph, diagnostics);
  InputShapes shapes(model.graph, options, diagnostics);
  define_given(model.graph, options, lowering);
  std::set<std::string> initialized;
  for (const ImportedTensor& tensor : model.graph.initializers) initialized.insert(tensor.name);
  std::vector<const ImportedValueInfo*> unusable;
  for (const ImportedValueInfo& input : model.graph.inputs) {
    if (options.constants.count(input.name) != 0 || initialized.count(input.name) != 0) continue;
    if (!input.other.empty() || !usable_input(input.dtype)) {
      const std::string type = input.other.empty() ? onnx_type_name(input.onnx_type) : "a " + input.other;
      lowering.define_unusable(input.name, type,
                               fmt::format("it is {}; inputs must be tensors of whole-byte numbers", type));
      unusable.push_back(&input);
      continue;
    }
    const auto dims = shapes.resolve(input);
    if (!dims) {
      lowering.define(input.name, kUnknown);
      continue;
    }
    if (!plausible_dims(input.dtype, *dims)) {
      diagnostics.refuse(
          "", "", fmt::format("input '{}' ({}) is too large", input.name, to_string(input.dtype, *dims)),
          "give a smaller shape with --dim NAME=N or --shape INPUT=...");
      lowering.define(input.name, kUnknown);
      continue;
    }
    const ValueId id = graph.add_value(input.name, input.dtype, *dims);
    graph.inputs.push_back(id);
    lowering.define(input.name, lowering.kept(input.name, id));
  }
  shapes.report_open();
  *any_open = shapes.any_open();
  lowering.lower_nodes(model.graph);
  const GraphLowering::Cost& cost = lowering.cost();
  if (cost.operations > options.most_operations) {
    diagnostics.refuse(
        "", "", fmt::format("the model's loops unroll to more than {} operations", options.most_operations),
        "export it with shorter loops");
    return std::nullopt;
  }
  if (!cost.refusal.empty()) {
    diagnostics.refuse(cost.node, cost.op, cost.refusal,
                       "compute what grows from small constants from an input instead, or store its result");
    return std::nullopt;
  }
  // Nodes that read such an input have been refused; here are those that none reads.
  for (const ImportedValueInfo* input : unusable) {
    if (diagnostics.count(Severity::kRefusal) > 0) break;
    const GraphLowering::Unusable& problem = *lowering.unusable(input->name);
    diagnostics.refuse("", "", fmt::format("input '{}': {}", input->name, problem.why),
                       type_advice(problem.type));
  }
  bool known = true;
  for (const ImportedValueInfo& output : model.graph.outputs) {
    graph.outputs.push_back(lowering.lookup(output.name));
    lowering.refuse_sequence(output.name, graph.outputs.back());
    known &= graph.outputs.back() >= 0;
  }
  if (!known || diagnostics.count(Severity::kRefusal) > 0) {
    if (diagnostics.count(Severity::kRefusal) == 0)
      diagnostics.refuse("", "", "an output of the model is never computed",
                         "remove it from the model's outputs");
    return std::nullopt;
  }
  check_claims(model.graph, lowering);
  settle_output_types(model.graph, lowering);
  separate_outputs(graph);
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    graph.value(graph.outputs[i]).name = model.graph.outputs[i].name;
  forget_inner_lengths(graph, graph.outputs);
  if (fates != nullptr) enter_constants(model.graph, options, fates);
  return graph;
}

bool has_loop(const ImportedModel& model) {
  bool found = false;
  each_graph(model.graph, [&](const ImportedGraph& graph) {
    for (const ImportedNode& node : graph.nodes) found |= node.domain.empty() && node.op_type == "Loop";
  });
  return found;
}

bool same_reason(const Diagnostic& a, const Diagnostic& b) {
  return a.node == b.node && a.op == b.op && a.message == b.message && a.remedy == b.remedy;
}

bool holds(const std::vector<Diagnostic>& all, const Diagnostic& reason) {
  return std::any_of(all.begin(), all.end(), [&](const Diagnostic& d) { return same_reason(d, reason); });
}

// Behind an open dimension, a loop without a bound and a carried value that grows nothing is known, and
// nothing is refused. Two trials with different sizes in their places find what is: a reason that both give
// has nothing to do with the size, unless it is about shapes.
void add_reasons_behind(const ImportedModel& model, const LoweringOptions& options,
                        Diagnostics& diagnostics) {
  constexpr int64_t kSizes[] = {256, 512};
  Diagnostics found[2];
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    LoweringOptions trial = options;
    trial.assumed = kSizes[i];
    bool any_open = false;
    lower_once(model, trial, found[i], nullptr, &any_open);
  }
  for (Diagnostic d : found[0].all()) {
    const std::vector<Diagnostic>& others = found[1].all();
    const bool same = std::find(others.begin(), others.end(), d) != others.end();
    if (d.severity != Severity::kRefusal || d.node.empty() || holds(diagnostics.all(), d)) continue;
    if (!same && (d.shapes || !holds(others, d))) continue;
    if (!same) d.operands.clear();  // they have the trial's sizes
    diagnostics.add(std::move(d));
  }
}

}  // namespace

std::optional<Graph> lower_model(const ImportedModel& model, const LoweringOptions& options,
                                 Diagnostics& diagnostics, NodeFates* fates) {
  bool any_open = false;
  std::optional<Graph> graph = lower_once(model, options, diagnostics, fates, &any_open);
  if (!graph && (any_open || has_loop(model))) add_reasons_behind(model, options, diagnostics);
  return graph;
}

}  // namespace sinter::convert
