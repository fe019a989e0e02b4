// The fewest edits that give every reader the type that it wants: an initializer that nobody reads as it is
// gets the type, another a copy, and any other value one Cast for all readers of a type.
#include <fmt/format.h>

#include <algorithm>

#include "converter/ir/builder.h"
#include "converter/repair/type_walk.h"
#include "converter/types/representable.h"

namespace sinter::convert {
namespace {

// Larger data stays as it is stored, behind a Cast.
constexpr size_t kMostRetyped = size_t{16} << 20;

const ImportedTensor* literal_of(const TypedValue& v) {
  if (v.producer == nullptr || !v.producer->domain.empty()) return nullptr;
  if (v.producer->op_type != "Constant" && v.producer->op_type != "ConstantOfShape") return nullptr;
  const ImportedAttribute* a = v.producer->find("value");
  return a == nullptr || a->tensors.empty() ? nullptr : &a->tensors.front();
}

// The data that an edit would store in another type; null: none.
ConstantPtr stored_in(const TypedValue& v) {
  if (v.initializer != nullptr) return v.initializer->external ? nullptr : v.initializer->data;
  if (const ImportedTensor* t = literal_of(v)) return t->external ? nullptr : t->data;
  if (v.producer != nullptr && v.producer->domain.empty() && v.producer->op_type == "ConstantOfShape")
    return Constant::of<float>(DType::kFloat32, {1}, std::vector<float>{0});
  return v.producer != nullptr ? v.constant : nullptr;
}

bool reads(const ValueReader& r, OnnxType type) { return r.wants == type; }

}  // namespace

ConstantPtr cast_constant(const ConstantPtr& constant, DType to) {
  Graph scratch;
  Builder builder(scratch);
  std::vector<ValueId> result;
  const ValueId from = scratch.add_constant(constant);
  if (!builder.emit(CastAttrs{static_cast<int64_t>(to), 1}, {from}, 1, &result).ok()) return nullptr;
  return scratch.value(result[0]).constant;
}

void RootWalk::collect_names(const std::vector<ImportedNode>& nodes) {
  for (const ImportedNode& n : nodes) {
    names_.insert(n.name);
    names_.insert(n.outputs.begin(), n.outputs.end());
    names_.insert(n.inputs.begin(), n.inputs.end());
    for (const ImportedAttribute& a : n.attributes)
      for (const auto& graph : a.graphs) collect_names(*graph);
  }
}

void RootWalk::collect_names(const ImportedGraph& graph) {
  collect_names(graph.nodes);
  for (const auto* list : {&graph.inputs, &graph.outputs, &graph.value_info})
    for (const ImportedValueInfo& v : *list) names_.insert(v.name);
  for (const ImportedTensor& t : graph.initializers) names_.insert(t.name);
}

std::string RootWalk::fresh(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

void RootWalk::redirect(const ValueReader& reader, const std::string& name) {
  if (reader.node != nullptr)
    edits_.nodes[place_number(*reader.node)].inputs[reader.index] = name;
  else
    edits_.graphs[reader.scope->key].output_names[reader.index] = name;
}

void RootWalk::note(EditKind kind, const TypedValue& v, const ValueReader& r, OnnxType after,
                    std::string made) {
  list_.push_back({kind, v.name, r.node == nullptr ? "" : r.node->name,
                   r.node == nullptr ? "" : qualified_op(*r.node), v.type, after, rule_id(r.rule), r.reason,
                   std::move(made)});
}

// Returns whether the value's data can be stored in a type: exactly, or as the nearest number of a lone one.
bool RootWalk::retypes(const TypedValue& v, OnnxType type) const {
  const ConstantPtr data = stored_in(v);
  const DType to = dtype_from_onnx(type);
  if (!data || to == DType::kNone || data->byte_size() > kMostRetyped) return false;
  // Callers may give such an initializer another value, of its type.
  if (v.initializer != nullptr && context_.model.ir_version >= 4)
    for (const TypedScope& s : scopes_)
      for (const ImportedValueInfo& in :
           s.graph == nullptr ? decltype(s.graph->inputs)() : s.graph->initialized_inputs)
        if (in.name == v.name) return false;
  return survives(*data, to, true) || (data->size() <= 1 && survives(*data, to, false));
}

void RootWalk::choose_all() {
  if (context_.diagnostics.refused()) return;
  for (TypedScope& scope : scopes_) {
    for (TypedValue& v : scope.values) choose(v, scope);
    if (scope.graph != nullptr) correct_declarations(scope);
  }
}

// An output of the model keeps its name, so that its producer gives another one.
void RootWalk::choose_output(TypedValue& v, TypedScope& scope, const ValueReader& output) {
  NodeEdits& e = edits_.nodes[place_number(*v.producer)];
  const std::string raw = fresh(fmt::format("{}_{}", v.name, onnx_type_name(v.type)));
  bool renamed = false;
  for (NewCast& cast : e.after)
    if (cast.output == v.name) cast.output = raw, renamed = true;
  if (!renamed) e.outputs[v.result] = raw;
  for (const ValueReader& r : v.readers)
    if (r.node != nullptr && r.wants != output.wants) redirect(r, raw);
  e.after.push_back({raw, v.name, fresh("cast_" + raw), output.wants});
  note(EditKind::kCast, v, output, output.wants, v.name);
  // The others read the producer's result from here on.
  std::vector<ValueReader> rest;
  for (const ValueReader& r : v.readers)
    if (r.wants != output.wants) rest.push_back(r);
  TypedValue inner = v;
  inner.name = raw, inner.readers = rest;
  choose(inner, scope);
  v.type = output.wants;
}

void RootWalk::choose(TypedValue& v, TypedScope& scope) {
  for (const ValueReader& r : v.readers)
    if (r.node == nullptr && r.scope == main_ && r.wants != v.type && v.producer != nullptr)
      return choose_output(v, scope, r);
  std::vector<OnnxType> types;
  for (const ValueReader& r : v.readers)
    if (r.wants != v.type && r.wants != 0 && std::find(types.begin(), types.end(), r.wants) == types.end())
      types.push_back(r.wants);
  if (types.empty()) return;
  const bool as_it_is = std::any_of(v.readers.begin(), v.readers.end(),
                                    [&](const ValueReader& r) { return r.wants == v.type || r.wants == 0; });
  const bool clones = v.initializer != nullptr && context_.model.ir_version >= 4;
  size_t kept = 0;
  for (const OnnxType type : types) kept += !retypes(v, type);
  // What can only be cast is cast from the stored data.
  bool in_place = !as_it_is && kept == 0 && (clones || types.size() == 1);
  const ConstantPtr data = stored_in(v);
  std::optional<OnnxType> stored;
  for (const OnnxType type : types) {
    std::vector<ValueReader> readers;
    for (const ValueReader& r : v.readers)
      if (reads(r, type)) readers.push_back(r);
    const ValueReader& first = readers.front();
    if (in_place) {
      in_place = false, stored = type;
      NewTensor tensor{v.name, cast_constant(data, dtype_from_onnx(type))};
      if (v.initializer != nullptr)
        edits_.graphs[scope.key].retyped[v.name] = std::move(tensor);
      else
        edits_.nodes[place_number(*v.producer)].value = std::move(tensor);
      note(EditKind::kRetyped, v, first, type);
      continue;
    }
    const std::string made = fresh(fmt::format("{}_{}", v.name, onnx_type_name(type)));
    if (clones && retypes(v, type)) {
      edits_.graphs[scope.key].clones[v.name].push_back({made, cast_constant(data, dtype_from_onnx(type))});
      note(EditKind::kCloned, v, first, type, made);
      for (const ValueReader& r : readers) redirect(r, made);
      continue;
    }
    const NewCast cast{v.name, made, fresh("cast_" + made), type};
    const bool elsewhere = std::all_of(readers.begin(), readers.end(), [&](const ValueReader& r) {
      return r.node == nullptr && r.scope != &scope;
    });
    // The result of a body is a value of that body.
    if (elsewhere)
      edits_.graphs[first.scope->key].first.push_back(cast);
    else if (v.producer != nullptr)
      edits_.nodes[place_number(*v.producer)].after.push_back(cast);
    else
      edits_.graphs[scope.key].first.push_back(cast);
    note(EditKind::kCast, v, first, type, made);
    for (const ValueReader& r : readers) redirect(r, made);
  }
  if (stored) v.type = *stored;
}

void RootWalk::correct_declarations(TypedScope& scope) {
  const auto correct = [&](const ImportedValueInfo& info, OnnxType type,
                           std::map<std::string, OnnxType>* into, const char* reason) {
    if (type == 0 || !info.other.empty() || info.onnx_type == type || info.onnx_type == 0) return;
    (*into)[info.name] = type;
    list_.push_back({EditKind::kDeclared, info.name, "", "", static_cast<OnnxType>(info.onnx_type), type,
                     rule_id(TypeRule::kClaimMetadata), reason, ""});
  };
  const auto type_of = [&](const std::string& name) {
    const auto at = scope.by_name.find(name);
    return at == scope.by_name.end() ? 0 : at->second->type;
  };
  GraphEdits found;
  for (const ImportedValueInfo& v : scope.graph->value_info)
    correct(v, type_of(v.name), &found.infos, "the operators give another type than the file declares");
  for (const ImportedValueInfo& v : scope.graph->initialized_inputs)
    correct(v, type_of(v.name), &found.inputs, "the data has another type than the file declares");
  if (&scope != main_) {
    for (const ImportedValueInfo& v : scope.graph->inputs)
      correct(v, type_of(v.name), &found.inputs, "the body gets another type than the file declares");
    for (size_t i = 0; i < scope.graph->outputs.size(); ++i) {
      const ImportedValueInfo& out = scope.graph->outputs[i];
      TypedValue* v = scope.find(out.name).first;
      if (v == nullptr || out.onnx_type == 0 || !out.other.empty()) continue;
      OnnxType type = v->type;
      for (const ValueReader& r : v->readers)
        if (r.node == nullptr && r.scope == &scope && r.index == i && r.wants != 0) type = r.wants;
      if (type == 0 || type == out.onnx_type) continue;
      found.outputs[i] = type;
      list_.push_back({EditKind::kDeclared, out.name, "", "", static_cast<OnnxType>(out.onnx_type), type,
                       rule_id(TypeRule::kClaimMetadata),
                       "the body gives another type than the file declares", ""});
    }
  }
  if (found.infos.empty() && found.inputs.empty() && found.outputs.empty()) return;
  GraphEdits& e = edits_.graphs[scope.key];
  e.infos = std::move(found.infos), e.inputs = std::move(found.inputs);
  for (const auto& [i, type] : found.outputs) e.outputs[i] = type;
}

}  // namespace sinter::convert
