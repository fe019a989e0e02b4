// Lowers a whole model: its inputs' shapes, its nodes, its outputs; and the trials that find further
// refusals.
#include <algorithm>
#include <map>
#include <set>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/node_fates.h"
#include "converter/import/byte_inputs.h"
#include "converter/import/caches/context.h"
#include "converter/import/caches/narrow_caches.h"
#include "converter/import/caches/states.h"
#include "converter/import/check_options.h"
#include "converter/import/input_shapes.h"
#include "converter/import/lengths/given_lengths.h"
#include "converter/import/lower.h"
#include "converter/import/read/given_constant.h"
#include "converter/import/read/reader.h"
#include "converter/ir/dims.h"

namespace sinter::convert {

namespace {

bool usable_input(DType dtype) { return byte_width(dtype) != 0; }

// The file's declarations of its inner values, against what they are (rule claim.metadata).
void check_claims(const ImportedGraph& source, GraphLowering& lowering) {
  const Graph& graph = lowering.graph();
  size_t shapes = 0, types = 0;
  for (const ImportedValueInfo& claim : source.value_info) {
    const ValueId id = lowering.lookup(claim.name);
    if (id < 0) continue;
    const Value& value = graph.value(id);
    if (claim.dtype != DType::kNone && claim.dtype != value.dtype) {
      lowering.ledger().add({claim.name, "", "", claim.dtype, value.dtype, TypeRule::kClaimMetadata,
                             "the file's value_info declares a type other than the operators give",
                             TypeEffect::kDeclared});
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
        fmt::format("the file's value_info is wrong about {} types and {} shapes; it is ignored", types,
                    shapes));
}

// Arrays of --const take the place of inputs.
void define_given(const ImportedGraph& source, const LoweringOptions& options, GraphLowering& lowering) {
  for (const auto& [name, array] : options.constants) {
    const auto input = std::find_if(source.inputs.begin(), source.inputs.end(),
                                    [&, &name = name](const ImportedValueInfo& v) { return v.name == name; });
    std::string problem;
    ConstantPtr constant = array;
    if (input != source.inputs.end()) {
      ImportedValueInfo declared = *input;
      if (const auto given = options.shapes.find(name); given != options.shapes.end() && is_number(*array)) {
        declared.has_shape = true;
        declared.dims.clear();
        for (const int64_t n : given->second) declared.dims.push_back({n, {}});
      }
      constant = given_constant(array, declared, &problem);
    }
    if (!constant)
      lowering.diagnostics().refuse(
          "", "", fmt::format("--const {}: {}", name, problem),
          "give a number, or an array, of the type and shape that the model declares");
    lowering.define(name, constant ? lowering.graph().add_constant(constant, name) : kUnknown);
  }
}

// Returns whether the input is the beginning of a state that --state names.
bool is_state(const std::string& input, const LoweringOptions& options) {
  return std::any_of(options.states.begin(), options.states.end(),
                     [&](const auto& state) { return state.second == input; });
}

// Inputs and outputs must have names: callers find them by these.
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

// Lengths have done their work inside: only those of the model's inputs and outputs (`ports`) are the
// caller's.
void forget_inner_lengths(Graph& graph, const std::vector<ValueId>& ports) {
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (std::find(ports.begin(), ports.end(), static_cast<ValueId>(i)) == ports.end())
      graph.values[i].bounded_dims.clear();
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

std::optional<Graph> lower_once(const ImportedModel& model, const LoweringOptions& given,
                                Diagnostics& diagnostics, NodeFates* fates, std::vector<SettledDim>* settled,
                                NodeTypesByPlace* types, bool* any_open) {
  check_options(model, given, diagnostics);
  const ContextRoles roles(model, given, diagnostics);
  Context context(model, roles, diagnostics);
  const LoweringOptions& options = roles.options();
  Graph graph;
  graph.name = model.graph.name;
  GraphLowering lowering(graph, model, options, diagnostics);
  lowering.set_fates(fates);
  lowering.set_types(types);
  check_port_names(model.graph, diagnostics);
  InputShapes shapes(model.graph, options, roles.batches(), diagnostics);
  GivenLengths lengths(options, lowering);
  define_given(model.graph, options, lowering);
  std::set<std::string> initialized;
  for (const ImportedTensor& tensor : model.graph.initializers) initialized.insert(tensor.name);
  std::vector<const ImportedValueInfo*> unusable;
  std::vector<std::string> byte_inputs;
  for (const ImportedValueInfo& input : model.graph.inputs) {
    if (options.constants.count(input.name) != 0 || initialized.count(input.name) != 0) continue;
    if (context.computes(input)) continue;
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
    ValueId id = kAbsent;
    const DataInput port{input.name, input.dtype, *dims};
    const bool bytes = options.bytes && takes_bytes(*options.bytes, port),
               state = is_state(input.name, options);
    if (bytes && state && !options.bytes->inputs.empty())
      throw UsageError(fmt::format(
          "--input-type {}=uint8: this input is a state, and a state keeps its type; leave the "
          "flag out, or convert without the option that makes it a state (--state, --max-context)",
          input.name));
    if (bytes && !state) {
      if (lengths.bounds(input))
        diagnostics.refuse(
            "", "",
            fmt::format("--input-type: a dimension of input '{}' has a range of sizes, but preprocessing is "
                        "built into the model for one size",
                        input.name),
            "give the dimension one size with --dim NAME=N, or leave out --input-type");
      id = add_byte_input(port, options.bytes->how, lowering);
      byte_inputs.push_back(input.name);
    } else {
      id = graph.add_value(input.name, roles.type_of(input), *dims);
      graph.inputs.push_back(id);
      lengths.bound(input, id);
    }
    lowering.define(input.name, lowering.kept(input.name, id));
  }
  context.define_inputs(lowering, [&](const ImportedValueInfo& input) { return shapes.resolve(input); });
  lengths.list();
  shapes.report_open();
  // One of them may be a state, which keeps its type.
  if (options.all_states && options.bytes && options.bytes->inputs.empty() && byte_inputs.size() > 1)
    throw UsageError(
        fmt::format("--input-type uint8 with --state auto: the inputs {} each take a picture of floats; name "
                    "those that get bytes with --input-type INPUT=uint8, or the states with --state OUT=IN",
                    fmt::join(byte_inputs, ", ")));
  if (options.bytes && !shapes.any_open()) {
    if (options.bytes->inputs.empty() && byte_inputs.empty())
      throw UsageError("--input-type uint8: no input of the model takes one picture of floats; leave it out");
    for (const std::string& name : options.bytes->inputs)
      if (std::find(byte_inputs.begin(), byte_inputs.end(), name) == byte_inputs.end())
        throw UsageError(fmt::format(
            "--input-type {}=uint8: the model has no input of this name; give one that it has", name));
  }
  *any_open = shapes.any_open();
  if (settled != nullptr) *settled = shapes.settled();
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
                       "compute large results of small constants from an input, or store them");
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
  context.add_output(lowering);
  if (diagnostics.count(Severity::kRefusal) > 0) return std::nullopt;
  separate_outputs(graph);
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    graph.value(graph.outputs[i]).name =
        i < model.graph.outputs.size() ? model.graph.outputs[i].name : ContextRoles::kNextPosition;
  std::vector<ValueId> ports = graph.outputs;
  ports.insert(ports.end(), graph.inputs.begin(), graph.inputs.end());
  forget_inner_lengths(graph, ports);
  context.forget_lengths(graph);
  if (options.assumed == 0 && !add_states(model.graph, options, graph, diagnostics)) return std::nullopt;
  if (options.assumed == 0 && options.kv_cache != DType::kNone &&
      !narrow_caches(roles.grown(), options.kv_cache, graph, diagnostics))
    return std::nullopt;
  if (options.assumed == 0)
    for (const auto& [type, caches] : roles.wider())
      if (!round_caches(caches, type, graph, diagnostics)) return std::nullopt;
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
    lower_once(model, trial, found[i], nullptr, nullptr, nullptr, &any_open);
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

void separate_outputs(Graph& graph) {
  std::set<ValueId> seen(graph.inputs.begin(), graph.inputs.end());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    ValueId& id = graph.outputs[i];
    if (seen.count(id) != 0 || graph.is_constant(id)) {
      const ValueId copy = graph.add_value({}, graph.value(id).dtype, graph.value(id).dims);
      graph.nodes.push_back({CopyAttrs{}, {id}, {copy}, graph.value(id).name, "", {}});
      graph.value(copy).bounded_dims = graph.value(id).bounded_dims;
      id = copy;
    }
    seen.insert(id);
  }
}

std::optional<Graph> lower_model(const ImportedModel& model, const LoweringOptions& options,
                                 Diagnostics& diagnostics, NodeFates* fates, std::vector<SettledDim>* settled,
                                 NodeTypesByPlace* types) {
  bool any_open = false;
  std::optional<Graph> graph = lower_once(model, options, diagnostics, fates, settled, types, &any_open);
  if (!graph && (any_open || has_loop(model))) add_reasons_behind(model, options, diagnostics);
  return graph;
}

}  // namespace sinter::convert
