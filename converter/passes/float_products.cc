// float-products: products of integers of 8 bits whose sums only a Cast to float32 reads are computed in
// float32 (rule int.exact), whose kernels are fast and read packed weights. This is how dynamically quantized
// models are written: MatMulInteger, Cast, and a product with the scales.
//
// Sums of whole numbers are exact in float32 up to 2^24. Larger ones are rounded while they grow, and not
// only by the Cast.
#include <algorithm>

#include "converter/ir/integer_range.h"
#include "converter/passes/editor.h"
#include "converter/passes/pass.h"

namespace sinter::convert {
namespace {

constexpr int64_t kLargest = 511;  // of an operand of 8 bits less its zero point

class FloatProducts {
 public:
  explicit FloatProducts(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n)
      if (e_.node(n).as<CastAttrs>() != nullptr && e_.value(e_.node(n).outputs[0]).dtype == DType::kFloat32)
        convert(n);
    return e_.commit();
  }

 private:
  void convert(int n) {
    const ValueId sum = e_.node(n).inputs[0];
    const int product = e_.producer(sum);
    if (product < 0 || !e_.single_read(sum) || !is_integer(e_.value(sum).dtype) ||
        !e_.value(sum).bounded_dims.empty())
      return;
    const Node node = e_.node(product);
    const auto* matrix = node.as<MatMulAttrs>();
    if ((matrix == nullptr && !unclamped(node.as<FullyConnectedAttrs>())) || node.inputs.size() != 2) return;
    const Dims& x = e_.value(node.inputs[0]).dims;
    if (x.size() < 2) return;
    const int64_t depth = x[x.size() - (matrix != nullptr && matrix->transpose_a != 0 ? 2 : 1)];
    int64_t most = depth;  // of a sum
    for (const ValueId id : node.inputs) {
      const auto range = integer_range(e_.graph(), id);
      const int64_t largest = range ? std::max(-range->low, range->high) : kLargest + 1;
      if (largest > kLargest || !e_.value(id).bounded_dims.empty()) return;
      if (!checked_mul(most, largest, &most) || most > INT32_MAX) return;  // may wrap
    }
    std::vector<ValueId> wide;
    for (const ValueId id : node.inputs)
      wide.push_back(e_.insert(n, CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {id}));
    if (std::count(wide.begin(), wide.end(), kAbsent) > 0) return;
    const Value& value = e_.value(sum);
    e_.graph().decide(value, node, DType::kFloat32, TypeRule::kIntExact, TypeEffect::kRetyped,
                      "sums of products of 8 bits, which only a Cast to float32 reads, are computed in "
                      "float32: exactly up to 2^24");
    e_.replace(n, node.attrs, wide);
  }

  Editor e_;
};

}  // namespace

int float_products(Graph& graph) { return FloatProducts(graph).run(); }

}  // namespace sinter::convert
