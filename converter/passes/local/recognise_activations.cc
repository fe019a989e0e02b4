// recognise-activations: GELU (erf and tanh forms), SiLU, HardSigmoid and HardSwish written in elementary
// operations become a single operation.
#include <algorithm>
#include <cmath>

#include "converter/passes/passes.h"
#include "converter/passes/pattern.h"
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

// factor * leaves[0] * leaves[1] * ...
struct Product {
  double factor = 1;
  std::vector<ValueId> leaves;
};

void expand(Editor& e, ValueId id, bool root, int depth, Product* p) {
  const int n = e.producer(id);
  if (n >= 0 && depth > 0 && (root || e.single_read(id))) {
    const Node& node = e.node(n);
    if (unclamped(node.as<MulAttrs>())) {
      for (const ValueId in : node.inputs) {
        if (const auto c = e.uniform(in))
          p->factor *= *c;
        else
          expand(e, in, false, depth - 1, p);
      }
      return;
    }
    if (unclamped(node.as<DivAttrs>())) {
      if (const auto c = e.uniform(node.inputs[1]); c && *c != 0) {
        p->factor /= *c;
        return expand(e, node.inputs[0], false, depth - 1, p);
      }
    }
    if (node.as<PowAttrs>() != nullptr && !root) {
      const auto c = e.uniform(node.inputs[1]);
      if (c && (*c == 2 || *c == 3)) {
        p->leaves.insert(p->leaves.end(), static_cast<size_t>(*c), node.inputs[0]);
        return;
      }
    }
  }
  p->leaves.push_back(id);
}

// Matches the leaves with the shapes from the i-th on, in any order.
bool match_leaves(Editor& e, std::vector<ValueId> leaves, const std::vector<Pattern>& shapes, size_t i,
                  const Pattern::Then& then) {
  if (i == shapes.size()) return then();
  for (size_t at = i; at < leaves.size(); ++at) {
    std::swap(leaves[i], leaves[at]);
    if (shapes[i].match(e, leaves[i], [&] { return match_leaves(e, leaves, shapes, i + 1, then); }))
      return true;
  }
  return false;
}

using Factor = std::function<bool(double)>;

// A product of these shapes and of constants whose product passes a test.
Pattern product(Factor factor, std::vector<Pattern> shapes) {
  return Pattern::Match([factor = std::move(factor), shapes = std::move(shapes)](Editor& e, ValueId id,
                                                                                 const Pattern::Then& then) {
    constexpr int kProductDepth = 6;
    Product p;
    expand(e, id, true, kProductDepth, &p);
    return p.leaves.size() == shapes.size() && factor(p.factor) && match_leaves(e, p.leaves, shapes, 0, then);
  });
}

Factor about(double wanted) {
  return [wanted](double v) { return near(v, wanted); };
}
Factor in_any_type(double wanted) {
  return [wanted](double v) { return rounded(v, wanted); };
}
bool is_one(double v) { return v == 1; }
Pattern plus(double c, Pattern other) { return commuted<AddAttrs>(number(about(c)), std::move(other)); }

}  // namespace

int recognise_activations(Graph& graph) {
  Editor e(graph);
  Capture x;
  double slope = 1;
  // 0.5 x (1 + erf(x / sqrt(2)))
  const Factor root_half = [](double v) {
    return rounded(v, std::sqrt(0.5)) || rounded(1 / v, std::sqrt(2.0));
  };
  const Pattern by_erf = product(about(0.5), {x, plus(1, op<ErfAttrs>(product(root_half, {x})))});
  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  const Factor root = in_any_type(0.79788456080286535588), cube = in_any_type(0.044715);
  const Pattern argument = any_of(product(root, {commuted<AddAttrs>(x, product(cube, {x, x, x}))}),
                                  product(root, {x, plus(1, product(cube, {x, x}))}));
  const Pattern by_tanh = product(about(0.5), {x, plus(1, op<TanhAttrs>(argument))});
  // x / (1 + exp(-slope x))
  const Factor is_slope = [&slope](double v) { return slope = v, true; };
  const Pattern silu = product(is_one, {x, op<SigmoidAttrs>(x)});
  const Pattern scaled_silu = product(is_one, {x, op<SigmoidAttrs>(product(is_slope, {x}))});
  // clamp(x + 3, 0, 6) / 6, and x times this
  const Pattern ramp = op<ClampAttrs>(plus(3, x)).where([](const Node& node) {
    return node.as<ClampAttrs>()->min == 0 && node.as<ClampAttrs>()->max == 6;
  });
  const Pattern sixths = op<HardSigmoidAttrs>(x).where([](const Node& node) {
    const auto* a = node.as<HardSigmoidAttrs>();
    return near(a->alpha, 1.0 / 6) && a->beta == 0.5;
  });
  const Pattern hard_sigmoid = product(about(1.0 / 6), {ramp});
  const Pattern hard_swish = any_of(product(about(1.0 / 6), {x, ramp}), product(is_one, {x, sixths}));

  return e.sweep([&](int n) {
    const Op op = e.node(n).op();
    if ((op != Op::kMul && op != Op::kDiv) || !is_wide_float(e.value(e.result(n)).dtype)) return;
    const auto becomes = [&](const Pattern& shape, const std::function<OpAttrs()>& attrs) {
      return shape.match(e, e.result(n), [&] {
        if (!same_dims(e.graph(), x, e.result(n))) return false;
        e.replace(n, attrs(), {x});
        return true;
      });
    };
    becomes(by_erf, [] { return GeluAttrs{0}; }) || becomes(by_tanh, [] { return GeluAttrs{1}; }) ||
        becomes(silu, [] { return SiluAttrs{1}; }) ||
        becomes(scaled_silu, [&] { return SiluAttrs{slope}; }) ||
        becomes(hard_sigmoid,
                [] {
                  return HardSigmoidAttrs{1.0 / 6, 0.5};
                }) ||
        becomes(hard_swish, [] { return HardSwishAttrs{}; });
  });
}

}  // namespace sinter::convert
