// narrow-integers: int64 arithmetic that only ends in an index, a comparison or a Cast is done in int32 where
// every value on its way is proven to fit (rule narrow.i64). What is known of a value: it is a constant, it
// was cast from a narrower integer, or it follows from such by sums, products, choices and movement.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "converter/passes/editor.h"
#include "converter/passes/pass.h"

namespace sinter::convert {
namespace {

constexpr int kRangeDepth = 16;
constexpr int64_t kMostLookedAt = 65536;
constexpr int64_t kLow = INT32_MIN, kHigh = INT32_MAX;

struct Range {
  int64_t low = 0, high = 0;
};

std::optional<Range> within(int64_t low, int64_t high) {
  if (low < kLow || high > kHigh) return std::nullopt;
  return Range{low, high};
}
std::optional<Range> range_of(DType t) {
  if (t == DType::kBool) return Range{0, 1};
  if (!is_integer(t) || bit_width(t) > 32 || t == DType::kUint32) return std::nullopt;
  const int64_t span = int64_t{1} << bit_width(t);
  return is_signed_integer(t) ? Range{-span / 2, span / 2 - 1} : Range{0, span - 1};
}

class NarrowIntegers {
 public:
  explicit NarrowIntegers(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) {
      const Node& node = e_.node(n);
      switch (node.op()) {
        case Op::kGather:
        case Op::kGatherElements:
        case Op::kGatherNd:
        case Op::kScatterElements:
        case Op::kScatterNd:
          root(n, {1});
          break;
        case Op::kCompare:
          root(n, {0, 1});
          break;
        case Op::kCast:
          if (e_.value(node.outputs[0]).dtype != DType::kInt32) root(n, {0});
          break;
        default:
          break;
      }
    }
    return e_.commit();
  }

 private:
  void root(int n, const std::vector<size_t>& operands) {
    std::vector<ValueId> inputs = e_.node(n).inputs;
    std::vector<Range> ranges;
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
      e_.graph().ledger->add({old.name,
                              node.name,
                              node.origin,
                              DType::kInt64,
                              DType::kInt32,
                              "narrow.i64",
                              fmt::format("proven to be in {} .. {}", ranges[k].low, ranges[k].high),
                              old.constant ? TypeEffect::kRetyped : TypeEffect::kNarrowed,
                              {}});
      inputs[operands[k]] = narrow(inputs[operands[k]]);
    }
    e_.replace(n, e_.node(n).attrs, inputs);
  }

  std::optional<Range> known(ValueId id, int depth) {
    const auto found = known_.find(id);
    return found != known_.end() ? found->second : known_[id] = look(id, depth);
  }
  std::optional<Range> look(ValueId id, int depth) {
    if (id < 0 || depth == 0 || !e_.value(id).extents.empty()) return std::nullopt;
    if (const ConstantPtr& c = e_.value(id).constant) {
      if (c->size() > kMostLookedAt || c->size() == 0) return std::nullopt;
      const std::vector<int64_t> items = c->as_int64s();
      const auto [low, high] = std::minmax_element(items.begin(), items.end());
      return within(*low, *high);
    }
    const int n = e_.producer(id);
    if (n < 0) return std::nullopt;
    const Node& node = e_.node(n);
    if (node.op() == Op::kCast) return range_of(e_.value(node.inputs[0]).dtype);
    const std::vector<size_t> operands = terms(node);
    if (operands.empty()) return std::nullopt;
    std::vector<Range> r;
    for (const size_t i : operands) {
      const auto range = known(node.inputs[i], depth - 1);
      if (!range) return std::nullopt;
      r.push_back(*range);
    }
    switch (node.op()) {
      case Op::kAdd:
        return within(r[0].low + r[1].low, r[0].high + r[1].high);
      case Op::kSub:
        return within(r[0].low - r[1].high, r[0].high - r[1].low);
      case Op::kMul: {
        const auto [low, high] = std::minmax(
            {r[0].low * r[1].low, r[0].low * r[1].high, r[0].high * r[1].low, r[0].high * r[1].high});
        return within(low, high);
      }
      case Op::kNeg:
        return within(-r[0].high, -r[0].low);
      default: {  // one of the operands' values
        Range all = r[0];
        for (const Range& one : r) all = {std::min(all.low, one.low), std::max(all.high, one.high)};
        return all;
      }
    }
  }

  // The operands of which the result is a sum, a product or a choice; none: an operation that is not
  // analysed.
  static std::vector<size_t> terms(const Node& node) {
    switch (node.op()) {
      case Op::kAdd:
        return unclamped(node.as<AddAttrs>()) ? std::vector<size_t>{0, 1} : std::vector<size_t>{};
      case Op::kSub:
        return unclamped(node.as<SubAttrs>()) ? std::vector<size_t>{0, 1} : std::vector<size_t>{};
      case Op::kMul:
        return unclamped(node.as<MulAttrs>()) ? std::vector<size_t>{0, 1} : std::vector<size_t>{};
      case Op::kMin:
      case Op::kMax:
        return {0, 1};
      case Op::kWhere:
        return {1, 2};
      case Op::kView:
        return node.as<ViewAttrs>()->dtype < 0 ? std::vector<size_t>{0} : std::vector<size_t>{};
      case Op::kNeg:
      case Op::kTranspose:
      case Op::kSlice:
      case Op::kBroadcast:
      case Op::kCopy:
      case Op::kGather:
        return {0};
      case Op::kConcat: {
        std::vector<size_t> all(node.inputs.size());
        for (size_t i = 0; i < all.size(); ++i) all[i] = i;
        return all;
      }
      default:
        return {};
    }
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
  std::map<ValueId, std::optional<Range>> known_;
  std::map<ValueId, ValueId> narrow_;
};

}  // namespace

int narrow_integers(Graph& graph) { return NarrowIntegers(graph).run(); }

}  // namespace sinter::convert
