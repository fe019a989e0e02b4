// float-products: products of integers of 8 bits whose sums only a Cast to float32 reads are computed in
// float32 (rule int.exact), whose kernels are fast and read packed weights. This is how dynamically quantized
// models are written: MatMulInteger or ConvInteger, Cast, and a product with the scales.
//
// Sums of whole numbers are exact in float32 up to 2^24. Larger ones are rounded while they grow, and not
// only by the Cast.
#include <algorithm>

#include "converter/ir/integer_range.h"
#include "converter/passes/local/cast_sums.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

constexpr int64_t kLargest = 511;  // of an operand of 8 bits less its zero point

class FloatProducts {
 public:
  explicit FloatProducts(Graph& graph) : e_(graph) {}

  int run() {
    return sweep_cast_sums(e_, [this](const CastSum& sum) { convert(sum); });
  }

 private:
  void convert(const CastSum& sum) {
    const Node node = e_.node(sum.product);
    const int64_t depth = depth_of(node);
    if (depth < 1 || node.inputs.size() != 2) return;
    int64_t most = depth;  // of a sum
    for (const ValueId id : node.inputs) {
      const auto range = integer_range(e_.graph(), id);
      const int64_t largest = range ? std::max(-range->low, range->high) : kLargest + 1;
      if (largest > kLargest) return;
      if (!checked_mul(most, largest, &most) || most > INT32_MAX) return;  // may wrap
    }
    std::vector<ValueId> wide;
    for (const ValueId id : node.inputs) wide.push_back(as_float(sum.cast, id));
    if (std::count(wide.begin(), wide.end(), kAbsent) == 0) give_float_sum(e_, sum, node.attrs, wide);
  }

  // The products of one sum; 0: not such an operation.
  int64_t depth_of(const Node& node) {
    const Dims& x = e_.value(node.inputs[0]).dims;
    const auto* matrix = node.as<MatMulAttrs>();
    if (matrix != nullptr || unclamped(node.as<FullyConnectedAttrs>()))
      return x.size() < 2 ? 0 : x[x.size() - (matrix != nullptr && matrix->transpose_a != 0 ? 2 : 1)];
    const bool depthwise = unclamped(node.as<DepthwiseConvAttrs>());
    if (!depthwise && !unclamped(node.as<ConvAttrs>())) return 0;
    const Dims& w = e_.value(node.inputs[1]).dims;
    const int64_t outputs = w.empty() ? 0 : depthwise ? w.back() : w.front();
    return outputs == 0 ? 0 : element_count(w) / outputs;
  }

  bool small(ValueId id) {
    const auto range = integer_range(e_.graph(), id);
    return bit_width(e_.value(id).dtype) >= 32 && range && range->low >= -kLargest && range->high <= kLargest;
  }

  // Inserts an operation whose result has the bounded dims of `like`.
  ValueId insert_like(int n, ValueId like, OpAttrs attrs, std::vector<ValueId> inputs) {
    if (std::count(inputs.begin(), inputs.end(), kAbsent) > 0) return kAbsent;
    const ValueId id = e_.insert(n, std::move(attrs), std::move(inputs));
    if (id != kAbsent) e_.graph().value(id).bounded_dims = e_.value(like).bounded_dims;
    return id;
  }

  // A value of few bits as float32, before node n: a difference of bytes is computed in float32, where it is
  // exact.
  ValueId as_float(int n, ValueId id) {
    const CastAttrs cast{static_cast<int64_t>(DType::kFloat32), 1};
    const int made = e_.graph().is_constant(id) ? -1 : e_.producer(id);
    if (made < 0) return insert_like(n, id, cast, {id});
    const Node node = e_.node(made);
    const ValueId first = node.inputs.empty() ? kAbsent : node.inputs[0];
    if (node.as<CastAttrs>() != nullptr && byte_width(e_.value(first).dtype) == 1 &&
        is_integer(e_.value(first).dtype))
      return insert_like(n, id, cast, {first});
    if (node.as<TransposeAttrs>() != nullptr) return insert_like(n, id, node.attrs, {as_float(n, first)});
    if (node.as<SubAttrs>() != nullptr && small(id) && small(first) && small(node.inputs[1]))
      return insert_like(n, id, node.attrs, {as_float(n, first), as_float(n, node.inputs[1])});
    return insert_like(n, id, cast, {id});
  }

  Editor e_;
};

}  // namespace

int float_products(Graph& graph) { return FloatProducts(graph).run(); }

}  // namespace sinter::convert
