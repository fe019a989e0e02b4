// Part of recognise-attention for caches of a fixed size: Attention whose bias hides each key beyond a
// position that is computed at run time gets the number of keys up to there, so that no others are read.
// The walk asks only whether the keys stay the last axis, so that it needs no map of single elements.
#include <algorithm>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kHidesBelow = -1e30;  // what is added to it leaves no trace in a float32
constexpr int kLiveKeysDepth = 24;

// Limit is where the hidden keys of rows of N keys begin.
struct Limit {
  ValueId end = kAbsent;  // integers, one for each row or for several: key j is hidden where j >= end + more
  int64_t more = 0;
  bool exact = true;  // all other keys are shown
};

class LiveKeys {
 public:
  explicit LiveKeys(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) limit(n);
    return e_.commit();
  }

 private:
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }

  // Returns whether a value is [1, .., N] of 0, 1, .., N - 1.
  bool counts_keys(ValueId id) const {
    const ConstantPtr& c = e_.value(id).constant;
    if (!c || dims(id).empty() || c->size() != dims(id).back() || !is_integer(c->dtype())) return false;
    const std::vector<int64_t> items = c->as_int64s();
    for (size_t i = 0; i < items.size(); ++i)
      if (items[i] != static_cast<int64_t>(i)) return false;
    return true;
  }
  // Returns the limit of j < x or j <= x, in either order, where this truth shows key j (or its opposite
  // does).
  std::optional<Limit> of_compare(const Node& node, bool shows) {
    auto fn = static_cast<CompareFn>(node.as<CompareAttrs>()->fn);
    ValueId keys = node.inputs[0], end = node.inputs[1];
    if (!counts_keys(keys)) {
      std::swap(keys, end);
      constexpr CompareFn kSwapped[] = {CompareFn::kEqual,   CompareFn::kNotEqual,
                                        CompareFn::kGreater, CompareFn::kGreaterOrEqual,
                                        CompareFn::kLess,    CompareFn::kLessOrEqual};
      fn = kSwapped[static_cast<size_t>(fn)];
    }
    if (!counts_keys(keys) || !is_integer(e_.value(end).dtype) ||
        (!dims(end).empty() && dims(end).back() != 1))
      return std::nullopt;
    if (shows && fn == CompareFn::kLess) return Limit{end, 0};
    if (shows && fn == CompareFn::kLessOrEqual) return Limit{end, 1};
    if (!shows && fn == CompareFn::kGreaterOrEqual) return Limit{end, 0};
    if (!shows && fn == CompareFn::kGreater) return Limit{end, 1};
    return std::nullopt;
  }

  // Returns the limit of a truth, or of a number that is 1 or 0 for it, behind views and repetitions of rows.
  std::optional<Limit> of_mask(ValueId id, bool shows, int steps) {
    const int n = e_.producer(id);
    if (n < 0 || steps == 0) return std::nullopt;
    const Node& node = e_.node(n);
    if (node.as<CompareAttrs>() != nullptr) return of_compare(node, shows);
    if (node.as<BitNotAttrs>() != nullptr && e_.value(id).dtype == DType::kBool)
      return of_mask(node.inputs[0], !shows, steps - 1);
    if (node.as<CastAttrs>() != nullptr) {
      const DType from = e_.value(node.inputs[0]).dtype;
      if (from != DType::kBool && e_.value(id).dtype != DType::kBool) return std::nullopt;
      return of_mask(node.inputs[0], shows, steps - 1);
    }
    if (keeps_rows(node, id)) return of_mask(node.inputs[0], shows, steps - 1);
    const auto* both = node.as<BitwiseAttrs>();
    if (both == nullptr || both->fn != static_cast<int64_t>(BitwiseFn::kAnd) || !shows ||
        e_.value(id).dtype != DType::kBool)
      return std::nullopt;
    for (const ValueId in : node.inputs) {
      if (dims(in).empty() || dims(in).back() != dims(id).back()) continue;
      if (auto found = of_mask(in, shows, steps - 1)) return found->exact = false, found;
    }
    return std::nullopt;
  }
  // Returns whether a view or a repetition has the last axis, of the keys, of its operand.
  bool keeps_rows(const Node& node, ValueId id) const {
    const auto* view = node.as<ViewAttrs>();
    if (!(view != nullptr && view->dtype < 0) && node.as<BroadcastAttrs>() == nullptr) return false;
    const Dims &from = dims(node.inputs[0]), &to = dims(id);
    return !from.empty() && !to.empty() && from.back() == to.back();
  }

  struct Hidden {
    Limit limit;
    bool finite;
  };
  // Returns what a value hides that is added to scores, or replaces them where it is not 0.
  std::optional<Hidden> of_bias(ValueId id, int steps) {
    const int n = e_.producer(id);
    if (n < 0 || steps == 0) return std::nullopt;
    const Node& node = e_.node(n);
    const auto hides = [&](ValueId v) {
      const auto c = e_.uniform(v);
      return c && *c <= kHidesBelow ? c : std::nullopt;
    };
    const auto of = [](std::optional<Limit> limit, double lowest) -> std::optional<Hidden> {
      if (!limit) return std::nullopt;
      return Hidden{*limit, lowest != -kInfinity};
    };
    if (keeps_rows(node, id)) return of_bias(node.inputs[0], steps - 1);
    if (node.as<WhereAttrs>() != nullptr) {
      const bool shows = e_.uniform(node.inputs[1]) == 0.0;
      const ValueId low = node.inputs[shows ? 2 : 1], none = node.inputs[shows ? 1 : 2];
      const auto lowest = hides(low);
      if (!lowest || e_.uniform(none) != 0.0 || !keeps_keys(node.inputs[0], id)) return std::nullopt;
      return of(of_mask(node.inputs[0], shows, steps - 1), *lowest);
    }
    if (unclamped(node.as<MulAttrs>())) {
      const size_t side = hides(node.inputs[0]) ? 1 : 0;
      const auto lowest = hides(node.inputs[1 - side]);
      if (!lowest || *lowest == -kInfinity || !keeps_keys(node.inputs[side], id)) return std::nullopt;
      return of(of_mask(node.inputs[side], false, steps - 1), *lowest);
    }
    if (!unclamped(node.as<AddAttrs>())) return std::nullopt;
    for (const ValueId in : node.inputs) {
      if (!keeps_keys(in, id)) continue;
      if (auto found = of_bias(in, steps - 1)) return found->limit.exact = false, found;
    }
    return std::nullopt;
  }
  bool keeps_keys(ValueId part, ValueId whole) const {
    return !dims(part).empty() && dims(part).back() == dims(whole).back();
  }

  void limit(int n) {
    const auto* given = e_.node(n).as<AttentionAttrs>();
    std::vector<ValueId> inputs = e_.node(n).inputs;
    if (given == nullptr || given->causal != 0 || inputs.size() < 4 || inputs[3] == kAbsent ||
        (inputs.size() > 4 && inputs[4] != kAbsent))
      return;
    const int64_t keys = dims(inputs[1])[2], batch = dims(inputs[0])[0];
    const auto found = keys > 1 && dims(inputs[3]).size() > 0 && dims(inputs[3]).back() == keys
                           ? of_bias(inputs[3], kLiveKeysDepth)
                           : std::nullopt;
    const auto rule = static_cast<AttentionRule>(given->rule);
    // Where a row has only finite numbers, every key has a weight: no row may be like that.
    const bool weighs_hidden = (rule == AttentionRule::kAdds && found && found->finite) ||
                               rule == AttentionRule::kReplaces ||
                               (rule == AttentionRule::kAddsNanToZero && found && found->finite);
    if (!found || e_.value(found->limit.end).constant || (weighs_hidden && !found->limit.exact)) return;
    const ValueId length = lengths(n, found->limit, keys, batch);
    if (length < 0) return;
    inputs.resize(std::max<size_t>(inputs.size(), 5), kAbsent);
    inputs[4] = length;
    e_.replace(n, AttentionAttrs(*given), inputs);
  }

  // Returns [B], the largest end of all rows, or all keys where a row has none.
  ValueId lengths(int n, const Limit& limit, int64_t keys, int64_t batch) {
    const auto insert = [&](OpAttrs attrs, std::vector<ValueId> inputs) {
      return std::count_if(inputs.begin(), inputs.end(), [](ValueId v) { return v < 0; }) > 0
                 ? kAbsent
                 : e_.insert(n, std::move(attrs), std::move(inputs));
    };
    const auto number = [&](int64_t i) { return e_.constant(Constant::scalar_int(DType::kInt64, i)); };
    const int64_t count = element_count(dims(limit.end));
    if (count == 0) return kAbsent;
    ValueId ends = limit.end;
    if (e_.value(ends).dtype != DType::kInt64)
      ends = insert(CastAttrs{static_cast<int64_t>(DType::kInt64), 1}, {ends});
    ends = insert(ViewAttrs{IntList{count}, -1}, {ends});
    if (limit.more != 0) ends = insert(AddAttrs{}, {ends, number(limit.more)});
    const auto one = [&](ReduceFn fn) {
      return insert(ReduceAttrs{static_cast<int64_t>(fn), IntList{0}, 1}, {ends});
    };
    const ValueId lowest = count == 1 ? ends : one(ReduceFn::kMin),
                  most = count == 1 ? ends : one(ReduceFn::kMax);
    const ValueId none = insert(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {lowest, number(1)});
    ValueId length = insert(WhereAttrs{}, {none, number(keys), most});
    length = insert(MinAttrs{}, {length, number(keys)});
    return batch == 1 ? length : insert(BroadcastAttrs{IntList{batch}}, {length});
  }

  Editor e_;
};

}  // namespace

int limit_to_live_keys(Graph& graph) { return LiveKeys(graph).run(); }

}  // namespace sinter::convert
