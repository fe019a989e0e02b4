#include "converter/quantize/integers/given_integers.h"

#include <algorithm>
#include <cmath>

#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"

namespace sinter::convert {
namespace {

bool is_float32(double x) { return static_cast<double>(static_cast<float>(x)) == x; }

// The operations that follow a cast, one reader after another.
class BytesChain {
 public:
  BytesChain(Editor& editor, const Uses& uses, int cast)
      : e_(editor),
        uses_(uses),
        type_(e_.value(e_.node(cast).inputs[0]).dtype),
        at_(e_.node(cast).outputs[0]),
        read_(at_) {}

  double scale() const { return scale_; }
  int64_t zero() const { return zero_; }

  void follow() {
    const bool whole = shift();
    const int n = reader();
    if (n < 0) return;
    const Node& node = e_.node(n);
    const std::vector<double> factors = operand<MulAttrs>(node);
    if (factors.size() > 1 || (factors.size() == 1 && by_channels_))
      scale_weights(n, factors);
    else if (factors.size() == 1 && whole && factors[0] >= 1e-30 && factors[0] <= 1e30)
      scale_ = factors[0], skip(n);
  }

 private:
  // The only node that reads the chain's end, behind what only moves elements; -1: there are several, or
  // none.
  int reader() {
    for (;;) {
      const auto& readers = uses_.readers[static_cast<size_t>(read_)];
      if (readers.size() != 1 || readers[0] < 0) return -1;
      const Node& node = e_.node(readers[0]);
      if (node.outputs.size() != 1 || !node.bodies.empty()) return -1;
      if (!moves_each_once(node.attrs)) return readers[0];
      at_ = read_ = node.outputs[0];
    }
  }

  // Node n, which read the chain's end, gives it.
  void skip(int n) {
    read_ = e_.node(n).outputs[0];
    e_.bypass(n, at_);
  }

  // The finite numbers of the constant that a node combines the chain's end with; empty: it does not.
  template <class A>
  std::vector<double> operand(const Node& node) const {
    if (!unclamped(node.as<A>()) || node.inputs[0] != at_ || e_.value(node.inputs[1]).constant == nullptr ||
        e_.value(node.outputs[0]).dims != e_.value(at_).dims)
      return {};
    std::vector<double> numbers = e_.value(node.inputs[1]).constant->as_doubles();
    const bool finite =
        std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
    return finite ? numbers : std::vector<double>();
  }

  // Moves a whole number of what is subtracted into the zero point; false: something else is left of it.
  bool shift() {
    const int n = reader();
    if (n < 0) return false;
    const std::vector<double> numbers = operand<SubAttrs>(e_.node(n));
    if (numbers.empty()) return e_.node(n).as<SubAttrs>() == nullptr;
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    const QuantRange range = quant_range(type_);
    const double near = std::clamp(std::nearbyint((*low + *high) / 2), static_cast<double>(range.min),
                                   static_cast<double>(range.max));
    if (*low == near && *high == near) {
      zero_ = static_cast<int64_t>(near);
      skip(n);
      return true;
    }
    // The difference is exact before it is rounded once, as it was.
    std::vector<float> rest;
    for (const double x : numbers) {
      if (!is_float32(x - near)) return false;
      rest.push_back(static_cast<float>(x - near));
    }
    if (numbers.size() > 1) {
      zero_ = static_cast<int64_t>(near);
      const ConstantPtr old = e_.value(e_.node(n).inputs[1]).constant;
      e_.node(n).inputs[1] = e_.constant(Constant::of<float>(DType::kFloat32, old->dims(), rest));
      ++e_.changes;
      at_ = read_ = e_.node(n).outputs[0];
      by_channels_ = true;
    }
    return false;
  }

  // Node n multiplies channels by these; the weights of the product behind it take them.
  void scale_weights(int n, const std::vector<double>& factors) {
    const ValueId y = e_.node(n).outputs[0];
    const auto& readers = uses_.readers[static_cast<size_t>(y)];
    if (readers.size() != 1 || readers[0] < 0) return;
    Node& product = e_.node(readers[0]);
    const auto* conv = product.as<ConvAttrs>();
    if ((conv == nullptr || conv->group != 1) && product.as<FullyConnectedAttrs>() == nullptr) return;
    const ConstantPtr weights = product.inputs[0] == y ? e_.value(product.inputs[1]).constant : nullptr;
    const Dims& dims = e_.value(e_.node(n).inputs[1]).dims;
    const auto count = static_cast<int64_t>(factors.size());
    if (!weights || weights->dtype() != DType::kFloat32 ||
        (count > 1 && (dims.back() != count || weights->dims().back() != count)))
      return;
    std::vector<float> scaled;
    for (const double w : weights->as_doubles())
      scaled.push_back(static_cast<float>(w * factors[scaled.size() % factors.size()]));
    product.inputs[1] = e_.constant(Constant::of<float>(DType::kFloat32, weights->dims(), scaled));
    skip(n);
  }

  Editor& e_;
  const Uses& uses_;
  DType type_;
  ValueId at_;    // its end
  ValueId read_;  // whose readers it has in `uses`
  bool by_channels_ = false;
  double scale_ = 1;
  int64_t zero_ = 0;
};

}  // namespace

std::optional<QuantParams> given_integers(const Graph& graph, const Node& node) {
  if (node.as<DequantizeAttrs>() == nullptr || graph.is_constant(node.inputs[0])) return std::nullopt;
  std::optional<QuantParams> params = quant_params(graph, node);
  if (!params || !is_byte(params->type)) return std::nullopt;
  if (params->type == DType::kUint8) params->type = DType::kInt8, params->zero_point -= kToUnsigned;
  return params;
}

std::vector<size_t> dequantize_bytes(Graph& graph) {
  std::vector<size_t> inputs;
  Editor e(graph);
  const Uses uses(graph);
  for (int n = 0; n < e.size(); ++n) {
    if (e.erased(n) || e.node(n).as<CastAttrs>() == nullptr) continue;
    const ValueId q = e.node(n).inputs[0], y = e.node(n).outputs[0];
    const DType type = e.value(q).dtype;
    if (!is_byte(type) || e.value(y).dtype != DType::kFloat32 || e.graph().is_constant(q) ||
        !e.value(y).bounded_dims.empty())
      continue;
    BytesChain chain(e, uses, n);
    chain.follow();
    const ValueId scale = e.constant(Constant::scalar(DType::kFloat32, chain.scale())),
                  zero = e.constant(Constant::scalar_int(type, chain.zero()));
    e.replace(n, DequantizeAttrs{}, {q, scale, zero});
    if (const auto at = std::find(graph.inputs.begin(), graph.inputs.end(), q); at != graph.inputs.end())
      inputs.push_back(static_cast<size_t>(at - graph.inputs.begin()));
  }
  e.commit();
  return inputs;
}

}  // namespace sinter::convert
