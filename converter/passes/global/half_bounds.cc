#include "converter/passes/global/half_bounds.h"

#include <algorithm>
#include <cmath>

#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/global/float_rows.h"
#include "converter/passes/integers/integer_rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr size_t kLargestLookedAt = 1 << 16;  // bytes of a constant

class BoundFinder {
 public:
  explicit BoundFinder(const Graph& graph)
      : graph_(graph),
        bounds_{std::vector<double>(graph.values.size(), kInfinity),
                std::vector<double>(graph.nodes.size())} {}

  HalfBounds run() {
    for (size_t v = 0; v < graph_.values.size(); ++v)
      if (const ConstantPtr& c = graph_.values[v].constant;
          c && c->dtype() == DType::kFloat32 && c->byte_size() <= kLargestLookedAt)
        bounds_.values[v] = largest_magnitude(*c);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.outputs.empty() || node.outputs[0] < 0 || !node.bodies.empty() ||
          graph_.value(node.outputs[0]).dtype != DType::kFloat32)
        continue;
      const Bounds clamp = clamp_of(node);
      const Reach reach = reach_of(node);
      bounds_.sums[n] = std::isnan(reach.sum) ? kInfinity : reach.sum;
      bounds_.values[static_cast<size_t>(node.outputs[0])] =
          std::min(std::isnan(reach.result) ? kInfinity : reach.result,
                   std::max(std::fabs(clamp.low), std::fabs(clamp.high)));
    }
    return std::move(bounds_);
  }

 private:
  // Magnitudes before and after the function itself.
  struct Reach {
    double sum = 0, result = kInfinity;
  };

  double operand(const Node& node, size_t i) const {
    return i < node.inputs.size() && node.inputs[i] >= 0 ? bounds_.values[static_cast<size_t>(node.inputs[i])]
                                                         : 0;
  }

  Reach reach_of(const Node& node) const {
    const double x = operand(node, 0), y = operand(node, 1);
    const auto both = [](double sum) { return Reach{sum, sum}; };
    switch (node.op()) {
      case Op::kConv:
      case Op::kDepthwiseConv:
      case Op::kConvTranspose:
      case Op::kFullyConnected:
      case Op::kMatMul:
        return both(product_bound(node));
      case Op::kAdd:
      case Op::kSub:
        return both(x + y);
      case Op::kMul:
        return both(x * y);
      case Op::kPRelu:
        return both(std::max(x * y, x));
      case Op::kRope:
        return both(std::max(x, x * (y + operand(node, 2))));
      case Op::kAvgPool:
        return {x * static_cast<double>(summed_elements(graph_, node)), x};
      case Op::kLeakyRelu:
        return both(x * std::max(1.0, std::fabs(node.as<LeakyReluAttrs>()->alpha)));
      default:
        return {0, result_bound(node)};
    }
  }

  // The bound of a result that is not a sum.
  double result_bound(const Node& node) const {
    switch (node.op()) {
      case Op::kSigmoid:
      case Op::kTanh:
      case Op::kHardSigmoid:
        return 1;
      case Op::kSoftmax:
        return node.as<SoftmaxAttrs>()->log != 0 ? kInfinity : 1;
      case Op::kAttention:  // a mean of the values
        return operand(node, 2);
      case Op::kMin:
      case Op::kMax:
      case Op::kConcat:
      case Op::kPad: {
        double most = 0;
        for (size_t i = 0; i < node.inputs.size(); ++i) most = std::max(most, operand(node, i));
        return most;
      }
      case Op::kAbs:
      case Op::kNeg:
      case Op::kClamp:
      case Op::kHardSwish:
      case Op::kSilu:
      case Op::kMaxPool:
      case Op::kView:
      case Op::kCopy:
      case Op::kTranspose:
      case Op::kSlice:
      case Op::kTile:
      case Op::kBroadcast:
        return operand(node, 0);
      case Op::kResize:
        return operand(node, 0) *
               (node.as<ResizeAttrs>()->mode == static_cast<int64_t>(ResizeMode::kCubic) ? 2 : 1);
      case Op::kCast: {
        const DType from = graph_.value(node.inputs[0]).dtype;
        return from == DType::kUint8  ? 255
               : from == DType::kInt8 ? 128
               : from == DType::kBool ? 1
                                      : kInfinity;
      }
      default:
        return kInfinity;
    }
  }

  double product_bound(const Node& node) const {
    if (!graph_.is_constant(node.inputs[1])) return kInfinity;
    const ConstantPtr& w = graph_.value(node.inputs[1]).constant;
    if (w->dtype() != DType::kFloat32 || (node.op() == Op::kMatMul && w->dims().size() != 2))
      return kInfinity;
    const double x = operand(node, 0);
    if (!std::isfinite(x)) return kInfinity;
    const bool first = filters_first(node);
    std::vector<double> sums(row_count(*w, first));
    for_each_float(*w, first, [&](float v, size_t row) { sums[row] += std::fabs(v) * x; });
    double bias = 0;
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) {
      if (!graph_.is_constant(node.inputs[2])) return kInfinity;
      bias = largest_magnitude(*graph_.value(node.inputs[2]).constant);
    }
    return bias + (sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end()));
  }

  const Graph& graph_;
  HalfBounds bounds_;
};

}  // namespace

HalfBounds half_bounds(const Graph& graph) { return BoundFinder(graph).run(); }

}  // namespace sinter::convert
