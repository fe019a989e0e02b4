#include "converter/import/caches/narrow_caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Operands of Attention.
constexpr size_t kKeys = 1, kKeyScales = 6;

class NarrowCaches {
 public:
  NarrowCaches(DType type, bool requested, Graph& graph, Diagnostics& diagnostics)
      : type_(type), requested_(requested), graph_(graph), diagnostics_(diagnostics) {}

  bool narrow(const std::string& input) {
    const auto state = std::find_if(graph_.states.begin(), graph_.states.end(),
                                    [&](const GraphState& s) { return s.input_name == input; });
    if (state == graph_.states.end()) return true;  // refused before
    const ValueId past = graph_.inputs[state->input], present = graph_.outputs[state->output];
    const DType model = graph_.value(past).dtype;
    if (bit_width(type_) >= bit_width(model)) return true;
    const std::optional<size_t> update = writer(*state, past, present);
    if (!update) return false;
    const ValueId rows = graph_.nodes[*update].inputs[1], at = graph_.nodes[*update].inputs[2];
    if (state->initial != nullptr)
      return refuse(*state, "it begins with an array", "leave out --state-init, or --kv-cache");
    std::vector<Node> fresh;
    graph_.value(past).dtype = graph_.value(present).dtype = type_;
    graph_.value(past).model_dtype = graph_.value(present).model_dtype = model;
    const Node origin = graph_.nodes[*update];
    graph_.ledger->add({state->output_name, origin.name, origin.origin, model, type_, TypeRule::kKeep,
                        requested_ ? "--kv-cache: keys and values are kept in this type"
                                   : "past keys and values have this type in the model",
                        TypeEffect::kNarrowed});
    const auto add = [&](OpAttrs attrs, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
      fresh.push_back(
          {std::move(attrs), std::move(inputs), std::move(outputs), origin.name, origin.origin, {}});
    };
    const Dims of_rows = graph_.value(rows).dims;
    const ValueId narrow = graph_.add_value("", type_, of_rows);
    ValueId scales = kAbsent;
    if (type_ == DType::kInt8) {
      const Dims one(of_rows.begin(), of_rows.end() - 1);
      const Dims& all = graph_.value(past).dims;
      const ValueId fresh_scales = graph_.add_value("", DType::kFloat32, one);
      const ValueId before = graph_.add_value(input + std::string(kCacheScales), DType::kFloat32,
                                              Dims(all.begin(), all.end() - 1));
      scales = graph_.add_value(state->output_name + std::string(kCacheScales), DType::kFloat32,
                                graph_.value(before).dims);
      added_.push_back({graph_.inputs.size(), graph_.outputs.size(), input + std::string(kCacheScales),
                        state->output_name + std::string(kCacheScales), nullptr});
      graph_.inputs.push_back(before), graph_.outputs.push_back(scales);
      add(QuantizeRowsAttrs{}, {rows}, {narrow, fresh_scales});
      add(CacheUpdateAttrs{2, 0}, {before, fresh_scales, at}, {scales});
    } else {
      add(CastAttrs{static_cast<int64_t>(type_), 1}, {rows}, {narrow});
    }
    graph_.nodes[*update].inputs[1] = narrow;
    read_narrow(*update, present, scales, model);
    graph_.nodes.insert(graph_.nodes.begin() + static_cast<ptrdiff_t>(*update), fresh.begin(), fresh.end());
    return true;
  }
  // States of scales, when the caches are done.
  void list_states() {
    graph_.states.insert(graph_.states.end(), added_.begin(), added_.end());
    std::sort(graph_.states.begin(), graph_.states.end(),
              [](const GraphState& a, const GraphState& b) { return a.input < b.input; });
  }

 private:
  bool refuse(const GraphState& state, const std::string& why, const std::string& remedy) {
    if (requested_)
      diagnostics_.refuse(
          "", "", fmt::format("--kv-cache {}: '{}': {}", dtype_name(type_), state.input_name, why), remedy);
    else
      diagnostics_.refuse(
          "", "",
          fmt::format("'{}' is {} and '{}' is {}: {}", state.input_name, dtype_name(type_), state.output_name,
                      dtype_name(graph_.value(graph_.outputs[state.output]).dtype), why),
          "export the model with one type for past and present keys and values");
    return false;
  }
  // The CacheUpdate that writes the cache, if nothing else reads what it reads.
  std::optional<size_t> writer(const GraphState& state, ValueId past, ValueId present) {
    std::optional<size_t> update;
    const Node* other = nullptr;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const bool writes = std::find(node.outputs.begin(), node.outputs.end(), present) != node.outputs.end();
      if (writes && node.op() == Op::kCacheUpdate && node.inputs[0] == past && node.inputs.size() == 3)
        update = n;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] == past && !(update == n && i == 0)) other = &node;
    }
    if (update && other == nullptr) return update;
    refuse(state,
           other == nullptr
               ? "it is not written row by row at the position"
               : fmt::format("node '{}' ({}) reads it in the model's type", other->name, other->origin),
           "leave out --kv-cache");
    return std::nullopt;
  }
  static bool attends(const Node& node, size_t input) {
    return node.op() == Op::kAttention && (input == kKeys || input == kKeys + 1);
  }
  // Attention reads the new cache, with its scales; others get it in the model's type.
  void read_narrow(size_t update, ValueId present, ValueId scales, DType model) {
    ValueId wide = kAbsent;
    for (size_t n = update + 1; n < graph_.nodes.size(); ++n) {
      Node& node = graph_.nodes[n];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != present) continue;
        if (!attends(node, i)) {
          if (wide == kAbsent) wide = graph_.add_value("", model, graph_.value(present).dims);
          node.inputs[i] = wide;
        } else if (scales != kAbsent) {
          const size_t place = kKeyScales + (i - kKeys);
          if (node.inputs.size() <= place) node.inputs.resize(place + 1, kAbsent);
          node.inputs[place] = scales;
        }
      }
    }
    if (wide != kAbsent) widen(update, present, scales, wide);
  }
  void widen(size_t update, ValueId present, ValueId scales, ValueId wide) {
    const auto to = static_cast<int64_t>(graph_.value(wide).dtype);
    const Node from = graph_.nodes[update];
    std::vector<Node> nodes;
    if (scales == kAbsent) {
      nodes.push_back({CastAttrs{to, 1}, {present}, {wide}, from.name, from.origin, {}});
    } else {
      Dims dims = graph_.value(present).dims;
      const int64_t row = dims.back();
      dims.back() = 1;
      const ValueId blocks = graph_.add_value("", DType::kFloat32, dims);
      nodes.push_back({ViewAttrs{IntList(dims), -1}, {scales}, {blocks}, from.name, from.origin, {}});
      nodes.push_back({DequantizeAttrs{3, row, to}, {present, blocks}, {wide}, from.name, from.origin, {}});
    }
    graph_.nodes.insert(graph_.nodes.begin() + static_cast<ptrdiff_t>(update) + 1, nodes.begin(),
                        nodes.end());
  }

  DType type_;
  bool requested_;
  Graph& graph_;
  Diagnostics& diagnostics_;
  std::vector<GraphState> added_;
};

}  // namespace

bool narrow_caches(const std::vector<std::string>& caches, DType type, Graph& graph,
                   Diagnostics& diagnostics) {
  NarrowCaches all(type, true, graph, diagnostics);
  const auto kept = std::find_if(graph.inputs.begin(), graph.inputs.end(), [&](ValueId id) {
    const Value& value = graph.value(id);
    return std::find(caches.begin(), caches.end(), value.name) != caches.end() && value.dtype != type &&
           bit_width(type) >= bit_width(value.dtype);
  });
  if (kept != graph.inputs.end())
    diagnostics.warn(
        "", "",
        fmt::format("--kv-cache {}: '{}' is kept in the model's {}, which takes no more bytes",
                    dtype_name(type), graph.value(*kept).name, dtype_name(graph.value(*kept).dtype)),
        "leave the option out, or give float8 or int8");
  for (const std::string& cache : caches)
    if (!all.narrow(cache)) return false;
  all.list_states();
  return true;
}

bool round_caches(const std::vector<std::string>& caches, DType type, Graph& graph,
                  Diagnostics& diagnostics) {
  NarrowCaches all(type, false, graph, diagnostics);
  for (const std::string& cache : caches)
    if (!all.narrow(cache)) return false;
  return true;
}

}  // namespace sinter::convert
