// dynamic-products: products of integers by constants whose x DynamicQuantize has rounded, and whose sums
// only a Cast to float32 reads, are computed on integers of 8 bits (rule int.exact). This is how dynamically
// quantized models are written: DynamicQuantizeLinear, MatMulInteger or ConvInteger, Cast, and a product with
// the scales.
//
// With q = x' + 128 and z = z' + 128, the sum of (q - z) * w is that of x' * w, less z' times the sum of w:
// one number for each column, which is subtracted behind the product. Sums are whole numbers, and so exact in
// float32 up to 2^24.
#include <algorithm>
#include <map>
#include <numeric>

#include "converter/ir/integer_weights.h"
#include "converter/passes/integers/integer_rows.h"
#include "converter/passes/local/cast_sums.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

// Constant weights, whose first axis is that of the columns.
struct ColumnWeights {
  IntegerWeights integers;  // with one zero point at most
  std::vector<float> sums;  // of each column, less its zero points
};

class DynamicProducts {
 public:
  explicit DynamicProducts(Graph& graph) : e_(graph) {}

  int run() {
    return sweep_cast_sums(e_, [this](const CastSum& sum) { convert(sum); });
  }

 private:
  void convert(const CastSum& sum) {
    const int n = sum.cast;
    if (e_.value(sum.sum).dtype != DType::kInt32) return;
    const Node node = e_.node(sum.product);
    const bool conv = unclamped(node.as<ConvAttrs>());
    if ((!conv && !unclamped(node.as<FullyConnectedAttrs>())) || node.inputs.size() != 2 ||
        !e_.graph().is_constant(node.inputs[1]) || (conv && !e_.value(node.inputs[0]).bounded_dims.empty()))
      return;
    const int moved = conv ? e_.made_by<TransposeAttrs>(node.inputs[0]) : -1;
    bool zeros = false;
    const int quantize = quantizer(moved >= 0 ? e_.node(moved).inputs[0] : node.inputs[0], &zeros);
    if (quantize < 0) return;
    const auto weights = column_weights(e_.value(node.inputs[1]).constant);
    if (!weights) return;
    const auto x = quantized(quantize);
    if (!x) return;

    ValueId numbers = x->numbers;
    const ValueId zero = zeros ? x->zero : e_.constant(Constant::scalar_int(DType::kInt8, -128));
    if (moved >= 0) numbers = e_.insert(n, e_.node(moved).attrs, {numbers});
    if (conv && numbers != kAbsent) numbers = padded(n, *node.as<ConvAttrs>(), numbers, zero);
    if (numbers == kAbsent) return;
    std::vector<ValueId> inputs{
        numbers, e_.constant(weights->integers.q),
        e_.constant(vector_of(DType::kInt32, std::vector<int32_t>(weights->sums.size()))),
        e_.constant(vector_of<float>(DType::kFloat32, {1.0f}))};
    if (const auto& zeros_of = weights->integers.zeros; !zeros_of.empty())
      inputs.push_back(e_.constant(vector_of<int8_t>(DType::kInt8, zeros_of)));
    const ValueId products = e_.insert(n, integer_attrs(node, weights->integers.wide), inputs);
    const ValueId steps = e_.insert(n, CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {zero});
    if (products == kAbsent || steps == kAbsent) return;
    e_.graph().value(products).bounded_dims = e_.value(sum.sum).bounded_dims;
    const ValueId shift =
        e_.insert(n, MulAttrs{}, {e_.constant(vector_of(DType::kFloat32, weights->sums)), steps});
    if (shift != kAbsent) give_float_sum(e_, sum, SubAttrs{}, {products, shift});
  }

  // Nothing is beyond the edges of an x that is padded.
  static OpAttrs integer_attrs(const Node& node, bool wide) {
    OpAttrs attrs =
        integer_product(node, {.to = static_cast<int64_t>(DType::kFloat32), .wide = wide ? 1 : 0});
    if (auto* q = std::get_if<QConvAttrs>(&attrs))
      for (int i = 0; i < q->pads.size(); ++i) q->pads[i] = 0;
    return attrs;
  }

  // Pads x with the zero point, which is a number of the run, so that no window leaves x.
  ValueId padded(int n, const ConvAttrs& conv, ValueId x, ValueId zero) {
    if (std::all_of(conv.pads.begin(), conv.pads.end(), [](int64_t p) { return p == 0; })) return x;
    const int axes = conv.pads.size() / 2;
    PadAttrs pad{};
    for (const int end : {0, 1}) {
      pad.pads.push(0);  // the batch
      for (int i = 0; i < axes; ++i) pad.pads.push(conv.pads[end * axes + i]);
      pad.pads.push(0);  // channels
    }
    return e_.insert(n, pad, {x, zero});
  }

  // The DynamicQuantize whose numbers are `x`, as int32, or as int32 less its zero point (*zeros). -1:
  // another value.
  int quantizer(ValueId x, bool* zeros) {
    const int difference = e_.made_by<SubAttrs>(x);
    *zeros = difference >= 0;
    const ValueId numbers = *zeros ? e_.node(difference).inputs[0] : x;
    const int quantize = quantizer_of(numbers, 0);
    return *zeros && quantizer_of(e_.node(difference).inputs[1], 2) != quantize ? -1 : quantize;
  }
  int quantizer_of(ValueId id, size_t output) {
    const int cast = e_.made_by<CastAttrs>(id);
    if (cast < 0) return -1;
    const ValueId from = e_.node(cast).inputs[0];
    const int n = e_.made_by<DynamicQuantizeAttrs>(from);
    return n >= 0 && e_.node(n).outputs[output] == from && e_.value(from).dtype == DType::kUint8 ? n : -1;
  }

  // The results of a DynamicQuantize of the same x to int8.
  struct Quantized {
    ValueId numbers = kAbsent, zero = kAbsent;
  };
  std::optional<Quantized> quantized(int quantize) {
    const auto known = quantized_.find(quantize);
    if (known != quantized_.end()) return known->second;
    DynamicQuantizeAttrs attrs{};
    attrs.to = static_cast<int64_t>(DType::kInt8);
    const Node node = e_.node(quantize);
    const std::vector<ValueId> results =
        e_.insert_many(quantize, attrs, {node.inputs[0]}, {true, true, true});
    if (results.empty()) return std::nullopt;
    e_.graph().value(results[0]).bounded_dims = e_.value(node.outputs[0]).bounded_dims;
    // The scale is the same, so that the other one may go.
    if (node.outputs[1] >= 0 && !e_.graph().is_output(node.outputs[1]))
      replace_uses(e_.graph(), node.outputs[1], results[1]);
    return quantized_[quantize] = {results[0], results[2]};
  }

  static std::optional<ColumnWeights> column_weights(const ConstantPtr& numbers) {
    if (numbers->dims().size() < 2 || numbers->size() == 0) return std::nullopt;
    // Sums of products of int8, and sums of weights in float32, are exact.
    const int64_t columns = numbers->dims()[0], depth = numbers->size() / columns;
    if (depth > (int64_t{1} << 24) / 256) return std::nullopt;
    auto integers = byte_weights(numbers);
    if (!integers) return std::nullopt;
    ColumnWeights w{std::move(*integers), {}};
    const int64_t zeros = w.integers.zeros.empty() ? 0 : depth * w.integers.zeros[0];
    const LoadedBytes loaded = w.integers.q->load();
    const auto* at = reinterpret_cast<const int8_t*>(loaded.bytes.data());
    for (int64_t c = 0; c < columns; ++c, at += depth)
      w.sums.push_back(static_cast<float>(std::accumulate(at, at + depth, -zeros)));
    return w;
  }

  Editor e_;
  std::map<int, Quantized> quantized_;
};

}  // namespace

int dynamic_products(Graph& graph) { return DynamicProducts(graph).run(); }

}  // namespace sinter::convert
