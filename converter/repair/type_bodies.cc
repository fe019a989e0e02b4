// Types across the borders of graphs: branches, loops, functions, and the model's own inputs and outputs.
#include <fmt/format.h>

#include <algorithm>

#include "converter/repair/type_walk.h"
#include "converter/types/branch_edge.h"

namespace sinter::convert {
namespace {

bool castable(OnnxType type) { return dtype_from_onnx(type) != DType::kNone; }

// Returns the type in which values that take each other's place meet; 0: there is none.
OnnxType meeting(OnnxType a, OnnxType b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  Value x, y;
  x.dtype = dtype_from_onnx(a), y.dtype = dtype_from_onnx(b);
  if (!castable(a) || !castable(b)) return 0;
  const auto type = meet_at_edge(x, y);
  return type ? static_cast<OnnxType>(dtype_to_onnx(*type)) : 0;
}

}  // namespace

TypedScope& RootWalk::open_scope(const ImportedGraph& graph, const std::string& key, TypedScope* outer) {
  TypedScope& scope = scopes_.emplace_back();
  scope.graph = &graph, scope.key = key, scope.outer = outer;
  for (const ImportedTensor& t : graph.initializers)
    scope.define({t.name, static_cast<OnnxType>(t.onnx_type), t.data, &t});
  bool sorted = true;
  std::vector<size_t> order;
  for (const ImportedNode& n : graph.nodes) {
    order.push_back(place_number(n));
    sorted &= order.size() < 2 || order[order.size() - 2] < order.back();
  }
  if (!sorted) {
    edits_.graphs[key].order = order;
    list_.push_back({EditKind::kSorted, graph.name, "", "", 0, 0, rule_id(TypeRule::kClaimMetadata),
                     "the standard requires nodes behind those whose results they read", ""});
  }
  return scope;
}

void RootWalk::main_graph() {
  const ImportedGraph& graph = context_.model.graph;
  collect_names(graph);
  TypedScope& scope = open_scope(graph, "", nullptr);
  main_ = &scope;
  for (const ImportedValueInfo& in : graph.inputs)
    scope.define({in.name, static_cast<OnnxType>(in.onnx_type)});
  nodes(graph.nodes, scope);
  main_outputs(scope);
  choose_all();
}

// Outputs are cast to their declared types where Sinter does so: no fraction is cut off.
void RootWalk::main_outputs(TypedScope& scope) {
  const std::vector<ImportedValueInfo>& outputs = scope.graph->outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TypedValue* v = scope.find(outputs[i].name).first;
    if (v == nullptr || v->type == 0 || !outputs[i].other.empty()) continue;
    const auto declared = static_cast<OnnxType>(outputs[i].onnx_type);
    const DType to = outputs[i].dtype, from = dtype_from_onnx(v->type);
    if (declared == v->type) {
      v->readers.push_back({nullptr, &scope, i, declared, {}, {}});
      continue;
    }
    const bool whole = (to == DType::kBool || is_integer(to)) && !is_float(from);
    const bool casts = to != DType::kNone && from != DType::kNone && byte_width(to) != 0 &&
                       (is_float(to) || whole) && v->producer != nullptr;
    v->readers.push_back({nullptr, &scope, i, casts ? declared : v->type, TypeRule::kOutputDeclared,
                          "the model's output keeps its declared type"});
    if (casts) continue;
    edits_.graphs[scope.key].outputs[i] = v->type;
    list_.push_back({EditKind::kDeclared, v->name, "", "", declared, v->type,
                     rule_id(TypeRule::kOutputDeclared),
                     "the computed type cannot be the declared one without losing values", ""});
  }
}

std::vector<OnnxType> RootWalk::body(const ImportedGraph& graph, const std::string& key, TypedScope& outer,
                                     const std::vector<OnnxType>& parameters, TypedScope** inner) {
  TypedScope& scope = open_scope(graph, key, &outer);
  *inner = &scope;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const OnnxType type = i < parameters.size() && parameters[i] != 0
                              ? parameters[i]
                              : static_cast<OnnxType>(graph.inputs[i].onnx_type);
    scope.define({graph.inputs[i].name, type});
  }
  nodes(graph.nodes, scope);
  std::vector<OnnxType> types;
  for (const ImportedValueInfo& out : graph.outputs) {
    const TypedValue* v = scope.find(out.name).first;
    types.push_back(v == nullptr ? 0 : v->type);
  }
  return types;
}

void RootWalk::want_output(TypedScope& scope, size_t output, OnnxType type, const char* reason) {
  TypedValue* v = scope.find(scope.graph->outputs[output].name).first;
  if (v == nullptr) return;
  v->readers.push_back({nullptr, &scope, output, type, TypeRule::kBranchEdge, reason});
}

void RootWalk::if_node(Typed& t) {
  read_operands(t);
  std::vector<TypedScope*> scopes;
  std::vector<std::vector<OnnxType>> results;
  size_t number = 0;
  for (const ImportedAttribute& a : t.node.attributes)
    for (const auto& graph : a.graphs)
      results.push_back(
          body(*graph, body_key(place_number(t.node), number++), t.scope, {}, &scopes.emplace_back()));
  std::vector<OnnxType> types;
  for (size_t k = 0; k < t.node.outputs.size(); ++k) {
    OnnxType type = settled_result(t, k);
    bool first = type == 0;
    for (const std::vector<OnnxType>& branch : results) {
      if (!first || k >= branch.size()) continue;
      const OnnxType before = type;
      type = meeting(type, branch[k]);
      if (type == 0 && before != 0)
        refuse(t.node,
               fmt::format("its branches give '{}' types that have none in common", t.node.outputs[k]),
               "cast the results of the branches to one type");
    }
    for (size_t b = 0; b < results.size(); ++b)
      if (k < results[b].size())
        want_output(*scopes[b], k, type != 0 && castable(results[b][k]) ? type : results[b][k],
                    "the branches give one type");
    types.push_back(type);
  }
  define_results(t, types, false);
}

void RootWalk::loop_node(Typed& t, size_t first_carried, size_t carried, bool is_loop) {
  const ImportedAttribute* attribute = t.node.find("body");
  if (attribute == nullptr || attribute->graphs.empty()) {
    define_results(t, std::vector<OnnxType>(t.node.outputs.size()), false);
    return;
  }
  const ImportedGraph& graph = *attribute->graphs.front();
  std::vector<OnnxType>& types = context_.carried[full_place(t.node)];
  if (types.empty())
    for (size_t k = 0; k < carried; ++k) {
      const OnnxType settled = settled_result(t, k), given = t.wants[first_carried + k];
      types.push_back(settled != 0 && castable(given) ? settled : given);
    }
  std::vector<OnnxType> parameters;
  if (is_loop) parameters = {7, 9};
  parameters.insert(parameters.end(), types.begin(), types.end());
  for (size_t i = first_carried + carried; i < t.wants.size(); ++i) parameters.push_back(t.wants[i]);
  for (size_t k = 0; k < carried; ++k)
    if (const size_t i = first_carried + k; types[k] != 0 && t.wants[i] != 0 && t.wants[i] != types[k])
      want(t, i, types[k], TypeRule::kBranchEdge, "the loop carries this type");
  read_operands(t);
  TypedScope* inner = nullptr;
  const std::vector<OnnxType> results =
      body(graph, body_key(place_number(t.node), 0), t.scope, parameters, &inner);
  const size_t first_result = is_loop ? 1 : 0;
  if (is_loop && !results.empty()) want_output(*inner, 0, 9, "a condition is a truth value");
  std::vector<OnnxType> outer;
  for (size_t k = 0; first_result + k < results.size(); ++k) {
    const OnnxType gives = results[first_result + k];
    if (k >= carried) {
      want_output(*inner, first_result + k, gives, "");
      outer.push_back(gives);
      continue;
    }
    if (gives != 0 && gives != types[k] && settled_result(t, k) == 0) {
      const OnnxType both = meeting(types[k], gives);
      if (both == 0)
        refuse(t.node,
               fmt::format("it carries '{}' as {} and as {}, which have no common type",
                           t.node.inputs[first_carried + k], onnx_type_name(types[k]), onnx_type_name(gives)),
               "cast the carried value to one type in the body");
      context_.again |= both != types[k] && both != 0;
      if (both != 0) types[k] = both;
    }
    want_output(*inner, first_result + k, types[k] != 0 ? types[k] : gives, "the loop carries this type");
    outer.push_back(types[k]);
  }
  outer.resize(t.node.outputs.size());
  define_results(t, outer, false);
}

void RootWalk::map_node(Typed& t) {
  read_operands(t);
  const ImportedAttribute* attribute = t.node.find("body");
  std::vector<OnnxType> types;
  if (attribute != nullptr && !attribute->graphs.empty()) {
    TypedScope* inner = nullptr;
    types = body(*attribute->graphs.front(), body_key(place_number(t.node), 0), t.scope, t.wants, &inner);
    for (size_t k = 0; k < types.size(); ++k) want_output(*inner, k, types[k], "");
  }
  types.resize(t.node.outputs.size());
  define_results(t, types, false);
}

void RootWalk::call_node(Typed& t, const ImportedFunction& f, size_t number) {
  read_operands(t);
  const auto version = f.opsets.find("");
  RootWalk inner(context_, version == f.opsets.end() ? 0 : version->second);
  std::vector<Argument> arguments;
  for (size_t i = 0; i < t.has.size(); ++i) arguments.push_back({t.has[i], t.constants[i]});
  std::vector<OnnxType> types = inner.function(f, arguments, full_place(t.node) + "/");
  std::vector<ModelEdits::Function>& variants = context_.edits->functions[number];
  size_t variant = 0;
  while (variant < variants.size() && !(variants[variant].edits == inner.edits())) ++variant;
  if (variant == variants.size()) {
    const std::string name = variant == 0 ? f.name : fmt::format("{}_typed{}", f.name, variant + 1);
    for (Edit& e : inner.list()) list_.push_back(std::move(e));
    variants.push_back({name, std::move(inner.edits())});
  }
  if (variant > 0) {
    edits_.nodes[place_number(t.node)].op_type = variants[variant].name;
    list_.push_back({EditKind::kCopied, f.name, t.node.name, qualified_op(t.node), 0, 0,
                     rule_id(TypeRule::kBranchEdge), "its calls need other types in it",
                     variants[variant].name});
  }
  types.resize(t.node.outputs.size());
  define_results(t, types, false);
}

std::vector<OnnxType> RootWalk::function(const ImportedFunction& f, const std::vector<Argument>& arguments,
                                         std::string call) {
  prefix_ = std::move(call);
  collect_names(f.nodes);
  names_.insert(f.inputs.begin(), f.inputs.end());
  TypedScope& scope = scopes_.emplace_back();
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    TypedValue v{f.inputs[i]};
    if (i < arguments.size()) v.type = arguments[i].type, v.constant = arguments[i].constant;
    scope.define(std::move(v));
  }
  nodes(f.nodes, scope);
  std::vector<OnnxType> types;
  for (const std::string& out : f.outputs) {
    const TypedValue* v = scope.find(out).first;
    types.push_back(v == nullptr ? 0 : v->type);
  }
  choose_all();
  return types;
}

}  // namespace sinter::convert
