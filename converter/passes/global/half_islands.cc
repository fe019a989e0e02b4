// On request, computes in float16 or bfloat16 where the target can: chains of such operations keep values of
// that type between them, with Casts only at the borders (rules compute.float16, compute.bfloat16). Runs
// after all passes, on a graph that computes in float32.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "converter/ir/builder.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/recipe.h"
#include "converter/passes/editor.h"
#include "converter/passes/global/half_rules.h"
#include "converter/passes/pass.h"

namespace sinter::convert {
namespace {

bool is_cast(const Node& node, const Graph& graph, DType from, DType to) {
  return node.op() == Op::kCast && graph.value(node.inputs[0]).dtype == from &&
         graph.value(node.outputs[0]).dtype == to;
}

class Islands {
 public:
  Islands(Graph& graph, const HalfType& type, const AcceptCall& accept, const Reached& reached)
      : graph_(graph),
        type_(type),
        rules_(type, graph, accept, reached),
        half_node_(graph.nodes.size()),
        producer_(graph.values.size(), -1) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (const ValueId id : graph.nodes[n].outputs)
        if (id >= 0) producer_[static_cast<size_t>(id)] = static_cast<int>(n);
  }

  HalfSummary run() {
    choose();
    drop_islands_without_products();
    report();
    if (summary_.computed == 0) return summary_;
    half_.assign(graph_.values.size(), kAbsent);
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      Node& node = nodes[n];
      if (half_node_[n])
        place_half(std::move(node));
      else if (is_cast(node, graph_, DType::kFloat32, type_.dtype) && half(node.inputs[0]) != kAbsent)
        skip_rounding(node);
      else
        graph_.nodes.push_back(std::move(node));
    }
    remove_dead_nodes(graph_);
    if (std::string fault = check(graph_); !fault.empty())
      throw std::logic_error(fmt::format("{}: {}", type_.flag, fault));
    return summary_;
  }

 private:
  size_t at(int n) const { return static_cast<size_t>(n); }
  int producer(ValueId id) const { return id < 0 ? -1 : producer_[static_cast<size_t>(id)]; }

  // Exists in the type without a Cast.
  bool is_half(ValueId id) const {
    if (graph_.is_constant(id))
      return graph_.value(id).dtype == DType::kFloat32 && rules_.exact(*graph_.value(id).constant);
    const int n = producer(id);
    return n >= 0 &&
           (half_node_[at(n)] || is_cast(graph_.nodes[at(n)], graph_, type_.dtype, DType::kFloat32));
  }

  void choose() {
    refusals_.resize(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (rules_.concerns(static_cast<int>(n))) {
        ++summary_.concerned;
        refusals_[n] = rules_.refusal(static_cast<int>(n));
        if (refusals_[n].empty() && reads_more_than_it_computes(node))
          refusals_[n] = fmt::format("its keys and values are read once, and would be rounded to {} for that",
                                     type_.name);
        half_node_[n] = refusals_[n].empty();
      } else if (moves_by_attributes(node.attrs) && graph_.value(node.outputs[0]).dtype == DType::kFloat32) {
        bool all = true, any = false;
        for (const ValueId id : node.inputs) {
          if (id < 0) continue;
          all &= is_half(id);
          any |= !graph_.is_constant(id);
        }
        half_node_[n] = all && any;
      }
    }
  }

  // Attention of few queries takes the time of reading the keys and values, which Casts would read first.
  bool reads_more_than_it_computes(const Node& node) const {
    constexpr int64_t kFewQueries = 16;
    return node.op() == Op::kAttention && graph_.value(node.inputs[0]).dims[2] <= kFewQueries &&
           !(is_half(node.inputs[1]) && is_half(node.inputs[2]));
  }

  // A chain of element-wise operations alone is not worth its casts.
  void drop_islands_without_products() {
    std::vector<int> island(graph_.nodes.size());
    std::iota(island.begin(), island.end(), 0);
    const auto root = [&](int n) {
      while (island[at(n)] != n) n = island[at(n)] = island[at(island[at(n)])];
      return n;
    };
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!half_node_[n]) continue;
      for (const ValueId id : graph_.nodes[n].inputs)
        if (const int p = producer(id); p >= 0 && half_node_[at(p)])
          island[at(root(p))] = root(static_cast<int>(n));
    }
    std::vector<bool> worth(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (half_node_[n] && (is_product(graph_.nodes[n].op()) || graph_.nodes[n].op() == Op::kAttention))
        worth[at(root(static_cast<int>(n)))] = true;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!half_node_[n] || worth[at(root(static_cast<int>(n)))]) continue;
      half_node_[n] = false;
      if (!moves_by_attributes(graph_.nodes[n].attrs))
        refusals_[n] =
            fmt::format("no neighbouring convolution or matrix product computes in {}", type_.name);
    }
  }

  void report() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!half_node_[n]) {
        if (!refusals_[n].empty())
          graph_.decide(graph_.value(node.outputs[0]), node, DType::kFloat32, type_.rule, TypeEffect::kKept,
                        refusals_[n]);
        continue;
      }
      if (moves_by_attributes(node.attrs)) continue;
      ++summary_.computed;
      if (!rules_.unproven(static_cast<int>(n))) continue;
      if (summary_.unproven++ == 0) summary_.first_unproven = node.name, summary_.first_op = node.origin;
    }
  }

  // ---- the graph again

  ValueId half(ValueId id) const {
    return id >= 0 && static_cast<size_t>(id) < half_.size() ? half_[static_cast<size_t>(id)] : kAbsent;
  }

  // The model's own rounding of what is rounded already.
  void skip_rounding(const Node& node) {
    record_omitted(node);
    graph_.nodes.push_back({CopyAttrs{}, {half(node.inputs[0])}, node.outputs, node.name, node.origin, {}});
  }

  void record_omitted(const Node& cast) {
    if (!cast.is_model_cast()) return;
    const Value& result = graph_.value(cast.outputs[0]);
    graph_.decide(result, cast, type_.dtype, TypeRule::kCastExplicit,
                  result.dtype == type_.dtype ? TypeEffect::kKept : TypeEffect::kNarrowed,
                  fmt::format("the Cast is omitted: its operand is computed in {}, and so is what reads it",
                              type_.name));
  }

  // Adds a value of the type in the place of a float32 one.
  ValueId requested(const Value& value) {
    const ValueId id = add_retyped(graph_, value, type_.dtype);
    graph_.value(id).requested = true;
    return id;
  }

  // Returns a float32 value in the type, for `reader`.
  ValueId narrowed(ValueId id, const Node& reader) {
    if (id < 0 || graph_.value(id).dtype != DType::kFloat32) return id;
    if (half(id) != kAbsent) return half(id);
    const Value value = graph_.value(id);
    ValueId result = kAbsent;
    if (value.constant) {
      const ConstantPtr own = stored_in_type(value.constant);
      result = graph_.add_constant(own ? own : rounded(value.constant), value.name);
      graph_.value(result).requested = true;
      graph_.decide(value, reader, type_.dtype, type_.rule, TypeEffect::kRetyped,
                    own ? fmt::format("used in {}, as the model stores it", type_.name)
                        : fmt::format("stored in {}, rounded once", type_.name));
    } else if (const Node* cast = widening_of(id)) {
      record_omitted(*cast);
      result = cast->inputs[0];
    } else {
      result = requested(value);
      graph_.nodes.push_back(
          {CastAttrs{static_cast<int64_t>(type_.dtype), 1}, {id}, {result}, reader.name, "", {}});
      graph_.decide(value, reader, type_.dtype, type_.rule, TypeEffect::kCast,
                    fmt::format("rounded once for the operations that compute in {}", type_.name));
    }
    return half_[static_cast<size_t>(id)] = result;
  }

  // The Cast that made `id` of a value of the type; null: none did.
  const Node* widening_of(ValueId id) const {
    for (const Node& node : graph_.nodes)
      if (is_cast(node, graph_, type_.dtype, DType::kFloat32) && node.outputs[0] == id) return &node;
    return nullptr;
  }

  // A weight of the model that was only widened; else null.
  ConstantPtr stored_in_type(const ConstantPtr& c) const {
    const bool widened = c->recipe() && std::holds_alternative<CastAttrs>(c->recipe()->attrs) &&
                         c->recipe()->inputs[0]->dtype() == type_.dtype;
    return widened ? c->recipe()->inputs[0] : nullptr;
  }

  ConstantPtr rounded(const ConstantPtr& c) const {
    const auto compute = [c, to = type_.dtype] {
      std::vector<ConstantPtr> cast;
      if (!evaluate(CastAttrs{static_cast<int64_t>(to), 1}, {c}, 1, &cast, false).ok())
        throw std::logic_error("a constant cannot be rounded");
      return cast[0];
    };
    if (c->byte_size() < kLazyBytes) return compute();
    return Constant::lazy(type_.dtype, c->dims(), [compute] {
      const LoadedBytes loaded = compute()->load();
      return Bytes(loaded.bytes.begin(), loaded.bytes.end());
    });
  }

  void split(Node& node, const HalfSplit& parts) {
    const ValueId between = graph_.add_value({}, type_.dtype, graph_.value(node.outputs[0]).dims);
    graph_.value(between).bounded_dims = graph_.value(node.outputs[0]).bounded_dims;
    graph_.value(between).requested = true;
    const ValueId x = node.inputs[0];
    const bool silu = node.op() == Op::kSilu;
    graph_.nodes.push_back({*parts.first, std::move(node.inputs), {between}, node.name, node.origin, {}});
    node.attrs = parts.second;
    node.inputs = silu ? std::vector{x, between} : std::vector{between};
  }

  void place_half(Node node) {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!stays_float32(node.op(), i)) node.inputs[i] = narrowed(node.inputs[i], node);
    if (const HalfSplit parts = split_for(type_, node); parts.first) split(node, parts);
    const std::vector<ValueId> wide = node.outputs;
    for (ValueId& id : node.outputs) {
      if (id < 0 || graph_.value(id).dtype != DType::kFloat32) continue;
      const Value value = graph_.value(id);
      graph_.decide(value, node, type_.dtype, type_.rule, TypeEffect::kNarrowed,
                    moves_by_attributes(node.attrs)
                        ? fmt::format("moved in {}, like its operand", type_.name)
                        : fmt::format("the target computes it in {}, on request", type_.name));
      id = half_[static_cast<size_t>(id)] = requested(value);
    }
    const std::vector<ValueId> narrow = node.outputs;
    const std::string name = node.name;
    graph_.nodes.push_back(std::move(node));
    // For readers in float32; dead code where there are none.
    for (size_t i = 0; i < wide.size(); ++i)
      if (wide[i] != narrow[i])
        graph_.nodes.push_back(
            {CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {narrow[i]}, {wide[i]}, name, "", {}});
  }

  Graph& graph_;
  const HalfType& type_;
  HalfRules rules_;
  HalfSummary summary_;
  std::vector<bool> half_node_;
  std::vector<int> producer_;
  std::vector<std::string> refusals_;
  std::vector<ValueId> half_;  // by the value's number before
};

}  // namespace

HalfSummary compute_in_half(Graph& graph, const HalfType& type, const AcceptCall& accept,
                            const Reached& reached) {
  require_stage(graph, Stage::kRewritten, "computing in 16 bits");
  return Islands(graph, type, accept, reached).run();
}

}  // namespace sinter::convert
