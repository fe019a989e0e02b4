// drop-roundings: a normalization or softmax that the model computes in float32 and then casts to float16 or
// bfloat16, for layers that are computed in float32 here, is not rounded in between (rule cast.norm). Its
// values are bounded, so that only the rounding goes.
#include "converter/ir/op_traits.h"
#include "converter/passes/passes.h"
#include "converter/passes/pattern.h"

namespace sinter::convert {

int drop_roundings(Graph& graph) {
  Editor e(graph);
  Capture wide, narrow;
  // x / sqrt(...), x * 1 / sqrt(...), or an operation that is one.
  const Pattern any = any_value(), over_root = op<DivAttrs>(any, op<SqrtAttrs>(any));
  const Pattern operation = any_value().where([](const Node& node) {
    return elements_of(node.op()) == Elements::kNormalized || node.op() == Op::kSoftmax;
  });
  const Pattern normalized =
      any_of(operation, over_root, commuted<MulAttrs>(any, any_of(op<RsqrtAttrs>(any), over_root)));
  const Pattern rounded = op<CastAttrs>(narrow(op<CastAttrs>(wide(normalized))));
  return e.sweep([&](int n) {
    rounded.match(e, e.result(n), [&] {
      const DType type = e.value(narrow).dtype;
      if ((type != DType::kFloat16 && type != DType::kBFloat16) || e.value(wide).dtype != DType::kFloat32 ||
          e.value(e.result(n)).dtype != DType::kFloat32)
        return false;
      graph.decide(e.value(narrow), e.node(e.producer(narrow)), DType::kFloat32, TypeRule::kCastNorm,
                   TypeEffect::kWidened,
                   "a normalized value is not rounded on its way to what is computed in float32");
      e.bypass(n, wide);
      return true;
    });
  });
}

}  // namespace sinter::convert
