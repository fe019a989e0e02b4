#include "converter/quantize/integers/insert_quantizers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "converter/cost/node_cost.h"
#include "converter/cost/work.h"
#include "converter/ir/builder.h"
#include "converter/ir/integer_weights.h"
#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/passes/integers/integer_rows.h"
#include "converter/quantize/integers/given_integers.h"
#include "converter/quantize/integers/integer_recurrent.h"
#include "converter/quantize/integers/table_functions.h"
#include "converter/quantize/integers/unsuited_operations.h"
#include "converter/quantize/integers/value_scales.h"
#include "converter/quantize/weights/weight_only.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

enum class Kind { kFloat, kSteep, kProduct, kArithmetic, kTable, kMovement };

bool float_value(const Graph& g, ValueId id) {
  return id >= 0 && g.value(id).dtype == DType::kFloat32 &&
         (g.value(id).bounded_dims.empty() || g.is_input(id)) && element_count(g.value(id).dims) > 0;
}
bool data(const Graph& g, ValueId id) { return float_value(g, id) && !g.is_constant(id); }
bool is_scalar(const Graph& g, ValueId id) { return g.is_constant(id) && g.value(id).constant->size() == 1; }

// The factor of a division by a constant; null: it is not one, or not finite.
ConstantPtr reciprocals(const Graph& g, ValueId id) {
  if (!g.is_constant(id) || g.value(id).dtype != DType::kFloat32) return nullptr;
  std::vector<float> items;
  for (const double x : g.value(id).constant->as_doubles()) {
    items.push_back(static_cast<float>(1 / x));
    if (!std::isfinite(items.back())) return nullptr;
  }
  return Constant::of<float>(DType::kFloat32, g.value(id).dims, items);
}

constexpr double kFarConstant = 1e4;  // such as masks; a range that holds them has no steps left

// Values joined with others under one range: data, or constants that leave enough steps.
bool joinable(const Graph& g, ValueId id) {
  if (data(g, id)) return true;
  if (!float_value(g, id)) return false;
  const std::vector<double> items = g.value(id).constant->as_doubles();
  return std::all_of(items.begin(), items.end(), [](double x) { return std::fabs(x) < kFarConstant; });
}

// `function`: of one value, element by element.
Kind kind_of(const Graph& g, const Node& node, bool function) {
  if (function) return Kind::kTable;
  if (node.outputs.size() != 1 || !node.bodies.empty() || !float_value(g, node.outputs[0]) ||
      node.inputs.empty())
    return Kind::kFloat;
  const ValueId x = node.inputs[0];
  if (weight_axis(g, node) >= 0) return data(g, x) ? Kind::kProduct : Kind::kFloat;
  const auto given = [&](bool holds) { return holds ? Kind::kArithmetic : Kind::kFloat; };
  // Of int8; sums of int16 have a lower limit, which counts once types are chosen.
  const auto has_row = [&] { return has_integer_row(g, node, DType::kInt8); };
  // Any of these data, and all of them such that one range serves.
  const auto joins = [&](const std::vector<size_t>& operands) {
    bool any = false, all = true;
    for (const size_t i : operands) any |= data(g, node.inputs[i]), all &= joinable(g, node.inputs[i]);
    return given(any && all);
  };
  if (const auto operands = joined_operands(node); !operands.empty()) return joins(operands);
  if (integer_row(node.op()).kind == IntegerRow::kNone) return Kind::kFloat;
  switch (node.op()) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kMatMul:
      return has_row() ? joins({0, 1}) : Kind::kFloat;
    case Op::kDiv:
      return given(data(g, x) && reciprocals(g, node.inputs[1]) != nullptr);
    case Op::kPRelu:
    case Op::kAvgPool:
    case Op::kSoftmax:
      return given(data(g, x) && has_row());
    case Op::kReduce:
      if (summed_elements(g, node) > 0) return given(data(g, x) && has_row());
      break;
    case Op::kPad:
      if (static_cast<PadMode>(node.as<PadAttrs>()->mode) != PadMode::kConstant || node.inputs.size() < 2 ||
          node.inputs[1] < 0)
        break;
      if (!is_scalar(g, node.inputs[1]) || !joinable(g, node.inputs[1])) return Kind::kFloat;
      break;
    default:
      break;
  }
  return keeps_scale(g, node) && data(g, x) ? Kind::kMovement : Kind::kFloat;
}

// Steps of weights that keep biases and multipliers within their types: channels that (nearly) nothing passes
// have weights that are next to nothing.
std::vector<double> least_steps(const Graph& g, const Node& node, size_t channels, const QuantParams* x,
                                const QuantParams* y) {
  std::vector<double> least(channels, 0);
  if (x == nullptr) return least;
  if (node.inputs.size() > 2 && node.inputs[2] >= 0) {
    const std::vector<double> bias = g.value(node.inputs[2]).constant->as_doubles();
    for (size_t c = 0; c < channels && c < bias.size(); ++c)
      least[c] = std::fabs(bias[c]) * (x->type == DType::kInt8 ? 0x1p-30 : 0x1p-50) / x->scale;
  }
  for (double& step : least)
    if (y != nullptr) step = std::max(step, y->scale * 0x1p-31 / x->scale);
  return least;
}

// Weights per output channel; other constants that are neither slopes nor scalars as a whole. What is joined
// with other values is rounded as these are.
void round_constants(Graph& g, Node& node, const QuantParams* x, const QuantParams* y) {
  if (const int64_t axis = weight_axis(g, node); axis >= 0) {
    const Value& w = g.value(node.inputs[1]);
    const auto channels = static_cast<size_t>(w.dims[static_cast<size_t>(axis)]);
    node.inputs[1] = g.add_constant(in_steps(w.constant, axis, least_steps(g, node, channels, x, y)), w.name);
    return;
  }
  if (const auto* div = node.as<DivAttrs>();
      div != nullptr && g.is_constant(node.inputs[1]) && !is_scalar(g, node.inputs[1])) {
    const MulAttrs mul{div->act_min, div->act_max};
    node.inputs[1] = g.add_constant(reciprocals(g, node.inputs[1]), g.value(node.inputs[1]).name);
    node.attrs = mul;
  }
  if (node.as<PReluAttrs>() != nullptr || !joined_operands(node).empty() || selected_operands(node) > 0)
    return;
  if (y != nullptr && y->type == DType::kInt16) return;  // they have steps enough
  for (ValueId& id : node.inputs) {
    if (id < 0 || !g.is_constant(id) || is_scalar(g, id)) continue;
    const ConstantPtr c = g.value(id).constant;
    id = g.add_constant(in_steps(c->reshaped({1, c->size()}), 0)->reshaped(c->dims()), g.value(id).name);
  }
}

// Whether a node reads a value as its function makes it, not rounded.
bool reads_inner(const std::vector<ValueId>& roots, const Node& node, ValueId id) {
  return is_function(roots, node) && id >= 0 && roots[static_cast<size_t>(id)] != id;
}

}  // namespace

const char* reason_name(Reason reason) {
  switch (reason) {
    case Reason::kNoKernel:
      return "no kernel";
    case Reason::kRange:
      return "range";
    case Reason::kAccuracy:
      return "accuracy";
    case Reason::kSlower:
      return "slower";
    case Reason::kUser:
      return "user";
    default:
      return "";
  }
}

int64_t weight_axis(const Graph& g, const Node& node) {
  const bool product = node.as<ConvAttrs>() || node.as<DepthwiseConvAttrs>() ||
                       node.as<ConvTransposeAttrs>() || node.as<FullyConnectedAttrs>();
  if (!product || !g.is_constant(node.inputs[1]) ||
      (node.inputs.size() > 2 && node.inputs[2] >= 0 && !g.is_constant(node.inputs[2])))
    return -1;
  const auto rank = static_cast<int64_t>(g.value(node.inputs[1]).dims.size());
  return node.as<DepthwiseConvAttrs>() != nullptr ? rank - 1 : 0;
}

std::vector<Role> assign_roles(const Graph& g, const LeftMap& left, std::vector<LayerFate>* fates) {
  const size_t count = g.nodes.size();
  std::vector<Kind> kinds;
  const std::vector<ValueId> roots = function_roots(g);
  for (const Node& node : g.nodes) kinds.push_back(kind_of(g, node, is_function(roots, node)));
  const std::vector<bool> steep = steep_nodes(g, roots);
  for (size_t n = 0; n < count; ++n)
    if (steep[n] && kinds[n] != Kind::kFloat) kinds[n] = Kind::kSteep;
  std::vector<Role> roles(count, Role::kInteger);
  // A function is float as a whole.
  std::set<ValueId> float_functions;
  for (const Node& node : g.nodes)
    if (is_function(roots, node) && left.contains(node.outputs[0]))
      float_functions.insert(roots[static_cast<size_t>(node.outputs[0])]);
  const auto is_port = [&](const Node& node) {
    return !node.outputs.empty() && left.integer_ports.contains(node.outputs[0]);
  };
  const auto left_out = [&](const Node& node) {
    return !node.outputs.empty() && !is_port(node) &&
           (left.contains(node.outputs[0]) ||
            (is_function(roots, node) &&
             float_functions.contains(roots[static_cast<size_t>(node.outputs[0])])));
  };
  for (size_t n = 0; n < count; ++n)
    if (!is_port(g.nodes[n]) &&
        (kinds[n] == Kind::kFloat || kinds[n] == Kind::kSteep || left_out(g.nodes[n])))
      roles[n] = Role::kFloat;
  const Uses uses(g);
  // An operation with no integer operation before or after it gains nothing from being rounded twice.
  const auto fed = [&](const Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const int p = id < 0 ? -1 : uses.producer[static_cast<size_t>(id)];
      return p >= 0 && (roles[static_cast<size_t>(p)] == Role::kInteger ||
                        given_integers(g, g.nodes[static_cast<size_t>(p)]));
    });
  };
  const auto read = [&](const Node& node) {
    const auto& readers = uses.readers[static_cast<size_t>(node.outputs[0])];
    return std::any_of(readers.begin(), readers.end(),
                       [&](int r) { return r >= 0 && roles[static_cast<size_t>(r)] != Role::kFloat; });
  };
  // A product whose result is kept in float: its operand must be rounded for it if nothing else is, or else
  // converted back to float if it does not compute on integers. Transposed convolutions and several outputs
  // per channel have no fast kernel that gives float32. Where memory decides, the operand's bytes are
  // compared with those that each weight saves.
  const auto slow = [&](const Node& node) {
    if (left.force_int8 || read(node)) return false;
    const Dims &x = g.value(node.inputs[0]).dims, &y = g.value(node.outputs[0]).dims;
    constexpr int64_t kSaved = sizeof(float) - sizeof(int8_t);
    if (left.memory_decides() &&
        (fed(node) || kSaved * element_count(g.value(node.inputs[1]).dims) > element_count(x)))
      return false;
    if (node.as<ConvTransposeAttrs>() || (node.as<DepthwiseConvAttrs>() && x.back() != y.back())) return true;
    const double boundary = boundary_cost(left.cpu, element_count(x));
    return int8_cost(left.cpu, g, node) + (fed(node) ? -boundary : boundary) >= float_cost(left.cpu, g, node);
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t n = 0; n < count; ++n) {
      const Node& node = g.nodes[n];
      const bool product = kinds[n] == Kind::kProduct;
      const auto lies_between = [&] {
        if (is_port(node)) return true;
        return left.require_int8 ? fed(node) || read(node) : fed(node) && read(node);
      };
      if (roles[n] != Role::kInteger || (product ? !slow(node) : lies_between())) continue;
      roles[n] = product ? Role::kReader : Role::kFloat, again = true;
    }
  }
  for (size_t n = 0; fates != nullptr && n < count; ++n) {
    const Node& node = g.nodes[n];
    // Integers that are given are read as they are.
    if (node.outputs.empty() || node.op() == Op::kView || given_integers(g, node)) continue;
    const ValueId result = is_recurrent(node.op()) ? recurrent_result(node) : node.outputs[0];
    if (!float_value(g, result)) continue;
    LayerFate fate{node.name, op_info(node.op())->name, result, roles[n] == Role::kInteger, {}};
    fate.multiply_adds = multiply_adds(CallShape(g, node));
    fate.float_time = float_cost(left.cpu, g, node), fate.integer_time = int8_cost(left.cpu, g, node);
    if (!fate.integer) {
      const auto asked = left.find(result);
      if (asked != left.end())
        fate.left = asked->second;
      else if (const std::string why = is_recurrent(node.op()) ? no_integer_form(g, node) : ""; !why.empty())
        fate.left = {Reason::kNoKernel, why + "; weights of 1024 numbers or more are kept in 8 bits"};
      else if (is_recurrent(node.op()))
        fate.left = {!left.asks_for_integers() && !gains_on_integers(left.cpu, g, node) ? Reason::kSlower
                                                                                        : Reason::kAccuracy,
                     "weights of 1024 numbers or more are kept in 8 bits"};
      else if (kinds[n] == Kind::kFloat)
        fate.left.reason = Reason::kNoKernel;
      else if (kinds[n] == Kind::kSteep)
        fate.left = {Reason::kRange, "steep near zero, where int8 has few steps"};
      else
        fate.left = {Reason::kSlower, kinds[n] == Kind::kProduct ? "its result is kept in float"
                                                                 : "not between integer operations"};
    }
    fates->push_back(std::move(fate));
  }
  return roles;
}

std::vector<ValueId> values_to_round(const Graph& g, const std::vector<Role>& roles) {
  const std::vector<ValueId> roots = function_roots(g);
  const Uses uses(g);
  std::set<ValueId> integer_made, values;
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    for (const ValueId id : g.nodes[n].inputs)
      if (data(g, id) && !reads_inner(roots, g.nodes[n], id) &&
          (roles[n] == Role::kInteger || (roles[n] == Role::kReader && integer_made.contains(id))))
        values.insert(id);
    if (roles[n] != Role::kInteger) continue;
    const ValueId y = g.nodes[n].outputs[0];
    integer_made.insert(y);
    // The last one before floats; a product gives these by itself.
    const auto& readers = uses.readers[static_cast<size_t>(y)];
    if (data(g, y) && weight_axis(g, g.nodes[n]) < 0 &&
        std::none_of(readers.begin(), readers.end(),
                     [&](int r) { return r >= 0 && roles[static_cast<size_t>(r)] != Role::kFloat; }))
      values.insert(y);
  }
  return {values.begin(), values.end()};
}

std::vector<ValueId> scaled_values(const Graph& g, const std::vector<Role>& roles) {
  std::set<ValueId> moved;
  for (size_t n = 0; n < g.nodes.size(); ++n)
    if (roles[n] == Role::kInteger && keeps_scale(g, g.nodes[n])) moved.insert(g.nodes[n].outputs[0]);
  std::vector<ValueId> values = values_to_round(g, roles);
  std::erase_if(values, [&](ValueId id) { return moved.contains(id); });
  return values;
}

std::map<ValueId, ValueId> with_moved(const Graph& g, const std::vector<Role>& roles,
                                      const std::vector<ValueId>& values) {
  std::map<ValueId, ValueId> result;
  for (const ValueId id : values) result[id] = id;
  for (size_t n = 0; !result.empty() && n < g.nodes.size(); ++n) {
    if (roles[n] != Role::kInteger || !keeps_scale(g, g.nodes[n])) continue;
    const auto from = result.find(g.nodes[n].inputs[0]);
    if (from != result.end()) result[g.nodes[n].outputs[0]] = from->second;
  }
  return result;
}

void round_weights(Graph& g, const std::vector<Role>& roles) {
  for (size_t n = 0; n < g.nodes.size(); ++n)
    if (roles[n] == Role::kInteger) round_constants(g, g.nodes[n], nullptr, nullptr);
}

namespace {

// The number that padding has, on the scale of what is padded.
void round_fill(Graph& g, Node& node, const QuantParams* params) {
  const auto* pad = node.as<PadAttrs>();
  if (pad == nullptr || params == nullptr || static_cast<PadMode>(pad->mode) != PadMode::kConstant ||
      node.inputs.size() < 2 || !is_scalar(g, node.inputs[1]))
    return;
  const double fill = g.value(node.inputs[1]).constant->as_doubles()[0],
               near = static_cast<double>(params->quantize(fill) - params->zero_point) * params->scale;
  if (std::fabs(near - fill) > params->scale / 2 * 1.001) return;
  node.inputs[1] =
      g.add_constant(Constant::scalar(DType::kFloat32, near)->reshaped(g.value(node.inputs[1]).dims));
}

}  // namespace

int place_quantizers(Graph& g, const std::vector<Role>& roles, const std::map<ValueId, QuantParams>& params) {
  const std::vector<ValueId> roots = function_roots(g);
  const std::vector<ValueId> read = values_to_round(g, roles);
  const std::set<ValueId> wanted(read.begin(), read.end());
  const ValueScales scales(g, roles, wanted, params);
  std::vector<Node> old = std::move(g.nodes), nodes;
  g.nodes.clear();
  Builder builder(g);
  builder.set_target(&nodes);
  std::map<ValueId, ValueId> rounded;
  std::set<ValueId> integer_made;
  const auto round = [&](ValueId id, const Builder::Origin& origin) {
    if (!params.contains(id) || !wanted.contains(id)) return;
    const QuantParams& p = *scales.find(id);
    builder.set_origin(origin);
    const std::vector<ValueId> scale = {g.add_constant(Constant::scalar(DType::kFloat32, p.scale)),
                                        g.add_constant(Constant::scalar_int(p.type, p.zero_point))};
    std::vector<ValueId> q, d;
    QuantizeAttrs quantize{};
    quantize.to = static_cast<int64_t>(p.type);
    if (!builder.emit(quantize, {id, scale[0], scale[1]}, 1, &q).ok() ||
        !builder.emit(DequantizeAttrs{}, {q[0], scale[0], scale[1]}, 1, &d).ok())
      throw std::logic_error("a value cannot be quantized");
    g.value(q[0]).name = g.value(id).name.empty() ? "" : g.value(id).name + "." + dtype_name(p.type);
    g.value(q[0]).order = g.value(d[0]).order = g.value(id).order;
    rounded[id] = d[0];
    // A public result is dequantized from the integers, under its name.
    if (!integer_made.contains(id)) return;
    for (ValueId& output : g.outputs) {
      if (output != id) continue;
      output = d[0];
      std::swap(g.value(id).name, g.value(d[0]).name);
    }
  };
  for (const ValueId id : g.inputs) round(id, {g.value(id).name, "input"});
  for (size_t n = 0; n < old.size(); ++n) {
    Node node = std::move(old[n]);
    const bool integer = roles[n] == Role::kInteger;
    const ValueId moved = node.inputs.empty() ? kAbsent : node.inputs[0];
    // What is computed on integers is read as these by all; what is float anyway only by operations on
    // integers.
    for (ValueId& id : node.inputs)
      if (const auto at = rounded.find(id);
          at != rounded.end() && (integer || integer_made.contains(id)) && !reads_inner(roots, node, id))
        id = at->second;
    if (integer) round_fill(g, node, scales.find(moved));
    if (integer) round_constants(g, node, scales.find(moved), scales.find(node.outputs[0]));
    const Builder::Origin origin{node.name, node.origin};
    // Operations that only move the elements of one value keep that value's scale.
    const bool moves = integer && keeps_scale(g, node);
    nodes.push_back(std::move(node));
    if (integer) integer_made.insert(nodes.back().outputs[0]);
    if (moves) continue;
    for (const ValueId id : std::vector<ValueId>(nodes.back().outputs))
      if (id >= 0) round(id, origin);
  }
  g.nodes = std::move(nodes);
  return static_cast<int>(rounded.size());
}

}  // namespace sinter::convert
