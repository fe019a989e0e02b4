// drop-subnormals: weights and biases below float32's normal range (training with weight decay leaves many)
// become 0 (rule weight.tiny), for processors compute with such numbers many times more slowly than with
// others. Two reasons justify it. Where the multiplied values are bounded, no sum can change by more than
// 1e-30. Where nothing bounds them, the tensor must have an ordinary weight: then no sum changes by more than
// 1e-15 of the product of the largest weight and the largest value, less than the roundings of float32 change
// it by (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.5).
#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/pass.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kSmallestNormal = std::numeric_limits<float>::min();
constexpr double kLargestChange = 1e-30;    // of any sum
constexpr double kLargestRelative = 1e-15;  // of any sum, of the largest weight times the largest value
constexpr int kDepth = 16;

bool tiny(float v) { return v != 0 && std::fabs(static_cast<double>(v)) < kSmallestNormal; }

struct Weights {
  int64_t tiny = 0;
  double largest = 0;
};

Weights survey(const Constant& c) {
  const LoadedBytes loaded = c.load();
  Weights w;
  for (size_t i = 0; i + sizeof(float) <= loaded.bytes.size(); i += sizeof(float)) {
    float v;
    std::memcpy(&v, loaded.bytes.data() + i, sizeof v);
    w.tiny += tiny(v) ? 1 : 0;
    if (std::isfinite(v)) w.largest = std::max(w.largest, std::fabs(static_cast<double>(v)));
  }
  return w;
}

ConstantPtr without_tiny(const ConstantPtr& c) {
  const auto compute = [c] {
    const LoadedBytes loaded = c->load();
    Bytes bytes(loaded.bytes.begin(), loaded.bytes.end());
    for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
      float v;
      std::memcpy(&v, bytes.data() + i, sizeof v);
      if (tiny(v)) std::memset(bytes.data() + i, 0, sizeof v);
    }
    return bytes;
  };
  return c->byte_size() < kLazyBytes ? Constant::owned(c->dtype(), c->dims(), compute())
                                     : Constant::lazy(c->dtype(), c->dims(), compute);
}

class DropSubnormals {
 public:
  explicit DropSubnormals(Graph& graph) : e_(graph) {}

  int run() {
    return e_.sweep([&](int n) {
      const Op op = e_.node(n).op();
      const bool product = is_product(op);
      for (size_t i = 0; i < e_.node(n).inputs.size(); ++i) {
        const bool bias = is_weighted_product(op) && i == 2;
        if (bias)
          drop(n, i, 1);
        else if ((product || is_recurrent(op)) && may_be_weights(op, i))
          drop(n, i, product ? magnitude(e_.node(n).inputs[i == 0 ? 1 : 0], kDepth) : kInfinity);
      }
    });
  }

 private:
  // `bound` is that of what operand i multiplies.
  void drop(int n, size_t i, double bound) {
    const ValueId id = e_.node(n).inputs[i];
    if (id < 0) return;
    const Value value = e_.value(id);
    const ConstantPtr& c = value.constant;
    if (!c || c->dtype() != DType::kFloat32 || c->recipe()) return;
    const Weights weights = survey(*c);
    if (weights.tiny == 0) return;
    // A sum has no more terms than there are weights.
    const double change = static_cast<double>(c->size()) * kSmallestNormal;
    const bool bounded = std::isfinite(bound);
    if (bounded ? std::max(bound, 1.0) * change > kLargestChange
                : change > kLargestRelative * weights.largest)
      return;
    Node node = e_.node(n);
    e_.graph().decide(value, node, c->dtype(), TypeRule::kWeightTiny, TypeEffect::kReplaced,
                      std::to_string(weights.tiny) +
                          " numbers below 1.2e-38 become 0: they do not change any sum by more than " +
                          (bounded ? "1e-30" : "1e-15 of its largest possible term") +
                          ", and slow every run");
    node.inputs[i] = e_.constant(without_tiny(c));
    e_.graph().value(node.inputs[i]).name = value.name;
    e_.replace(n, node.attrs, node.inputs);
  }

  // No element is larger, NaN aside.
  double magnitude(ValueId id, int depth) {
    const int n = e_.producer(id);
    if (n < 0 || depth == 0) return kInfinity;
    const Node& node = e_.node(n);
    const Bounds bounds = clamp_of(node);
    const double clamped = std::max(std::fabs(bounds.low), std::fabs(bounds.high));
    if (std::isfinite(clamped) || node.op() == Op::kClamp) return clamped;
    if (is_within_one(node.attrs)) return 1;
    const bool passes = moves_whole(node.attrs) || work_kind(node.op()) == WorkKind::kPool;
    return passes ? magnitude(node.inputs[0], depth - 1) : kInfinity;
  }

  Editor e_;
};

}  // namespace

int drop_subnormals(Graph& graph) { return DropSubnormals(graph).run(); }

}  // namespace sinter::convert
