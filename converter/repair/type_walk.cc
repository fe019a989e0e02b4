#include "converter/repair/type_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "converter/import/onnx_operator.h"
#include "converter/types/representable.h"
#include "converter/types/settle.h"

namespace sinter::convert {
namespace {

DType dtype_of(OnnxType type) { return dtype_from_onnx(type); }
OnnxType type_of(DType dtype) { return static_cast<OnnxType>(dtype_to_onnx(dtype)); }

const ImportedTensor* tensor_attribute(const ImportedNode& n, const char* name) {
  const ImportedAttribute* a = n.find(name);
  return a != nullptr && !a->tensors.empty() ? &a->tensors.front() : nullptr;
}

OnnxType type_attribute(const ImportedNode& n, const char* name, OnnxType fallback) {
  const ImportedAttribute* a = n.find(name);
  if (a == nullptr || a->kind != ImportedAttribute::Kind::kInt) return fallback;
  return a->i >= 0 && a->i < 64 ? static_cast<OnnxType>(a->i) : 0;
}

// The data and the type of a Constant node.
std::pair<ConstantPtr, OnnxType> constant_of(const ImportedNode& n) {
  if (const ImportedTensor* t = tensor_attribute(n, "value"))
    return {t->data, static_cast<OnnxType>(t->onnx_type)};
  if (const ImportedTensor* t = tensor_attribute(n, "sparse_value"))
    return {nullptr, static_cast<OnnxType>(t->onnx_type)};
  for (const ImportedAttribute& a : n.attributes) {
    const auto count = [](const auto& list) { return Dims{static_cast<int64_t>(list.size())}; };
    if (a.name == "value_float") return {Constant::of<float>(DType::kFloat32, {}, {&a.f, 1}), 1};
    if (a.name == "value_floats") return {Constant::of<float>(DType::kFloat32, count(a.floats), a.floats), 1};
    if (a.name == "value_int") return {Constant::scalar_int(DType::kInt64, a.i), 7};
    if (a.name == "value_ints") return {Constant::int64s(a.ints), 7};
    if (a.name.starts_with("value_string")) return {nullptr, 8};
  }
  return {};
}

}  // namespace

size_t place_number(const ImportedNode& node) {
  const size_t colon = node.place.rfind(':');
  const size_t from = colon == std::string::npos ? 0 : colon + 1;
  size_t number = 0;
  std::from_chars(node.place.data() + from, node.place.data() + node.place.size(), number);
  return number;
}

void RootWalk::refuse(const ImportedNode& n, std::string why, std::string remedy) {
  context_.diagnostics.refuse(n.name, qualified_op(n), std::move(why), std::move(remedy));
}

void RootWalk::nodes(const std::vector<ImportedNode>& all, TypedScope& scope) {
  for (const ImportedNode& n : all) node(n, scope);
}

RootWalk::Typed RootWalk::typed(const ImportedNode& n, TypedScope& scope) {
  Typed t{n, scope, nullptr, {}, {}, {}, {}, {}, {}, false};
  for (const std::string& name : n.inputs) {
    const TypedValue* v = name.empty() ? nullptr : scope.find(name).first;
    t.has.push_back(v == nullptr ? 0 : v->type);
    t.constants.push_back(v == nullptr ? nullptr : v->constant);
  }
  t.wants = t.has;
  t.rules.resize(t.has.size()), t.reasons.resize(t.has.size()), t.left_out.resize(t.has.size());
  const auto at = context_.types.find(full_place(n));
  if (at != context_.types.end() && at->second.operands.size() == n.inputs.size()) t.settled = &at->second;
  return t;
}

void RootWalk::want(Typed& t, size_t i, OnnxType type, TypeRule rule, std::string reason) {
  t.wants[i] = type, t.rules[i] = rule, t.reasons[i] = std::move(reason);
}

// The types that Sinter has settled for the operands. Where these have other types here than they had when
// they were lowered (a branch that is never taken), they are settled anew.
void RootWalk::decide(Typed& t) {
  bool same = t.settled != nullptr;
  for (size_t i = 0; i < t.has.size() && same; ++i) {
    const DType given = t.settled->operands[i].given;
    same = given == DType::kNone || t.has[i] == 0 || given == dtype_of(t.has[i]);
  }
  if (same) {
    for (size_t i = 0; i < t.has.size(); ++i) {
      const NodeTypes::Operand& o = t.settled->operands[i];
      t.left_out[i] = o.left_out;
      if (o.settled.type != DType::kNone && t.has[i] != 0)
        want(t, i, type_of(o.settled.type), o.settled.rule, o.settled.reason);
    }
    return;
  }
  t.settled = nullptr;
  const OnnxOperator* op = find_operator(t.node.domain, t.node.op_type);
  if (op == nullptr || op->operands.empty()) return;
  std::vector<OperandFact> facts(t.has.size());
  for (size_t i = 0; i < facts.size(); ++i) {
    facts[i].name = fmt::format("operand {} ('{}')", i, t.node.inputs[i]);
    facts[i].dtype = dtype_of(t.has[i]), facts[i].constant = t.constants[i];
  }
  const Settlement s = settle(op->operand_rules(), facts);
  if (!s.refusal.empty()) return refuse(t.node, s.refusal, s.advice);
  for (size_t i = 0; i < facts.size(); ++i)
    if (s.operands[i].type != DType::kNone)
      want(t, i, type_of(s.operands[i].type), s.operands[i].rule, s.operands[i].reason);
}

// Brings operands that share a set of types into one of it.
bool RootWalk::meet(Typed& t, const std::vector<size_t>& members, const TypeSet& set, int version) {
  bool equal = true;
  for (const size_t i : members) equal &= t.wants[i] == t.wants[members[0]];
  OnnxType type = equal ? t.wants[members[0]] : 0;
  const auto text = [&] {
    std::string all;
    for (const size_t i : members)
      all +=
          fmt::format("{}'{}' is {}", all.empty() ? "" : ", ", t.node.inputs[i], onnx_type_name(t.wants[i]));
    return all;
  };
  if (type == 0) {
    // Constants take the type of the others if it holds them exactly.
    bool bends = true;
    for (const size_t i : members) {
      if (t.constants[i]) continue;
      bends &= type == 0 || type == t.wants[i];
      type = t.wants[i];
    }
    for (const size_t i : members)
      if (t.constants[i] && type != 0 && dtype_of(type) != DType::kNone)
        bends &= survives(*t.constants[i], dtype_of(type), true);
    if (!bends || !set.has(type)) type = 0;
  }
  if (type == 0) {
    std::vector<OperandFact> facts;
    for (const size_t i : members) {
      OperandFact& f = facts.emplace_back();
      f.name = fmt::format("operand {} ('{}')", i, t.node.inputs[i]);
      f.dtype = dtype_of(t.wants[i]), f.constant = t.constants[i];
    }
    const Settlement s = settle({t.node.op_type, "A+"}, facts);
    type = type_of(s.inner);
    if (!s.refusal.empty() || type == 0) {
      refuse(t.node,
             fmt::format("the standard requires one type for operands that have none in common: {}", text()),
             "cast them to one type in the model");
      return false;
    }
  }
  const OnnxType allowed = nearest_type(type, set);
  if (allowed == 0) {
    refuse(
        t.node,
        fmt::format("{} of operator set version {} does not take {}: {}", t.node.op_type, version,
                    onnx_type_name(type), text()),
        "import a newer operator set in the model, or cast the operands to a type that the operator takes");
    return false;
  }
  for (const size_t i : members) {
    if (t.wants[i] == allowed) continue;
    want(t, i, allowed, TypeRule::kInputTable,
         equal ? fmt::format("{}-{} does not take {}", t.node.op_type, version, onnx_type_name(type))
               : fmt::format("{}-{} takes these operands in one type", t.node.op_type, version));
    t.conformed = true;
  }
  return true;
}

bool RootWalk::conform(Typed& t, const Signature& signature) {
  std::map<std::string, std::vector<size_t>> groups;
  bool good = true;
  for (size_t i = 0; i < t.has.size(); ++i) {
    if (t.has[i] == 0 || t.left_out[i] || t.node.inputs[i].empty()) continue;
    const TypeSet set = signature.operand(i);
    if (set.name.empty() || set.differ)
      good &= meet(t, {i}, set, signature.version());
    else
      groups[set.name].push_back(i);
  }
  for (const auto& [name, members] : groups)
    good &= meet(t, members, signature.operand(members[0]), signature.version());
  return good;
}

OnnxType RootWalk::settled_result(const Typed& t, size_t k) const {
  return t.settled != nullptr && k < t.settled->results.size() ? type_of(t.settled->results[k]) : 0;
}

// The type of a result that no operand determines.
OnnxType RootWalk::free_result(const Typed& t, size_t k, const TypeSet& set) {
  const std::string& op = t.node.op_type;
  const OnnxType first = t.wants.empty() ? 0 : t.wants[0];
  if (op == "Constant") return constant_of(t.node).second;
  if (op == "Cast") {
    const ImportedAttribute* to = t.node.find("to");
    if (to != nullptr && to->kind == ImportedAttribute::Kind::kString) return settled_result(t, k);
    return type_attribute(t.node, "to", 0);
  }
  if (op == "BitCast") return type_attribute(t.node, "to", 0);
  if (op == "ConstantOfShape") {
    const ImportedTensor* value = tensor_attribute(t.node, "value");
    return value == nullptr ? 1 : static_cast<OnnxType>(value->onnx_type);
  }
  if (op == "RandomNormal" || op == "RandomUniform" || op == "SequenceEmpty")
    return type_attribute(t.node, "dtype", 1);
  if (op == "EyeLike" || op == "RandomNormalLike" || op == "RandomUniformLike" || op == "Bernoulli")
    return type_attribute(t.node, "dtype", first);
  if (op == "Multinomial") return type_attribute(t.node, "dtype", 6);
  if (op.ends_with("Window") || op == "MelWeightMatrix") return type_attribute(t.node, "output_datatype", 1);
  if (op == "LayerNormalization" && k > 0) return type_attribute(t.node, "stash_type", 1);
  if (op == "QuantizeLinear") {
    const OnnxType given = type_attribute(t.node, "output_dtype", 0);
    return given != 0 ? given : 2;
  }
  if (op == "DequantizeLinear") {
    const OnnxType given = type_attribute(t.node, "output_dtype", 0);
    return given != 0 ? given : t.wants.size() > 1 ? t.wants[1] : 0;
  }
  if (op.starts_with("Sequence") || op == "SplitToSequence" || op == "ConcatFromSequence" ||
      op.starts_with("Optional"))
    return first;
  return set.only() != 0 ? set.only() : settled_result(t, k);
}

std::vector<OnnxType> RootWalk::results_of(const Typed& t, const std::optional<Signature>& signature) {
  std::map<std::string, OnnxType> bound;
  if (signature)
    for (size_t i = 0; i < t.wants.size(); ++i)
      if (const TypeSet set = signature->operand(i); !set.name.empty() && !set.differ && t.wants[i] != 0)
        bound.emplace(set.name, t.wants[i]);
  std::vector<OnnxType> types;
  for (size_t k = 0; k < t.node.outputs.size(); ++k) {
    if (!signature) {
      types.push_back(settled_result(t, k));
      continue;
    }
    const TypeSet set = signature->result(k);
    const auto at = bound.find(set.name);
    types.push_back(at != bound.end() && !set.name.empty() ? at->second
                    : set.name.empty() && set.types != 0   ? set.only()
                                                           : free_result(t, k, set));
  }
  return types;
}

// `cast_back`: results get the types that Sinter gives them.
void RootWalk::define_results(const Typed& t, const std::vector<OnnxType>& types, bool cast_back) {
  const size_t place = place_number(t.node);
  for (size_t k = 0; k < t.node.outputs.size(); ++k) {
    const std::string& name = t.node.outputs[k];
    if (name.empty()) continue;
    TypedValue v{name, types[k], nullptr, nullptr, &t.node, k};
    if (t.node.domain.empty() && t.node.op_type == "Constant") v.constant = constant_of(t.node).first;
    const OnnxType settled = settled_result(t, k);
    if (cast_back && settled != 0 && types[k] != 0 && settled != types[k]) {
      NodeEdits& e = edits_.nodes[place];
      const std::string raw = fresh(fmt::format("{}_{}", name, onnx_type_name(types[k])));
      e.outputs[k] = raw;
      e.after.push_back({raw, name, fresh("cast_" + raw), settled});
      v.type = settled;
      list_.push_back({EditKind::kCast, name, t.node.name, qualified_op(t.node), types[k], settled,
                       rule_id(TypeRule::kOpCompute), "the result has the type that its readers expect",
                       name});
    }
    t.scope.define(std::move(v));
  }
}

void RootWalk::read_operands(Typed& t) {
  for (size_t i = 0; i < t.has.size(); ++i) {
    const std::string& name = t.node.inputs[i];
    if (name.empty()) continue;
    if (t.left_out[i]) {
      edits_.nodes[place_number(t.node)].inputs[i] = "";
      list_.push_back({EditKind::kLeftOut, name, t.node.name, qualified_op(t.node), t.has[i], 0,
                       rule_id(TypeRule::kInputTable), "no value of the operand's type is beyond this bound",
                       ""});
      continue;
    }
    if (TypedValue* v = t.scope.find(name).first; v != nullptr)
      v->readers.push_back({&t.node, &t.scope, i, t.wants[i], t.rules[i], t.reasons[i]});
  }
}

void RootWalk::node(const ImportedNode& n, TypedScope& scope) {
  Typed t = typed(n, scope);
  for (size_t f = 0; f < context_.model.functions.size(); ++f) {
    const ImportedFunction& function = context_.model.functions[f];
    if (function.name == n.op_type && function.domain == n.domain && function.overload == n.overload)
      return call_node(t, function, f);
  }
  decide(t);
  const auto signature = signature_of(
      n.domain, n.op_type, n.domain.empty() && opset_ > 0 ? std::max<int64_t>(opset_, n.opset) : n.opset);
  // The zero point states the type of the result.
  if (n.domain.empty() && n.op_type == "QuantizeLinear" && n.inputs.size() > 2 && t.has[2] != 0)
    if (const OnnxType result = settled_result(t, 0); result != 0 && result != t.has[2])
      want(t, 2, result, TypeRule::kQuantZero, "the zero point has the type of the result");
  if (signature && !conform(t, *signature)) {
    define_results(t, std::vector<OnnxType>(n.outputs.size()), false);
    return;
  }
  if (n.domain.empty() && n.op_type == "If") return if_node(t);
  if (n.domain.empty() && n.op_type == "Loop")
    return loop_node(t, 2, n.inputs.size() - std::min<size_t>(2, n.inputs.size()), true);
  if (n.domain.empty() && n.op_type == "Scan") {
    const ImportedAttribute* scanned = n.find("num_scan_inputs");
    const size_t first = n.opset < 9 ? 1 : 0,
                 count = scanned == nullptr ? 0 : static_cast<size_t>(scanned->i);
    const size_t rest = n.inputs.size() - std::min(first, n.inputs.size());
    return loop_node(t, first, rest - std::min(count, rest), false);
  }
  if (n.domain.empty() && n.op_type == "SequenceMap") return map_node(t);
  read_operands(t);
  bool edited = t.conformed;
  for (size_t i = 0; i < t.has.size(); ++i) edited |= t.wants[i] != t.has[i];
  define_results(t, results_of(t, signature), edited);
}

}  // namespace sinter::convert
