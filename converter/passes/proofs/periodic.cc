#include "converter/passes/proofs/periodic.h"

#include <fmt/format.h>

namespace sinter::convert {
namespace {

constexpr int kPeriodicDepth = 32;
// Constants beyond this size are not examined.
constexpr int64_t kMostPeriodicElements = int64_t{1} << 22;

class Periodic {
 public:
  Periodic(Editor& e, int64_t period, int64_t phase, bool negated)
      : e_(e), period_(period), phase_(phase), negated_(negated) {}

  std::string of(ValueId id, int depth) {
    const Value& v = e_.value(id);
    if (v.constant) return constant(id);
    const int n = e_.producer(id);
    if (n < 0 || depth == 0 || !is_float(v.dtype) || !split(v.dims)) return leaf(id);
    const Node& node = e_.node(n);
    const ValueId from = node.inputs.empty() ? kAbsent : node.inputs[0];
    if (from < 0) return leaf(id);
    const Dims& was = e_.value(from).dims;
    switch (node.op()) {
      case Op::kView:
        return node.as<ViewAttrs>()->dtype < 0 ? of(from, depth - 1) : leaf(id);
      case Op::kCopy:
        return of(from, depth - 1);
      case Op::kNeg:
        negated_ = !negated_;
        return of(from, depth - 1);
      case Op::kCast:
        // Rounding is symmetric.
        if (!is_float(e_.value(from).dtype)) return leaf(id);
        return fmt::format("cast{}({})", static_cast<int>(v.dtype), of(from, depth - 1));
      case Op::kTrig: {
        const bool sign = std::exchange(negated_, false);
        return fmt::format("{}trig{}({})", sign ? "-" : "", node.as<TrigAttrs>()->fn, of(from, depth - 1));
      }
      case Op::kMul:
        for (size_t i = 0; i < 2 && unclamped(node.as<MulAttrs>()); ++i)
          if (const auto scale = e_.scalar(node.inputs[i]);
              scale && e_.value(node.inputs[1 - i]).dims == v.dims)
            return fmt::format("{:a}*({})", *scale, of(node.inputs[1 - i], depth - 1));
        return leaf(id);
      case Op::kSlice:
        return slice(n, id, *node.as<SliceAttrs>(), was, depth);
      case Op::kConcat:
        return concat(n, id, static_cast<size_t>(node.as<ConcatAttrs>()->axis), depth);
      case Op::kTile:
      case Op::kBroadcast:
        return repeat(n, id, was, depth);
      case Op::kTranspose: {
        const auto& perm = node.as<TransposeAttrs>()->perm;
        for (int i = static_cast<int>(suffix_); i < perm.size(); ++i)
          if (perm[i] != i) return leaf(id);
        return rearranged(n, from, depth);
      }
      case Op::kGather:
        return gather(n, id, was, depth);
      case Op::kGatherNd: {
        const int64_t picked = node.as<GatherNdAttrs>()->batch_dims + e_.value(node.inputs[1]).dims.back();
        return keeps_suffix(was, v.dims) &&
                       static_cast<size_t>(picked) + (v.dims.size() - suffix_) <= was.size()
                   ? rearranged(n, from, depth)
                   : leaf(id);
      }
      default:
        return leaf(id);
    }
  }

 private:
  // The fewest last axes that hold whole periods begin at suffix_; they are one_ period, or several.
  bool split(const Dims& dims) {
    int64_t size = 1;
    suffix_ = dims.size();
    while (suffix_ > 0 && size % period_ != 0) size *= dims[--suffix_];
    one_ = size == period_;
    return size > 0 && size % period_ == 0;
  }
  bool keeps_suffix(const Dims& from, const Dims& dims) const {
    const size_t count = dims.size() - suffix_;
    return from.size() >= count && std::equal(dims.end() - static_cast<ptrdiff_t>(count), dims.end(),
                                              from.end() - static_cast<ptrdiff_t>(count));
  }

  std::string leaf(ValueId id) const {
    return fmt::format("{}%{}[{}/{}]", negated_ ? "-" : "", id, phase_, period_);
  }
  std::string constant(ValueId id) const {
    const Constant& c = *e_.value(id).constant;
    if (!is_wide_float(c.dtype()) || c.size() > kMostPeriodicElements) return leaf(id);
    const std::vector<double> items = c.as_doubles();
    std::string text = "#";
    for (size_t i = static_cast<size_t>(phase_); i < items.size(); i += static_cast<size_t>(period_))
      text += fmt::format("{:a},", (negated_ ? -items[i] : items[i]) + 0.0);
    return text;
  }
  // Node n moves whole periods.
  std::string rearranged(int n, ValueId from, int depth) {
    const int64_t period = period_;
    return fmt::format("{}/{}({})", n, period, of(from, depth - 1));
  }

  // Coordinates of the phase along the suffix, and back with the dims of an operand.
  Dims coordinates(const Dims& dims) const {
    Dims at(dims.size());
    int64_t left = phase_;
    for (size_t i = dims.size(); i-- > suffix_;) at[i] = left % dims[i], left /= dims[i];
    return at;
  }
  void place(const Dims& dims, size_t suffix, const Dims& at, size_t shift) {
    period_ = 1, phase_ = 0;
    for (size_t i = suffix; i < dims.size(); ++i)
      phase_ = phase_ * dims[i] + at[i + shift], period_ *= dims[i];
  }

  std::string slice(int n, ValueId id, const SliceAttrs& a, const Dims& from, int depth) {
    const auto whole = [&](size_t i) { return a.starts[i] == 0 && a.steps[i] == 1 && a.sizes[i] == from[i]; };
    bool outer = true, inner = true;
    for (size_t i = 0; i < from.size(); ++i) (i < suffix_ ? outer : inner) &= whole(i);
    const int64_t period = period_;
    if (!inner) {
      if (!one_) return leaf(id);
      Dims at = coordinates(e_.value(id).dims);
      for (size_t i = suffix_; i < at.size(); ++i) at[i] = a.starts[i] + at[i] * a.steps[i];
      place(from, suffix_, at, 0);
    }
    std::string text = of(e_.node(n).inputs[0], depth - 1);
    return outer ? text : fmt::format("{}/{}({})", n, period, text);
  }

  std::string concat(int n, ValueId id, size_t axis, int depth) {
    const std::vector<ValueId> inputs = e_.node(n).inputs;
    if (axis < suffix_) {
      std::string text = fmt::format("{}/{}(", n, period_);
      for (const ValueId input : inputs)
        text += Periodic(e_, period_, phase_, negated_).of(input, depth - 1) + ";";
      return text + ")";
    }
    if (!one_) return leaf(id);
    Dims at = coordinates(e_.value(id).dims);
    for (const ValueId input : inputs) {
      const Dims& dims = e_.value(input).dims;
      if (at[axis] < dims[axis]) {
        place(dims, suffix_, at, 0);
        return of(input, depth - 1);
      }
      at[axis] -= dims[axis];
    }
    return leaf(id);
  }

  // Tile or Broadcast: `from` may have fewer axes.
  std::string repeat(int n, ValueId id, const Dims& from, int depth) {
    const Dims& dims = e_.value(id).dims;
    const size_t more = dims.size() - from.size();
    bool outer = true;
    for (size_t i = 0; i < suffix_; ++i) outer &= dims[i] == (i < more ? 1 : from[i - more]);
    const int64_t period = period_;
    if (one_) {
      Dims at = coordinates(dims);
      for (size_t i = std::max(suffix_, more); i < dims.size(); ++i) at[i] %= from[i - more];
      place(from, suffix_ > more ? suffix_ - more : 0, at, more);
    } else if (!keeps_suffix(from, dims)) {
      return leaf(id);
    }
    std::string text = of(e_.node(n).inputs[0], depth - 1);
    return outer ? text : fmt::format("{}/{}({})", n, period, text);
  }

  std::string gather(int n, ValueId id, const Dims& from, int depth) {
    const Node& node = e_.node(n);
    const auto axis = static_cast<size_t>(node.as<GatherAttrs>()->axis);
    const Dims& dims = e_.value(id).dims;
    if (axis + 1 + (dims.size() - suffix_) <= from.size()) return rearranged(n, node.inputs[0], depth);
    const ConstantPtr& index = e_.value(node.inputs[1]).constant;
    if (!index || axis + 1 != from.size() || index->dims().size() != 1 || suffix_ + 1 != dims.size())
      return leaf(id);
    std::string text = fmt::format("{}%{}(", negated_ ? "-" : "", node.inputs[0]);
    const std::vector<int64_t> items = index->as_int64s();
    for (size_t i = static_cast<size_t>(phase_); i < items.size(); i += static_cast<size_t>(period_))
      text += fmt::format("{},", items[i]);
    return text + ")";
  }

  Editor& e_;
  int64_t period_, phase_;
  bool negated_;
  size_t suffix_ = 0;
  bool one_ = false;
};

}  // namespace

std::string periodic(Editor& e, ValueId id, int64_t period, int64_t phase, bool negated) {
  return Periodic(e, period, phase, negated).of(id, kPeriodicDepth);
}

}  // namespace sinter::convert
