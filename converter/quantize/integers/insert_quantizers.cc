#include "converter/quantize/integers/insert_quantizers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "converter/ir/builder.h"
#include "converter/ir/integer_weights.h"
#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/quantize/integers/table_functions.h"
#include "converter/quantize/integers/value_scales.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

bool is_scalar(const Graph& g, ValueId id) { return g.is_constant(id) && g.value(id).constant->size() == 1; }

// Returns the smallest steps of weights that keep biases and multipliers within their types: channels that
// (nearly) nothing passes have weights that are next to nothing.
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

// Rounds weights per output channel, and other constants that are neither slopes nor scalars as a whole.
// Constants that are joined with other values are rounded as these are.
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

// Rounds the number that padding has to the scale of what is padded.
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

// Returns whether a node reads a value as its function makes it, not rounded.
bool reads_inner(const std::vector<ValueId>& roots, const Node& node, ValueId id) {
  return is_function(roots, node) && id >= 0 && roots[static_cast<size_t>(id)] != id;
}

}  // namespace

std::vector<ValueId> values_to_round(const Graph& g, const std::vector<Role>& roles) {
  const std::vector<ValueId> roots = function_roots(g);
  const Uses uses(g);
  std::set<ValueId> integer_made, values;
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    for (const ValueId id : g.nodes[n].inputs)
      if (is_data(g, id) && !reads_inner(roots, g.nodes[n], id) &&
          (roles[n] == Role::kInteger || (roles[n] == Role::kReader && integer_made.contains(id))))
        values.insert(id);
    if (roles[n] != Role::kInteger) continue;
    const ValueId y = g.nodes[n].outputs[0];
    integer_made.insert(y);
    // The last one before floats; a product gives these by itself.
    const auto& readers = uses.readers[static_cast<size_t>(y)];
    if (is_data(g, y) && weight_axis(g, g.nodes[n]) < 0 &&
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
    // All operations read a value that is computed on integers as integers. Only operations on integers read
    // a float value as integers.
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
