// drop-roundings: a normalization or softmax that the model computes in float32 and then casts to float16 or
// bfloat16, for layers that are computed in float32 here, is not rounded in between (rule cast.norm). Its
// values are bounded, so that only the rounding goes.
#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

bool is_narrow(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }

class DropRoundings {
 public:
  explicit DropRoundings(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) {
      const int down = cast(n, DType::kFloat32) ? e_.made_by<CastAttrs>(e_.node(n).inputs[0]) : -1;
      if (down < 0) continue;
      const ValueId narrow = e_.node(down).outputs[0], wide = e_.node(down).inputs[0];
      if (!is_narrow(e_.value(narrow).dtype) || e_.value(wide).dtype != DType::kFloat32 || !normalized(wide))
        continue;
      record(down, narrow);
      e_.bypass(n, wide);
    }
    return e_.commit();
  }

 private:
  bool cast(int n, DType to) {
    return e_.node(n).as<CastAttrs>() != nullptr && e_.value(e_.node(n).outputs[0]).dtype == to;
  }

  // x / sqrt(...), x * 1 / sqrt(...), or an operation that is one.
  bool normalized(ValueId id) {
    const int n = e_.producer(id);
    if (n < 0) return false;
    const Node& node = e_.node(n);
    if (elements_of(node.op()) == Elements::kNormalized || node.as<SoftmaxAttrs>() != nullptr) return true;
    if (node.as<MulAttrs>() != nullptr) return inverse_root(node.inputs[0]) || inverse_root(node.inputs[1]);
    return node.as<DivAttrs>() != nullptr && e_.made_by<SqrtAttrs>(node.inputs[1]) >= 0;
  }
  bool inverse_root(ValueId id) {
    if (e_.made_by<RsqrtAttrs>(id) >= 0) return true;
    const int quotient = e_.made_by<DivAttrs>(id);
    return quotient >= 0 && e_.made_by<SqrtAttrs>(e_.node(quotient).inputs[1]) >= 0;
  }

  void record(int down, ValueId narrow) {
    const Node& node = e_.node(down);
    const Value& value = e_.value(narrow);
    e_.graph().decide(value, node, DType::kFloat32, TypeRule::kCastNorm, TypeEffect::kWidened,
                      "a normalized value is not rounded on its way to what is computed in float32");
  }

  Editor e_;
};

}  // namespace

int drop_roundings(Graph& graph) { return DropRoundings(graph).run(); }

}  // namespace sinter::convert
