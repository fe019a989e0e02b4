#include <algorithm>
#include <cmath>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/read/reader.h"
#include "converter/types/representable.h"

namespace sinter::convert {
namespace {

using Kind = ImportedAttribute::Kind;

const Dims kNoDims;
constexpr const char* kAttributeAdvice = "correct the attribute in the model";

std::string status_text(const Status& status) {
  char text[300];
  format_status(status, text);
  return text;
}

}  // namespace

NodeLowering::NodeLowering(GraphLowering& parent, const ImportedNode& node)
    : parent_(parent),
      node_(node),
      outputs_(node.outputs.size(), kUnknown),
      attr_read_(node.attributes.size()) {
  for (const std::string& name : node.inputs) inputs_.push_back(parent.lookup(name));
  while (!inputs_.empty() && inputs_.back() == kAbsent) inputs_.pop_back();
  input_read_.resize(inputs_.size());
}

std::string type_advice(std::string_view type) {
  if (type.starts_with("string")) return "encode text before the model, and pass it numbers";
  if (type.starts_with("complex")) return "pass real and imaginary parts as separate floating-point values";
  return "pass it as a tensor of numbers of at least one byte";
}

// Operators of com.microsoft that share a name with ONNX follow its newest form.
int NodeLowering::opset() const {
  return node_.domain.empty() ? node_.opset : static_cast<int>(kNewestOpset);
}

bool NodeLowering::wants_output(size_t i) const {
  return i < node_.outputs.size() && !node_.outputs[i].empty();
}

DType NodeLowering::dtype(ValueId v) const { return v < 0 ? DType::kNone : parent_.graph().value(v).dtype; }
const Dims& NodeLowering::dims(ValueId v) const { return v < 0 ? kNoDims : parent_.graph().value(v).dims; }
ConstantPtr NodeLowering::constant(ValueId v) const {
  return v < 0 ? nullptr : parent_.graph().value(v).constant;
}

std::optional<std::vector<int64_t>> NodeLowering::constant_ints(size_t i) {
  if (!has_input(i) || input(i) == kUnknown) return std::nullopt;
  const ConstantPtr c = constant(input(i));
  if (!c) {
    // Shape arithmetic of what is known and what is not.
    if (auto items = parent_.lengths().known_items(input(i))) return items;
    refuse_advising(parent_.fixing_advice(input(i)), "input {} ('{}') decides a shape and must be constant",
                    i, node_.inputs[i]);
    return std::nullopt;
  }
  if (!is_integer(c->dtype()) && c->dtype() != DType::kBool) {
    for (const double x : c->as_doubles()) {
      if (std::abs(x) < 0x1p63 && x == std::trunc(x)) continue;
      refuse_advising("round it in the model, and store it as int64",
                      "input {} ('{}') must hold whole numbers but holds {}", i, node_.inputs[i], x);
      return std::nullopt;
    }
  }
  return c->as_int64s();
}

std::optional<std::vector<double>> NodeLowering::constant_doubles(size_t i) {
  if (!has_input(i) || input(i) == kUnknown) return std::nullopt;
  const ConstantPtr c = constant(input(i));
  if (!c) {
    refuse_advising(parent_.fixing_advice(input(i)), "input {} ('{}') must be constant", i, node_.inputs[i]);
    return std::nullopt;
  }
  return c->as_doubles();
}

template <class T>
std::optional<T> NodeLowering::sole(size_t i, const std::optional<std::vector<T>>& items) {
  if (!items) return std::nullopt;
  if (items->size() == 1) return items->front();
  refuse("input {} ('{}') must have one element but has {}", i, node_.inputs[i], items->size());
  return std::nullopt;
}
std::optional<int64_t> NodeLowering::constant_int(size_t i) { return sole(i, constant_ints(i)); }
std::optional<double> NodeLowering::constant_double(size_t i) { return sole(i, constant_doubles(i)); }

// ---- attributes

const ImportedAttribute* NodeLowering::find(std::string_view name, bool mark) {
  for (size_t i = 0; i < node_.attributes.size(); ++i) {
    if (node_.attributes[i].name != name) continue;
    if (mark) attr_read_[i] = true;
    return &node_.attributes[i];
  }
  return nullptr;
}

bool NodeLowering::has_attr(std::string_view name) const {
  return const_cast<NodeLowering*>(this)->find(name, false) != nullptr;
}
void NodeLowering::ignore_attr(std::string_view name) { find(name, true); }

// The attribute, where it is given; null where it is not, or refused because it is of another kind.
const ImportedAttribute* NodeLowering::find_of(std::string_view name, ImportedAttribute::Kind kind,
                                               const char* what) {
  const ImportedAttribute* a = find(name, true);
  if (a == nullptr || a->kind == kind) return a;
  refuse_advising(kAttributeAdvice, "attribute {} must be {}", name, what);
  return nullptr;
}
int64_t NodeLowering::attr_int(std::string_view name, int64_t fallback) {
  const ImportedAttribute* a = find_of(name, Kind::kInt, "an integer");
  return a == nullptr ? fallback : a->i;
}
double NodeLowering::attr_float(std::string_view name, double fallback) {
  const ImportedAttribute* a = find_of(name, Kind::kFloat, "a number");
  return a == nullptr ? fallback : static_cast<double>(a->f);
}
std::string NodeLowering::attr_string(std::string_view name, std::string_view fallback) {
  const ImportedAttribute* a = find_of(name, Kind::kString, "a string");
  return a == nullptr ? std::string(fallback) : a->s;
}
std::vector<int64_t> NodeLowering::attr_ints(std::string_view name, std::vector<int64_t> fallback) {
  if (const ImportedAttribute* one = find(name, true); one != nullptr && one->kind == Kind::kInt)
    return {one->i};
  const ImportedAttribute* a = find_of(name, Kind::kInts, "a list of integers");
  return a == nullptr ? fallback : a->ints;
}
std::vector<double> NodeLowering::attr_floats(std::string_view name, std::vector<double> fallback) {
  if (const ImportedAttribute* one = find(name, true); one != nullptr && one->kind == Kind::kFloat)
    return {static_cast<double>(one->f)};
  const ImportedAttribute* a = find_of(name, Kind::kFloats, "a list of numbers");
  return a == nullptr ? fallback : std::vector<double>(a->floats.begin(), a->floats.end());
}
std::vector<std::string> NodeLowering::attr_strings(std::string_view name) {
  const ImportedAttribute* a = find_of(name, Kind::kStrings, "a list of strings");
  return a == nullptr ? std::vector<std::string>() : a->strings;
}
ConstantPtr NodeLowering::attr_tensor(std::string_view name) {
  const ImportedAttribute* a = find_of(name, Kind::kTensor, "a tensor");
  if (a == nullptr) return nullptr;
  const ImportedTensor& t = a->tensors.front();
  if (!t.data)
    refuse_advising(kAttributeAdvice, "attribute {}: {}", name,
                    t.problem.empty() ? "strings are not supported" : t.problem);
  return t.data;
}
const ImportedGraph* NodeLowering::attr_graph(std::string_view name) {
  const ImportedAttribute* a = find_of(name, Kind::kGraph, "a graph");
  return a == nullptr ? nullptr : a->graphs.front().get();
}

// ---- building

std::vector<ValueId> NodeLowering::emit_many(OpAttrs attrs, std::vector<ValueId> inputs,
                                             size_t output_count) {
  return emit_many(std::move(attrs), std::move(inputs), std::vector<bool>(output_count, true));
}

// Constants of less than a byte, read by an operator that would give such values at run time, as bytes.
// False: there is none.
bool NodeLowering::widen_sub_bytes(std::vector<ValueId>* inputs, const std::vector<ValueId>& operands) {
  bool any = false;
  for (const ValueId v : operands) any |= v >= 0 && is_sub_byte(dtype(v)) && constant(v);
  if (!any) return false;
  parent_.graph().nodes.pop_back();  // what was emitted last
  *inputs = operands;
  for (ValueId& v : *inputs) {
    if (v < 0 || !is_sub_byte(dtype(v)) || !constant(v)) continue;
    const DType from = dtype(v);
    const DType to = computable(from);
    const std::string name = parent_.graph().value(v).name;
    v = emit(CastAttrs{static_cast<int64_t>(to), 1}, {v});
    record(name, from, to, TypeRule::kConstRetype, "values of less than a byte do not exist at run time",
           TypeEffect::kRetyped);
  }
  return true;
}

std::vector<ValueId> NodeLowering::emit_many(OpAttrs attrs, std::vector<ValueId> inputs,
                                             const std::vector<bool>& wanted) {
  for (const ValueId v : inputs)
    if (v >= 0 && !parent_.graph().value(v).bounded_dims.empty())
      return emit_bounded(*this, attrs, std::move(inputs), wanted);
  return emit_padded(std::move(attrs), std::move(inputs), wanted);
}

std::vector<ValueId> NodeLowering::emit_padded(OpAttrs attrs, std::vector<ValueId> inputs,
                                               const std::vector<bool>& wanted) {
  const std::vector<ValueId> unknown(wanted.size(), kUnknown);
  if (refused_ || std::find(inputs.begin(), inputs.end(), kUnknown) != inputs.end()) return unknown;
  std::vector<ValueId> results;
  const std::vector<ValueId> operands = inputs;
  const Status status = parent_.builder().emit(attrs, std::move(inputs), wanted, &results);
  if (status.ok()) {
    for (const ValueId id : results)
      if (id >= 0 && is_sub_byte(dtype(id)) && !constant(id) && widen_sub_bytes(&inputs, operands))
        return emit_padded(std::move(attrs), std::move(inputs), wanted);
    for (const ValueId id : results)
      if (id >= 0 && is_sub_byte(dtype(id)) && !constant(id))
        return refuse("gives {} at run time; types of less than a byte exist as constants only",
                      dtype_name(dtype(id))),
               unknown;
    return results;
  }
  refuse_status(status, op_of(attrs));
  return unknown;
}

ValueId NodeLowering::emit(OpAttrs attrs, std::vector<ValueId> inputs) {
  return emit_many(std::move(attrs), std::move(inputs), 1)[0];
}

ValueId NodeLowering::add_constant(ConstantPtr constant) {
  return parent_.graph().add_constant(std::move(constant));
}

ValueId NodeLowering::scalar(DType type, double value) {
  if (type == DType::kNone) return refuse("an operand is missing"), kUnknown;
  return add_constant(Constant::scalar(type, value));
}

ValueId NodeLowering::reshape(ValueId v, Dims new_dims) {
  if (v < 0 || dims(v) == new_dims) return v;
  if (new_dims.size() > kMaxRank)
    return refuse("a value of rank {}; at most 8 axes are supported", new_dims.size()), kUnknown;
  return emit(ViewAttrs{IntList(std::span<const int64_t>(new_dims)), -1}, {v});
}

ValueId NodeLowering::transpose(ValueId v, std::vector<int64_t> perm) {
  if (v < 0) return v;
  bool identity = true;
  for (size_t i = 0; i < perm.size(); ++i) identity &= perm[i] == static_cast<int64_t>(i);
  return identity ? v : emit(TransposeAttrs{IntList(std::span<const int64_t>(perm))}, {v});
}

ValueId NodeLowering::cast(ValueId v, DType to) {
  return cast(v, to, TypeRule::kOpCompute,
              fmt::format("{} is computed in {} here", node_.op_type, dtype_name(to)));
}

ValueId NodeLowering::cast(ValueId v, DType to, TypeRule rule, std::string reason) {
  if (v < 0 || dtype(v) == to) return v;
  const ValueId result = emit(CastAttrs{static_cast<int64_t>(to), 1}, {v});
  if (result >= 0 && !constant(result))
    record(parent_.graph().value(v).name, dtype(v), to, rule, std::move(reason), TypeEffect::kCast);
  return result;
}

ValueId NodeLowering::slice(ValueId v, int64_t axis, int64_t start, int64_t size, int64_t step) {
  if (v < 0) return v;
  const Dims d = dims(v);
  if (start == 0 && step == 1 && size == d[static_cast<size_t>(axis)]) return v;
  SliceAttrs a;
  for (size_t i = 0; i < d.size(); ++i) {
    const bool here = static_cast<int64_t>(i) == axis;
    a.starts.push(here ? start : 0), a.steps.push(here ? step : 1), a.sizes.push(here ? size : d[i]);
  }
  return emit(a, {v});
}

ValueId NodeLowering::broadcast(ValueId v, Dims to) {
  if (v < 0 || dims(v) == to) return v;
  return emit(BroadcastAttrs{IntList(std::span<const int64_t>(to))}, {v});
}

ValueId NodeLowering::unsqueeze(ValueId v, int64_t axis) {
  if (v < 0) return v;
  Dims d = dims(v);
  d.insert(d.begin() + axis, 1);
  return reshape(v, d);
}

ValueId NodeLowering::to_channels_last(ValueId v) {
  if (v < 0 || rank(v) < 3) return v;
  std::vector<int64_t> perm{0};
  for (int64_t i = 2; i < rank(v); ++i) perm.push_back(i);
  perm.push_back(1);
  return transpose(v, perm);
}

ValueId NodeLowering::to_channels_first(ValueId v) {
  if (v < 0 || rank(v) < 3) return v;
  std::vector<int64_t> perm{0, rank(v) - 1};
  for (int64_t i = 1; i < rank(v) - 1; ++i) perm.push_back(i);
  return transpose(v, perm);
}

bool NodeLowering::normalize_axis(int64_t* axis, int64_t for_rank) {
  if (*axis < -for_rank || *axis >= for_rank)
    return refuse_shapes("axis {} does not exist in a value of rank {}", *axis, for_rank);
  if (*axis < 0) *axis += for_rank;
  return true;
}

bool NodeLowering::normalize_axes(std::vector<int64_t>* axes, int64_t for_rank) {
  for (int64_t& axis : *axes)
    if (!normalize_axis(&axis, for_rank)) return false;
  std::vector<int64_t> sorted = *axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return refuse("an axis is named twice in [{}]", fmt::join(*axes, ","));
  return true;
}

bool NodeLowering::output(size_t i, ValueId v) {
  if (v == kUnknown || refused_) return false;
  if (i == 0 && result_.type != DType::kNone) v = cast(v, result_.type, result_.rule, result_.reason);
  if (v == kUnknown) return false;
  if (i < outputs_.size()) outputs_[i] = v;
  return true;
}

const std::vector<ValueId>* NodeLowering::sequence(size_t i) const { return parent_.sequence(input(i)); }

bool NodeLowering::output_sequence(size_t i, std::vector<ValueId> items) {
  for (const ValueId item : items)
    if (item < 0) return false;
  return output(i, parent_.add_sequence(std::move(items)));
}

std::string NodeLowering::sequence_text(ValueId v) const {
  if (const auto* items = parent_.sequence(v)) return fmt::format("a sequence of {}", items->size());
  return fmt::format("a sequence of at most {}", dims(parent_.stack(v))[0]);
}

// The node's operands in the model, for a refusal: "'x' float32[2,3], 'w' string".
std::string NodeLowering::operands_text() {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < node_.inputs.size() && i < kMost; ++i) {
    if (node_.inputs[i].empty()) continue;
    const ValueId id = parent_.lookup(node_.inputs[i]);
    const GraphLowering::Unusable* problem = id < 0 ? parent_.unusable(node_.inputs[i]) : nullptr;
    text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", node_.inputs[i],
                        id >= 0           ? to_string(dtype(id), dims(id))
                        : is_sequence(id) ? sequence_text(id)
                        : problem         ? problem->type
                                          : "of unknown type");
  }
  if (node_.inputs.size() > kMost) text += ", ...";
  return text;
}

// The faults that inference of the device's operation finds in its operands.
Refusal NodeLowering::refuse_status(const Status& status, Op op) {
  return refuse_text(
      fmt::format("{} ({})", status_text(status), op_name(op)),
      status.code == Code::kUnsupported
          ? fmt::format("cast operands to types that {} takes (docs/ops.md lists them), in the "
                        "model or with --keep TENSOR=TYPE",
                        node_.op_type)
          : shape_advice());
}

std::string NodeLowering::shape_advice() const {
  const bool computed =
      std::any_of(inputs_.begin(), inputs_.end(), [&](ValueId v) { return v >= 0 && !constant(v); });
  return std::string("correct the model so that these shapes agree") +
         (computed ? ", or give its inputs other shapes with --shape INPUT=D1,D2,..." : "");
}

Refusal NodeLowering::refuse_text(std::string message, std::string advice) {
  if (refused_) return {};
  if (advice.empty())
    advice = fmt::format(
        "correct this node in the model or export it in another form; docs/ops.md lists what {} takes",
        node_.op_type);
  const bool shapes = advice == shape_advice();
  parent_.diagnostics().add({Severity::kRefusal, node_.name, node_.op_type, std::move(message),
                             std::move(advice), operands_text(), shapes});
  refused_ = true;
  return {};
}

void NodeLowering::record(std::string value, DType before, DType after, TypeRule rule, std::string reason,
                          TypeEffect effect, std::vector<TypeRequest> requests) {
  parent_.ledger().add({std::move(value), node_.name, node_.op_type, before, after, rule, std::move(reason),
                        effect, std::move(requests)});
}

void NodeLowering::warn_text(std::string message, std::string advice) {
  parent_.diagnostics().warn(node_.name, node_.op_type, std::move(message), std::move(advice));
}

}  // namespace sinter::convert
