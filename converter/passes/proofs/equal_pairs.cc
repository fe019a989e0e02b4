#include "converter/passes/proofs/equal_pairs.h"

#include <cstring>
#include <functional>
#include <numeric>

namespace sinter::convert {
namespace {

constexpr int kPairDepth = 24;
constexpr int64_t kMostCompared = int64_t{1} << 22;  // of a constant that is compared

int64_t extent(const Dims& dims, size_t first, size_t last) {
  return std::accumulate(dims.begin() + static_cast<ptrdiff_t>(first),
                         dims.begin() + static_cast<ptrdiff_t>(last), int64_t{1}, std::multiplies<>());
}

bool all_alike(const Constant& c, size_t axis) {
  const int bits = bit_width(c.dtype());
  if (bits % 8 != 0 || c.size() > kMostCompared) return false;
  const size_t each =
      static_cast<size_t>(extent(c.dims(), axis + 1, c.dims().size())) * static_cast<size_t>(bits / 8);
  const LoadedBytes loaded = c.load();
  for (size_t at = 0; at + 2 * each <= loaded.bytes.size(); at += 2 * each)
    if (std::memcmp(loaded.bytes.data() + at, loaded.bytes.data() + at + each, each) != 0) return false;
  return true;
}

class PairProver {
 public:
  explicit PairProver(Editor& e) : e_(e) {}

  bool pairs(ValueId id, size_t axis, int depth) {
    if (id < 0 || depth == 0) return false;
    const Value& v = e_.value(id);
    if (axis >= v.dims.size() || v.dims[axis] % 2 != 0 || v.dims[axis] == 0) return false;
    if (v.constant) return all_alike(*v.constant, axis);
    const int n = e_.producer(id);
    if (n < 0 || e_.node(n).inputs.empty() || e_.node(n).inputs[0] < 0) return false;
    const Node& node = e_.node(n);
    const ValueId from = node.inputs[0];
    const Dims& was = e_.value(from).dims;
    const auto at = static_cast<int64_t>(axis);
    switch (node.op()) {
      case Op::kTrig:
      case Op::kNeg:
      case Op::kCast:
      case Op::kCopy:
        return pairs(from, axis, depth - 1);
      case Op::kMul:
        for (size_t i = 0; i < 2; ++i)
          if (e_.scalar(node.inputs[i]) && same_dims(e_.graph(), node.inputs[1 - i], id))
            return pairs(node.inputs[1 - i], axis, depth - 1);
        return false;
      case Op::kTranspose:
        return pairs(from, static_cast<size_t>(node.as<TransposeAttrs>()->perm[static_cast<int>(axis)]),
                     depth - 1);
      case Op::kView:
        return node.as<ViewAttrs>()->dtype < 0 && viewed(from, v.dims, axis, depth);
      case Op::kBroadcast: {
        const size_t more = v.dims.size() - was.size();
        if (axis < more || was[axis - more] != v.dims[axis]) return axis < more || was[axis - more] == 1;
        return pairs(from, axis - more, depth - 1);
      }
      case Op::kConcat:
        if (node.as<ConcatAttrs>()->axis == at && !whole_pairs(node, axis)) return false;
        for (const ValueId part : node.inputs)
          if (!pairs(part, axis, depth - 1)) return false;
        return true;
      case Op::kSlice: {
        const SliceAttrs& a = *node.as<SliceAttrs>();
        const int i = static_cast<int>(axis);
        return a.starts[i] % 2 == 0 && a.steps[i] == 1 && was[axis] % 2 == 0 && pairs(from, axis, depth - 1);
      }
      case Op::kGather: {
        // Of other axes, those in front of the index stay.
        const int64_t gathered = node.as<GatherAttrs>()->axis;
        const auto index_axes = static_cast<int64_t>(e_.value(node.inputs[1]).dims.size());
        if (at < gathered) return pairs(from, axis, depth - 1);
        return at >= gathered + index_axes &&
               pairs(from, static_cast<size_t>(at - index_axes + 1), depth - 1);
      }
      default:
        return false;
    }
  }

 private:
  bool whole_pairs(const Node& node, size_t axis) {
    for (const ValueId part : node.inputs)
      if (e_.value(part).dims[axis] % 2 != 0) return false;
    return true;
  }

  // The axis of `dims` is several axes of `from`, the last of which has whole pairs.
  bool viewed(ValueId from, const Dims& dims, size_t axis, int depth) {
    const Dims& was = e_.value(from).dims;
    if (element_count(was) == 0) return false;
    const int64_t inner = extent(dims, axis + 1, dims.size());
    size_t last = was.size();
    int64_t behind = 1;
    while (last > 0 && behind < inner) behind *= was[--last];
    if (behind != inner) return false;
    while (last > 0 && was[last - 1] == 1) --last;
    // Its elements are those of `axis`, or the fastest of them, or `axis` is the fastest part of it.
    return last > 0 && pairs(from, last - 1, depth - 1);
  }

  Editor& e_;
};

}  // namespace

bool equal_pairs(Editor& e, ValueId id, size_t axis) { return PairProver(e).pairs(id, axis, kPairDepth); }

}  // namespace sinter::convert
