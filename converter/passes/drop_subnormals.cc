// drop-subnormals: weights and biases below float32's normal range (training with weight decay leaves many)
// become 0 where what they multiply is bounded, so that no sum can change by more than 1e-30 (rule
// weight.tiny). Processors compute with such numbers many times more slowly than with others.
#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/pass.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kSmallestNormal = std::numeric_limits<float>::min();
constexpr double kLargestChange = 1e-30;  // of any sum
constexpr int kDepth = 16;

bool tiny(float v) { return v != 0 && std::fabs(static_cast<double>(v)) < kSmallestNormal; }

int64_t count_tiny(const Constant& c) {
  const LoadedBytes loaded = c.load();
  int64_t n = 0;
  for (size_t i = 0; i + sizeof(float) <= loaded.bytes.size(); i += sizeof(float)) {
    float v;
    std::memcpy(&v, loaded.bytes.data() + i, sizeof v);
    n += tiny(v) ? 1 : 0;
  }
  return n;
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
    for (int n = 0; n < e_.size(); ++n) {
      if (!is_weighted_product(e_.node(n).op())) continue;
      const double bound = magnitude(e_.node(n).inputs[0], kDepth);
      for (size_t i = 1; i < e_.node(n).inputs.size(); ++i) drop(n, i, bound);
    }
    return e_.commit();
  }

 private:
  void drop(int n, size_t i, double bound) {
    const ValueId id = e_.node(n).inputs[i];
    if (id < 0) return;
    const Value value = e_.value(id);
    const ConstantPtr& c = value.constant;
    if (!c || c->dtype() != DType::kFloat32 || c->recipe()) return;
    // A sum has no more terms than there are weights.
    if (!(std::max(bound, 1.0) * static_cast<double>(c->size()) * kSmallestNormal <= kLargestChange)) return;
    const int64_t count = count_tiny(*c);
    if (count == 0) return;
    Node node = e_.node(n);
    e_.graph().ledger->add({value.name,
                            node.name,
                            node.origin,
                            c->dtype(),
                            c->dtype(),
                            TypeRule::kWeightTiny,
                            std::to_string(count) +
                                " numbers below 1.2e-38 become 0: they do not change any sum by " +
                                "more than 1e-30, and slow every run",
                            TypeEffect::kReplaced,
                            {}});
    node.inputs[i] = e_.constant(without_tiny(c));
    e_.graph().value(node.inputs[i]).name = value.name;
    e_.replace(n, node.attrs, node.inputs);
  }

  // No element is larger, NaN aside.
  double magnitude(ValueId id, int depth) {
    const int n = e_.producer(id);
    if (n < 0 || depth == 0) return kInfinity;
    const Node& node = e_.node(n);
    const double clamped = std::visit(
        [](const auto& a) {
          if constexpr (requires { a.act_min; }) return std::max(std::fabs(a.act_min), std::fabs(a.act_max));
          return kInfinity;
        },
        node.attrs);
    if (std::isfinite(clamped)) return clamped;
    if (const auto* clamp = node.as<ClampAttrs>())
      return std::max(std::fabs(clamp->min), std::fabs(clamp->max));
    if (is_within_one(node.attrs)) return 1;
    const bool passes = moves_whole(node.attrs) || work_kind(node.op()) == WorkKind::kPool;
    return passes ? magnitude(node.inputs[0], depth - 1) : kInfinity;
  }

  Editor e_;
};

}  // namespace

int drop_subnormals(Graph& graph) { return DropSubnormals(graph).run(); }

}  // namespace sinter::convert
