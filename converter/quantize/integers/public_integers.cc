#include "converter/quantize/integers/public_integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "converter/ir/builder.h"
#include "converter/ir/op_traits.h"
#include "converter/quantize/ranges/quant_params.h"

namespace sinter::convert {
namespace {

constexpr int64_t kToUnsigned = 128;  // from int8 to uint8

bool concerns(const PortType& type, const Graph& graph, ValueId id) {
  return id >= 0 && (type.port.empty() || graph.value(id).name == type.port);
}

// What becomes of `flag INPUT=int8` for a port that is named; `flag int8` leaves the others as they are.
class Ports {
 public:
  Ports(const Graph& graph, const PortType& type, const char* flag, const char* kind)
      : graph_(graph),
        type_(type),
        flag_(flag),
        kind_(kind),
        remedy_(fmt::format(
            "add --quantize int8 and --force-int8, name other {}s with {} NAME={}, or leave it out", kind,
            flag, dtype_name(type.type))) {}
  void done() { ++done_; }
  void cannot(ValueId id, const std::string& why) {
    if (why_.empty()) why_ = fmt::format("{} '{}' {}", kind_, graph_.value(id).name, why);
  }
  void finish() const {
    if (done_ > 0 && why_.empty()) return;
    const std::string flag =
        fmt::format("{} {}{}{}", flag_, type_.port, type_.port.empty() ? "" : "=", dtype_name(type_.type));
    if (why_.empty())
      throw UsageError(
          type_.port.empty()
              ? fmt::format("{}: the model has no {} of float32; leave the flag out", flag, kind_)
              : fmt::format("{}: the model has no {} of this name; give one that it has", flag, kind_));
    throw UsageError(fmt::format("{}: {}; {}", flag, why_, remedy_));
  }

 private:
  const Graph& graph_;
  const PortType& type_;
  const char *flag_, *kind_;
  std::string remedy_;
  int done_ = 0;
  std::string why_;
};

void describe(Value& value, const QuantParams& params) {
  value.scale = params.scale, value.zero_point = params.zero_point;
}

// The nodes that only move what they alone read, from an input on, and the Quantize of the same parameters
// behind them; no Quantize: something reads it in float32.
struct Rounding {
  std::vector<ValueId> moved;
  std::vector<int> quantizers;
  std::optional<QuantParams> params;
};
Rounding rounding_of(const Graph& graph, const Uses& uses, ValueId input) {
  Rounding found;
  found.moved.push_back(input);
  for (;;) {
    const auto& readers = uses.readers[static_cast<size_t>(found.moved.back())];
    if (readers.size() != 1 || readers[0] < 0) break;
    const Node& node = graph.nodes[static_cast<size_t>(readers[0])];
    const Op op = node.op();
    if ((op != Op::kView && op != Op::kTranspose && op != Op::kCopy) || node.inputs[0] != found.moved.back())
      break;
    found.moved.push_back(node.outputs[0]);
  }
  for (const int r : uses.readers[static_cast<size_t>(found.moved.back())]) {
    const Node* node = r < 0 ? nullptr : &graph.nodes[static_cast<size_t>(r)];
    const auto params =
        node == nullptr || node->as<QuantizeAttrs>() == nullptr ? std::nullopt : quant_params(graph, *node);
    if (!params || (found.params && !(*found.params == *params)) || graph.is_output(node->outputs[0]))
      return {};
    found.params = params;
    found.quantizers.push_back(r);
  }
  return found;
}

void give_inputs(Graph& graph, const PortType& type) {
  Ports ports(graph, type, "--input-type", "input");
  const Uses uses(graph);
  std::vector<bool> gone(graph.nodes.size());
  for (const ValueId id : graph.inputs) {
    if (!concerns(type, graph, id)) continue;
    if (graph.value(id).dtype != DType::kFloat32) {
      if (!type.port.empty())
        ports.cannot(id, fmt::format("is {} in the model", dtype_name(graph.value(id).dtype)));
      continue;
    }
    const Rounding found = rounding_of(graph, uses, id);
    const bool is_state = std::any_of(graph.states.begin(), graph.states.end(), [&](const auto& s) {
      return graph.inputs[static_cast<size_t>(s.input)] == id;
    });
    if (is_state || !found.params || found.params->type != type.type) {
      ports.cannot(id, is_state
                           ? "is a state, which keeps its type"
                           : fmt::format("is not rounded to {} by all that reads it", dtype_name(type.type)));
      continue;
    }
    for (const ValueId moved : found.moved)
      graph.value(moved).dtype = type.type, describe(graph.value(moved), *found.params);
    for (const int n : found.quantizers) {
      gone[static_cast<size_t>(n)] = true;
      replace_uses(graph, graph.nodes[static_cast<size_t>(n)].outputs[0], found.moved.back());
    }
    ports.done();
  }
  ports.finish();
  size_t n = 0;
  std::erase_if(graph.nodes, [&](const Node&) { return gone[n++]; });
}

// uint8 integers, 128 more than those of `q`.
ValueId unsigned_integers(Graph& graph, ValueId q, const Node& origin) {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  Builder builder(graph);
  builder.set_origin({origin.name, origin.origin});
  std::vector<ValueId> results;
  const ValueId table = graph.add_constant(Constant::of<uint8_t>(DType::kUint8, {256}, bytes), "");
  if (!builder.emit(LutAttrs{}, {q, table}, 1, &results).ok())
    throw std::logic_error("int8 has no table to uint8");
  return results[0];
}

void give_outputs(Graph& graph, const PortType& type) {
  Ports ports(graph, type, "--output-type", "output");
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId y = graph.outputs[i];
    if (!concerns(type, graph, y)) continue;
    if (graph.value(y).dtype == type.type) {
      ports.done();
      continue;
    }
    const Uses uses(graph);
    const int p = uses.producer[static_cast<size_t>(y)];
    const bool is_state = std::any_of(graph.states.begin(), graph.states.end(),
                                      [&](const auto& s) { return static_cast<size_t>(s.output) == i; });
    if (is_state || p < 0) {
      ports.cannot(y, is_state ? "is a state, which keeps its type" : "is an input");
      continue;
    }
    const Node maker = graph.nodes[static_cast<size_t>(p)];
    std::optional<QuantParams> params =
        maker.as<DequantizeAttrs>() != nullptr ? quant_params(graph, maker) : std::nullopt;
    const bool flips = params && params->type == DType::kInt8 && type.type == DType::kUint8;
    if (!params || (params->type != type.type && !flips) || graph.is_constant(maker.inputs[0]) ||
        graph.is_output(maker.inputs[0]) || uses.producer[static_cast<size_t>(maker.inputs[0])] < 0) {
      ports.cannot(y, fmt::format("is computed by {} '{}' in {}", op_info(maker.op())->name, maker.name,
                                  dtype_name(params ? params->type : graph.value(y).dtype)));
      continue;
    }
    ValueId q = maker.inputs[0];
    if (flips) q = unsigned_integers(graph, q, maker), params->zero_point += kToUnsigned;
    describe(graph.value(q), *params);
    std::swap(graph.value(q).name, graph.value(y).name);
    graph.value(q).order = graph.value(y).order;
    graph.outputs[i] = q;
    ports.done();
  }
  ports.finish();
}

}  // namespace

std::set<std::string> mark_integer_outputs(Graph& graph, const PublicTypes& types) {
  std::set<std::string> names;
  if (!types.outputs || types.outputs->type == DType::kFloat32) return names;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId y = graph.outputs[i];
    if (!concerns(*types.outputs, graph, y) || graph.value(y).dtype != DType::kFloat32 ||
        graph.is_constant(y) || !graph.value(y).bounded_dims.empty())
      continue;
    Builder builder(graph);
    builder.set_origin({graph.value(y).name, "output"});
    std::vector<ValueId> copy;
    if (!builder.emit(CopyAttrs{}, {y}, 1, &copy).ok()) throw std::logic_error("an output cannot be copied");
    graph.value(copy[0]).order = graph.value(y).order;
    std::swap(graph.value(copy[0]).name, graph.value(y).name);
    graph.outputs[i] = copy[0];
    names.insert(graph.value(copy[0]).name);
  }
  return names;
}

void give_public_types(Graph& graph, const PublicTypes& types) {
  if (types.inputs) give_inputs(graph, *types.inputs);
  if (types.outputs) give_outputs(graph, *types.outputs);
  remove_dead_nodes(graph);
}

}  // namespace sinter::convert
