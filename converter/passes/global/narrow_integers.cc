// narrow-integers: int64 arithmetic that only ends in an index, a comparison or a Cast is done in int32 where
// every value on its way is proven to fit (rule narrow.i64). What is known of a value: it is a constant, it
// was cast from a narrower integer, or it follows from such by sums, products, choices and movement.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "converter/ir/integer_range.h"
#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

constexpr int kRangeDepth = 16;
constexpr int64_t kMostLookedAt = 65536;

std::optional<IntegerRange> within(IntegerRange range) {
  return holds_range(DType::kInt32, range) ? std::optional(range) : std::nullopt;
}

class NarrowIntegers {
 public:
  explicit NarrowIntegers(Graph& graph) : e_(graph) {}

  int run() {
    return e_.sweep([&](int n) {
      const Node& node = e_.node(n);
      if (reads_indices(node.op()))
        root(n, {1});
      else if (node.as<CompareAttrs>() != nullptr)
        root(n, {0, 1});
      else if (node.as<CastAttrs>() != nullptr && e_.value(node.outputs[0]).dtype != DType::kInt32)
        root(n, {0});
    });
  }

 private:
  void root(int n, const std::vector<size_t>& operands) {
    std::vector<ValueId> inputs = e_.node(n).inputs;
    std::vector<IntegerRange> ranges;
    bool computed = false;
    for (const size_t i : operands) {
      if (e_.value(inputs[i]).dtype != DType::kInt64) return;
      const auto range = known(inputs[i], kRangeDepth);
      if (!range) return;
      ranges.push_back(*range);
      computed |= e_.value(inputs[i]).constant == nullptr;
    }
    if (!computed) return;
    for (size_t k = 0; k < operands.size(); ++k) {
      const Node& node = e_.node(n);
      const Value& old = e_.value(inputs[operands[k]]);
      e_.graph().decide(old, node, DType::kInt32, TypeRule::kNarrowI64,
                        old.constant ? TypeEffect::kRetyped : TypeEffect::kNarrowed,
                        fmt::format("proven to be in {} .. {}", ranges[k].low, ranges[k].high));
      inputs[operands[k]] = narrow(inputs[operands[k]]);
    }
    e_.replace(n, e_.node(n).attrs, inputs);
  }

  std::optional<IntegerRange> known(ValueId id, int depth) {
    const auto found = known_.find(id);
    return found != known_.end() ? found->second : known_[id] = look(id, depth);
  }
  std::optional<IntegerRange> look(ValueId id, int depth) {
    if (id < 0 || depth == 0 || !e_.value(id).bounded_dims.empty()) return std::nullopt;
    if (const ConstantPtr& c = e_.value(id).constant) {
      if (c->size() > kMostLookedAt || c->size() == 0) return std::nullopt;
      const std::vector<int64_t> items = c->as_int64s();
      const auto [low, high] = std::minmax_element(items.begin(), items.end());
      return within({*low, *high});
    }
    const int n = e_.producer(id);
    if (n < 0) return std::nullopt;
    const Node& node = e_.node(n);
    if (node.op() == Op::kCast) {
      const auto all = range_of_type(e_.value(node.inputs[0]).dtype);
      return all ? within(*all) : std::nullopt;
    }
    const std::vector<size_t> operands = terms(node);
    if (operands.empty()) return std::nullopt;
    std::vector<IntegerRange> r;
    for (const size_t i : operands) {
      const auto range = known(node.inputs[i], depth - 1);
      if (!range) return std::nullopt;
      r.push_back(*range);
    }
    if (node.as<AddAttrs>() != nullptr) return within({r[0].low + r[1].low, r[0].high + r[1].high});
    if (node.as<SubAttrs>() != nullptr) return within({r[0].low - r[1].high, r[0].high - r[1].low});
    if (node.as<NegAttrs>() != nullptr) return within({-r[0].high, -r[0].low});
    if (node.as<MulAttrs>() != nullptr) {
      const auto [low, high] = std::minmax(
          {r[0].low * r[1].low, r[0].low * r[1].high, r[0].high * r[1].low, r[0].high * r[1].high});
      return within({low, high});
    }
    IntegerRange all = r[0];  // one of the operands' values
    for (const IntegerRange& one : r) all = {std::min(all.low, one.low), std::max(all.high, one.high)};
    return all;
  }

  // The operands of which the result is a sum, a product or a choice; none: an operation that is not
  // analysed.
  static std::vector<size_t> terms(const Node& node) {
    const bool sum = unclamped(node.as<AddAttrs>()) || unclamped(node.as<SubAttrs>());
    if (sum || unclamped(node.as<MulAttrs>())) return {0, 1};
    if (node.as<MinAttrs>() != nullptr || node.as<MaxAttrs>() != nullptr) return {0, 1};
    if (node.as<WhereAttrs>() != nullptr) return {1, 2};
    if (node.as<NegAttrs>() != nullptr || moves_one(node.attrs)) return {0};
    if (node.as<ConcatAttrs>() == nullptr) return {};
    std::vector<size_t> all(node.inputs.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }

  // The same value in int32; `known` covers all of it.
  ValueId narrow(ValueId id) {
    const auto [at, fresh] = narrow_.emplace(id, kAbsent);
    if (!fresh) return at->second;
    ValueId result = kAbsent;
    const CastAttrs cast{static_cast<int64_t>(DType::kInt32), 1};
    if (const ConstantPtr c = e_.value(id).constant) {
      const std::vector<int64_t> items = c->as_int64s();
      result = e_.constant(
          Constant::of<int32_t>(DType::kInt32, c->dims(), std::vector<int32_t>(items.begin(), items.end())));
    } else {
      const int n = e_.producer(id);
      const Node node = e_.node(n);
      if (node.op() == Op::kCast) {
        result = e_.value(node.inputs[0]).dtype == DType::kInt32 ? node.inputs[0]
                                                                 : e_.insert(n, cast, {node.inputs[0]});
      } else {
        std::vector<ValueId> inputs = node.inputs;
        for (const size_t i : terms(node)) inputs[i] = narrow(inputs[i]);
        result = e_.insert(n, node.attrs, inputs);
      }
      if (e_.graph().value(result).name.empty()) e_.graph().value(result).name = e_.value(id).name;
    }
    return narrow_[id] = result;
  }

  Editor e_;
  std::map<ValueId, std::optional<IntegerRange>> known_;
  std::map<ValueId, ValueId> narrow_;
};

}  // namespace

int narrow_integers(Graph& graph) { return NarrowIntegers(graph).run(); }

}  // namespace sinter::convert
