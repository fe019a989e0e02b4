// The declared types of the model's outputs against the computed ones (rule output.declared).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "converter/import/lower.h"
#include "converter/ir/integer_range.h"
#include "converter/ir/op_traits.h"
#include "converter/types/representable.h"

namespace sinter::convert {
namespace {

// The losses of an output in a narrower floating-point type: numbers of the model itself, and integers, which
// reach the output by movement and choices alone. Computed numbers may be rounded.
class OutputLoss {
 public:
  OutputLoss(const Graph& graph, DType declared)
      : graph_(graph), declared_(declared), producer_(graph.values.size(), nullptr) {
    for (const Node& node : graph.nodes)
      for (const ValueId out : node.outputs)
        if (out >= 0) producer_[static_cast<size_t>(out)] = &node;
  }

  const Node* infinite_at = nullptr;  // set: this node puts `number` into the output, which becomes infinite
  double number = 0;
  bool rounds = false;  // an integer may have more bits than the type

  // Numbers below or above 0 count if `low` or `high`, and integers if they are not only padded.
  void find(ValueId id, int depth = kDepth, bool low = true, bool high = true, bool integers = true) {
    const Node* node = id < 0 ? nullptr : producer_[static_cast<size_t>(id)];
    if (node == nullptr || depth == 0) return;
    if (!node->bodies.empty()) return find_in_bodies(*node, id, depth - 1, low, high, integers);
    if (node->op() == Op::kCast && integers) return find_integers(*node);
    // The larger of two numbers is not the smallest there is.
    low &= node->op() != Op::kMax, high &= node->op() != Op::kMin;
    size_t first = 0, end = selected_operands(*node);
    if (node->op() == Op::kWhere) first = 1, end = 3;
    if (node->op() == Op::kPad) end = node->inputs.size(), integers = false;
    for (size_t i = first; i < end; ++i) {
      if (node->inputs[i] >= 0 && graph_.value(node->inputs[i]).constant)
        find_numbers(*node, *graph_.value(node->inputs[i]).constant, low, high);
      else
        find(node->inputs[i], depth - 1, low, high, integers);
    }
  }

 private:
  static constexpr int kDepth = 12;
  static constexpr int64_t kMostLookedAt = 65536;

  // A result of an If, or what a Loop carries, is one of its bodies' results, or what a Loop begins with that
  // may not run.
  void find_in_bodies(const Node& node, ValueId id, int depth, bool low, bool high, bool integers) {
    const auto* loop = node.as<LoopAttrs>();
    if (loop == nullptr && node.as<IfAttrs>() == nullptr) return;
    const auto k = std::find(node.outputs.begin(), node.outputs.end(), id) - node.outputs.begin();
    if (loop != nullptr && k >= loop->carried) return;
    for (const auto& body : node.bodies) {
      OutputLoss inside(*body, declared_);
      const auto place =
          static_cast<size_t>(k + (loop != nullptr ? 1 : 0));  // a Loop's first is its condition
      inside.find(body->outputs[place], depth, low, high, integers);
      rounds |= inside.rounds;
      if (infinite_at == nullptr) infinite_at = inside.infinite_at, number = inside.number;
    }
    if (loop == nullptr) return;
    const ConstantPtr trips = node.inputs[0] < 0 ? nullptr : graph_.value(node.inputs[0]).constant;
    const bool runs = trips && trips->as_int64s()[0] > 0 && node.inputs[1] < 0;
    if (!runs) find(node.inputs[static_cast<size_t>(2 + k)], depth, low, high, integers);
  }

  void find_integers(const Node& cast) {
    const ValueId from = cast.inputs[0];
    if (!is_integer(graph_.value(from).dtype) || cast.is_model_cast()) return;
    const auto range = integer_range(graph_, from);
    rounds |= !range || !holds_range(declared_, *range);
  }

  void find_numbers(const Node& reader, const Constant& c, bool low, bool high) {
    if (infinite_at != nullptr || c.size() > kMostLookedAt || !is_float(c.dtype())) return;
    constexpr double kExactInFloat32 = 0x1p24;
    for (const double v : c.as_doubles()) {
      if (!std::isfinite(v)) continue;
      if (std::abs(v) > largest_number(declared_) && (v < 0 ? low : high)) infinite_at = &reader, number = v;
      // An integer that made the others float64.
      rounds |= c.dtype() == DType::kFloat64 && std::trunc(v) == v && std::abs(v) > kExactInFloat32 &&
                !survives(*Constant::scalar(c.dtype(), v), declared_, true);
    }
  }

  const Graph& graph_;
  DType declared_;
  std::vector<const Node*> producer_;
};

// Does the declared type hold everything that the value can be? Between floating-point types the declaration
// is what the model rounds its result to.
bool keeps_all(const Graph& graph, ValueId id, DType declared) {
  const DType computed = graph.value(id).dtype;
  if (is_float(declared) && is_float(computed)) return true;
  if (computed == DType::kUint64) return false;
  const auto range = integer_range(graph, id);
  return range && holds_range(declared, *range);
}

}  // namespace

// Numbers are cast to what is declared, except that no fraction is cut off: there the declaration is
// impossible and is corrected.
void settle_output_types(const ImportedGraph& source, GraphLowering& lowering) {
  Graph& graph = lowering.graph();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string& name = source.outputs[i].name;
    const DType declared = source.outputs[i].dtype, computed = graph.value(graph.outputs[i]).dtype;
    if (declared == DType::kNone || declared == computed) continue;
    if (byte_width(declared) == 0) {
      if (is_sub_byte(declared) && is_integer(computed))
        lowering.ledger().add(
            {name, "", "", declared, computed, TypeRule::kOutputDeclared,
             "values of less than a byte do not exist at run time; the numbers are the same",
             TypeEffect::kDeclared});
      continue;
    }
    const bool whole = (declared == DType::kBool || is_integer(declared)) && !is_float(computed);
    bool silent = keeps_all(graph, graph.outputs[i], declared);
    if (is_float(declared) && is_float(computed) && bit_width(declared) < bit_width(computed)) {
      OutputLoss loss(graph, declared);
      loss.find(graph.outputs[i]);
      silent = !loss.rounds;
      if (loss.infinite_at != nullptr)
        lowering.diagnostics().warn(
            loss.infinite_at->name, loss.infinite_at->origin,
            fmt::format("puts {} into output '{}', which is declared {}, where it is infinite", loss.number,
                        name, dtype_name(declared)),
            fmt::format("use a number within {}, or declare the output {}", largest_number(declared),
                        dtype_name(computed)));
    }
    std::vector<ValueId> cast;
    lowering.builder().set_origin({name, "output"});
    if ((is_float(declared) || whole) &&
        lowering.builder()
            .emit(CastAttrs{static_cast<int64_t>(declared), 1}, {graph.outputs[i]}, 1, &cast)
            .ok()) {
      graph.value(cast[0]).bounded_dims = graph.value(graph.outputs[i]).bounded_dims;
      graph.outputs[i] = cast[0];
      lowering.ledger().add({name, name, "output", computed, declared, TypeRule::kOutputDeclared,
                             "the model's output keeps its declared type", TypeEffect::kCast});
      if (silent) continue;
      lowering.diagnostics().warn(
          "", "",
          fmt::format("output '{}' is declared {} but computed as {}; a cast is added, which {} values that "
                      "the declared type does not hold",
                      name, dtype_name(declared), dtype_name(computed),
                      declared == DType::kBool ? "loses"
                      : is_float(declared)     ? "rounds"
                                               : "wraps"),
          fmt::format("declare it {} if such values can occur", dtype_name(computed)));
      continue;
    }
    lowering.ledger().add({name, "", "", declared, computed, TypeRule::kOutputDeclared,
                           "the computed type cannot be the declared one without losing values",
                           TypeEffect::kDeclared});
    lowering.diagnostics().warn(
        "", "",
        fmt::format("output '{}' is declared {} but is {}; the declaration is corrected", name,
                    dtype_name(declared), dtype_name(computed)));
  }
}

}  // namespace sinter::convert
