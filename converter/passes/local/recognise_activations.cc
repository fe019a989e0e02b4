// recognise-activations: GELU (erf and tanh forms), SiLU, HardSigmoid and HardSwish written in elementary
// operations become a single operation.
#include <algorithm>
#include <cmath>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "runtime/core/float_formats.h"

namespace sinter::convert {
namespace {

// Constants are written with float32's precision at best.
bool near(double a, double b) { return std::fabs(a - b) <= 1e-6 * std::fabs(b); }
// Models in float16 and bfloat16 have the constants of GELU in their own type, whose rounding makes less of a
// difference than that of their values.
bool rounded(double a, double b) {
  return near(a, b) || near(a, static_cast<double>(float16_value(float16_bits(b)))) ||
         near(a, static_cast<double>(bfloat16_value(bfloat16_bits(b))));
}
bool is_real(DType t) { return t == DType::kFloat32 || t == DType::kFloat64; }

// factor * leaves[0] * leaves[1] * ...
struct Product {
  double factor = 1;
  std::vector<ValueId> leaves;
};

class Recogniser {
 public:
  explicit Recogniser(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) {
      const Op op = e_.node(n).op();
      if ((op == Op::kMul || op == Op::kDiv) && is_real(e_.value(e_.node(n).outputs[0]).dtype)) match(n);
    }
    return e_.commit();
  }

 private:
  bool same_shape(ValueId x, int n) { return e_.value(x).dims == e_.value(e_.node(n).outputs[0]).dims; }

  void expand(ValueId id, bool root, int depth, Product* p) {
    const int n = e_.producer(id);
    if (n >= 0 && depth > 0 && (root || e_.single_read(id))) {
      const Node& node = e_.node(n);
      if (unclamped(node.as<MulAttrs>())) {
        for (const ValueId in : node.inputs) {
          if (const auto c = e_.uniform(in))
            p->factor *= *c;
          else
            expand(in, false, depth - 1, p);
        }
        return;
      }
      if (unclamped(node.as<DivAttrs>())) {
        if (const auto c = e_.uniform(node.inputs[1]); c && *c != 0) {
          p->factor /= *c;
          return expand(node.inputs[0], false, depth - 1, p);
        }
      }
      if (node.as<PowAttrs>() != nullptr && !root) {
        const auto c = e_.uniform(node.inputs[1]);
        if (c && (*c == 2 || *c == 3)) {
          p->leaves.insert(p->leaves.end(), static_cast<size_t>(*c), node.inputs[0]);
          return;
        }
      }
    }
    p->leaves.push_back(id);
  }
  Product product(ValueId id) {
    Product p;
    expand(id, true, 6, &p);
    return p;
  }
  // id = c + other: the other.
  std::optional<ValueId> plus(ValueId id, double c) {
    const int n = e_.made_by<AddAttrs>(id);
    if (n < 0 || !unclamped(e_.node(n).as<AddAttrs>())) return std::nullopt;
    for (size_t side = 0; side < 2; ++side) {
      const auto k = e_.uniform(e_.node(n).inputs[side]);
      if (k && near(*k, c)) return e_.node(n).inputs[1 - side];
    }
    return std::nullopt;
  }
  static bool only(const Product& p, ValueId x, size_t times) {
    return p.leaves.size() == times &&
           std::all_of(p.leaves.begin(), p.leaves.end(), [&](ValueId id) { return id == x; });
  }

  // v = sqrt(2 / pi) * (x + 0.044715 x^3)
  bool tanh_argument(ValueId v, ValueId x) {
    constexpr double kRoot = 0.79788456080286535588, kCube = 0.044715;
    const Product p = product(v);
    if (!rounded(p.factor, kRoot)) return false;
    if (p.leaves.size() == 1) {
      const int sum = e_.made_by<AddAttrs>(p.leaves[0]);
      if (sum < 0 || !unclamped(e_.node(sum).as<AddAttrs>())) return false;
      for (size_t side = 0; side < 2; ++side) {
        if (e_.node(sum).inputs[side] != x) continue;
        const Product cube = product(e_.node(sum).inputs[1 - side]);
        if (rounded(cube.factor, kCube) && only(cube, x, 3)) return true;
      }
      return false;
    }
    if (p.leaves.size() != 2) return false;
    for (size_t side = 0; side < 2; ++side) {
      const auto rest = p.leaves[side] == x ? plus(p.leaves[1 - side], 1) : std::nullopt;
      if (!rest) continue;
      const Product square = product(*rest);
      if (rounded(square.factor, kCube) && only(square, x, 2)) return true;
    }
    return false;
  }

  void match(int n) {
    const Product p = product(e_.node(n).outputs[0]);
    if (p.leaves.size() == 1 && near(p.factor, 1.0 / 6)) return hard_sigmoid(n, p.leaves[0]);
    if (p.leaves.size() != 2) return;
    for (size_t side = 0; side < 2; ++side) {
      const ValueId x = p.leaves[side], other = p.leaves[1 - side];
      if (!same_shape(x, n)) continue;
      if (gelu(n, p.factor, x, other) || silu(n, p.factor, x, other) || hard_swish(n, p.factor, x, other))
        return;
    }
  }

  bool gelu(int n, double factor, ValueId x, ValueId other) {
    if (!near(factor, 0.5)) return false;
    const auto f = plus(other, 1);
    if (!f) return false;
    if (const int erf = e_.made_by<ErfAttrs>(*f); erf >= 0) {
      const Product u = product(e_.node(erf).inputs[0]);
      const bool root = rounded(u.factor, std::sqrt(0.5)) || rounded(1 / u.factor, std::sqrt(2.0));
      if (!root || !only(u, x, 1)) return false;
      e_.replace(n, GeluAttrs{0}, {x});
      return true;
    }
    const int tanh = e_.made_by<TanhAttrs>(*f);
    if (tanh < 0 || !tanh_argument(e_.node(tanh).inputs[0], x)) return false;
    e_.replace(n, GeluAttrs{1}, {x});
    return true;
  }

  bool silu(int n, double factor, ValueId x, ValueId other) {
    const int sigmoid = e_.made_by<SigmoidAttrs>(other);
    if (sigmoid < 0 || factor != 1) return false;
    const ValueId in = e_.node(sigmoid).inputs[0];
    const Product u = in == x ? Product{1, {x}} : product(in);
    if (!only(u, x, 1)) return false;
    e_.replace(n, SiluAttrs{u.factor}, {x});
    return true;
  }

  // clamp(x + 3, 0, 6)
  bool ramp(ValueId id, ValueId* x) {
    const int clamp = e_.made_by<ClampAttrs>(id);
    if (clamp < 0 || e_.node(clamp).as<ClampAttrs>()->min != 0 || e_.node(clamp).as<ClampAttrs>()->max != 6)
      return false;
    const auto in = plus(e_.node(clamp).inputs[0], 3);
    if (in) *x = *in;
    return in.has_value();
  }
  void hard_sigmoid(int n, ValueId leaf) {
    ValueId x = kAbsent;
    if (ramp(leaf, &x) && same_shape(x, n)) e_.replace(n, HardSigmoidAttrs{1.0 / 6, 0.5}, {x});
  }
  bool hard_swish(int n, double factor, ValueId x, ValueId other) {
    ValueId in = kAbsent;
    const int h = e_.made_by<HardSigmoidAttrs>(other);
    const bool sixth = near(factor, 1.0 / 6) && ramp(other, &in) && in == x;
    const bool whole = factor == 1 && h >= 0 && e_.node(h).inputs[0] == x &&
                       near(e_.node(h).as<HardSigmoidAttrs>()->alpha, 1.0 / 6) &&
                       e_.node(h).as<HardSigmoidAttrs>()->beta == 0.5;
    if (!sixth && !whole) return false;
    e_.replace(n, HardSwishAttrs{}, {x});
    return true;
  }

  Editor e_;
};

}  // namespace

int recognise_activations(Graph& graph) { return Recogniser(graph).run(); }

}  // namespace sinter::convert
