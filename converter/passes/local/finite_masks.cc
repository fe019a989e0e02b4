// finite-masks: minus infinity in what is masked before a softmax becomes a large finite number where it
// would give NaN (rule mask.inf): 0 * -inf, and rows of which nothing is left. Nothing changes for other
// rows: the exponential of either is 0. A mask that a run computes in float32 with a number that float16 or
// bfloat16 cannot hold is not rounded to these in between. Models that look for the NaN themselves are left
// alone.
#include <algorithm>
#include <cmath>
#include <map>

#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Far below any score; sums of many masks stay finite.
constexpr double kMasked = 1e30;
constexpr int kMaskDepth = 8;
// Masks beyond this size are not examined.
constexpr int64_t kMostElements = int64_t{1} << 24;

class FiniteMasks {
 public:
  explicit FiniteMasks(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n)
      if (const auto* c = e_.node(n).as<ClassifyAttrs>(); c != nullptr && (c->mask & kClassifyNan) != 0)
        return 0;
    return e_.sweep([&](int n) {
      if (e_.node(n).as<SoftmaxAttrs>() != nullptr) visit(e_.node(n).inputs[0], kMaskDepth);
    });
  }

 private:
  void visit(ValueId id, int depth) {
    const int n = e_.producer(id);
    // A mask of many layers: once all that read it have turned out to be before a softmax.
    if (n < 0 || depth == 0 || ++arrived_[id] != e_.reads(id)) return;
    const Node node = e_.node(n);
    if (node.as<MulAttrs>() != nullptr) {
      replace(n, 0, false), replace(n, 1, false);
    } else if (node.as<AddAttrs>() != nullptr) {
      replace(n, 0, true), replace(n, 1, true);
      visit(node.inputs[0], depth - 1), visit(node.inputs[1], depth - 1);
    } else if (node.as<WhereAttrs>() != nullptr) {
      replace(n, 1, false), replace(n, 2, false);
      visit(node.inputs[1], depth - 1), visit(node.inputs[2], depth - 1);
    } else if (moves_whole(node.attrs)) {
      visit(node.inputs[0], depth - 1);
    } else if (node.as<CastAttrs>() != nullptr) {
      visit(node.inputs[0], depth - 1);
      keep_wide(n);
    }
  }

  // Operand i of node n, if it is a constant with infinities (`rows`: with a whole row of them).
  void replace(int n, size_t i, bool rows) {
    const Value& value = e_.value(e_.node(n).inputs[i]);
    const ConstantPtr c = value.constant;
    if (!c || !is_wide_float(c->dtype()) || c->size() > kMostElements) return;
    std::vector<double> items = c->as_doubles();
    if (std::none_of(items.begin(), items.end(), [](double v) { return std::isinf(v); })) return;
    if (rows && !has_lost_row(*c, items)) return;
    for (double& v : items)
      if (std::isinf(v)) v = std::copysign(kMasked, v);
    Node node = e_.node(n);
    e_.graph().decide(value, node, c->dtype(), TypeRule::kMaskInf, TypeEffect::kReplaced,
                      "infinity would give NaN before the softmax; 1e30 masks equally well");
    node.inputs[i] = e_.constant(real_constant(c->dtype(), c->dims(), items));
    e_.replace(n, node.attrs, node.inputs);
  }

  // Node n casts to float32 what a cast made narrow: where that one overflows, what it reads is read instead.
  void keep_wide(int n) {
    const int down = e_.made_by<CastAttrs>(e_.node(n).inputs[0]);
    if (down < 0 || e_.value(e_.node(n).outputs[0]).dtype != DType::kFloat32) return;
    const ValueId narrow = e_.node(down).outputs[0], wide = e_.node(down).inputs[0];
    const DType t = e_.value(narrow).dtype;
    if (e_.value(wide).dtype != DType::kFloat32 || (t != DType::kFloat16 && t != DType::kBFloat16)) return;
    if (!holds_beyond(wide, t == DType::kFloat16 ? 65519 : 0x1.FEFFFFp127, kMaskDepth)) return;
    e_.graph().decide(e_.value(narrow), e_.node(down), DType::kFloat32, TypeRule::kMaskInf,
                      TypeEffect::kWidened,
                      "the cast makes a mask infinite, which gives NaN before the softmax");
    e_.bypass(n, wide);
  }

  // Is there a finite constant beyond the limit in what the mask is made of?
  bool holds_beyond(ValueId id, double limit, int depth) {
    if (depth == 0 || id < 0) return false;
    const Value& value = e_.value(id);
    if (value.constant) {
      if (!is_wide_float(value.dtype) || value.constant->size() > kMostElements) return false;
      const std::vector<double> items = value.constant->as_doubles();
      return std::any_of(items.begin(), items.end(),
                         [&](double v) { return std::isfinite(v) && std::fabs(v) > limit; });
    }
    const int n = e_.producer(id);
    if (n < 0) return false;
    const Node& node = e_.node(n);
    const bool masks = node.as<MulAttrs>() != nullptr || node.as<AddAttrs>() != nullptr ||
                       node.as<WhereAttrs>() != nullptr || moves_whole(node.attrs);
    return masks && std::any_of(node.inputs.begin(), node.inputs.end(),
                                [&](ValueId v) { return holds_beyond(v, limit, depth - 1); });
  }

  static bool has_lost_row(const Constant& c, const std::vector<double>& items) {
    const auto length = c.dims().empty() ? 1 : static_cast<size_t>(c.dims().back());
    for (size_t row = 0; length > 0 && row + length <= items.size(); row += length)
      if (std::all_of(items.begin() + static_cast<ptrdiff_t>(row),
                      items.begin() + static_cast<ptrdiff_t>(row + length),
                      [](double v) { return std::isinf(v) && v < 0; }))
        return true;
    return false;
  }

  Editor e_;
  std::map<ValueId, int> arrived_;  // how many of a value's readers were met
};

}  // namespace

int make_masks_finite(Graph& graph) { return FiniteMasks(graph).run(); }

}  // namespace sinter::convert
