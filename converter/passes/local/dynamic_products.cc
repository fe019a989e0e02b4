// dynamic-products: products of integers of 8 bits by constants are computed on integers of 8 bits. This is
// how dynamically quantized models are written: DynamicQuantizeLinear, MatMulInteger or ConvInteger, Cast,
// and a product with the scales; some add a bias of integers before the Cast.
//
// uint8 becomes int8: with x = x' + 128 and z = z' + 128, the sum of (x - z) * w is that of x' * w, less z'
// times the sum of w. This is one number for each column. It is subtracted behind the product where z is
// known when the model runs, and is the bias of the product where z is constant. Sums come out in float32,
// which holds whole numbers exactly up to 2^24. Where only a Cast to float32 reads them, they stay there
// (rule int.exact). Others become integers again, provided that the weights prove that no sum is larger.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "converter/ir/integer_weights.h"
#include "converter/passes/integers/integer_rows.h"
#include "converter/passes/local/cast_sums.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

// Constant weights by columns, the outputs of the product.
struct ColumnWeights {
  IntegerWeights integers;    // with one zero point at most
  std::vector<int64_t> sums;  // of each column, less its zero points
  bool exact = false;         // float32 holds each sum of products with x less its zero point
};

class DynamicProducts {
 public:
  explicit DynamicProducts(Graph& graph) : e_(graph) {}

  int float_sums() {
    return sweep_cast_sums(e_, [this](const CastSum& sum) {
      const auto p = product(sum.cast, sum.product, false);
      if (!p) return;
      if (p->shift == kAbsent) return give_float_sum(e_, sum, p->attrs, p->inputs);
      const ValueId products = insert_like(sum.cast, sum.sum, p->attrs, p->inputs);
      if (products != kAbsent) give_float_sum(e_, sum, SubAttrs{}, {products, p->shift});
    });
  }
  int integer_sums() {
    return e_.sweep([this](int n) {
      if (!is_product(e_.node(n))) return;
      const auto p = product(n, n, true);
      if (!p) return;
      e_.graph().decide(e_.value(e_.result(n)), e_.node(n), DType::kFloat32, TypeRule::kIntExact,
                        TypeEffect::kWidened,
                        "sums of products of 8 bits, none of them larger than 2^24, are computed in float32: "
                        "exactly");
      ValueId sums = insert_like(n, e_.result(n), p->attrs, p->inputs);
      if (sums != kAbsent && p->shift != kAbsent)
        sums = insert_like(n, e_.result(n), SubAttrs{}, {sums, p->shift});
      if (sums != kAbsent) e_.replace(n, CastAttrs{static_cast<int64_t>(DType::kInt32), 1}, {sums});
    });
  }

 private:
  // x as int8, and its zero point, which is int8, too.
  struct Bytes {
    ValueId numbers = kAbsent, zero = kAbsent;
    std::optional<int64_t> known;  // the zero point, if it is constant
  };
  // An operation that gives sums in float32, from which `shift` has to be subtracted unless it is absent.
  struct Product {
    OpAttrs attrs;
    std::vector<ValueId> inputs;
    ValueId shift = kAbsent;
  };

  // Returns the product of node `made`, if it is one of bytes by constants, by operations before node n.
  std::optional<Product> product(int n, int made, bool only_exact) {
    const Node node = e_.node(made);
    const ValueId sum = e_.result(made);
    const bool depthwise = unclamped(node.as<DepthwiseConvAttrs>());
    const bool windows = depthwise || unclamped(node.as<ConvAttrs>());
    if (sum < 0 || e_.value(sum).dtype != DType::kInt32 || node.inputs.size() != 2 ||
        !(windows || unclamped(node.as<FullyConnectedAttrs>())) || !e_.graph().is_constant(node.inputs[1]) ||
        (windows && !e_.value(node.inputs[0]).bounded_dims.empty()))
      return std::nullopt;
    const auto weights = column_weights(e_.value(node.inputs[1]).constant, depthwise);
    if (!weights || (only_exact && !weights->exact)) return std::nullopt;
    int moved = windows ? e_.made_by<TransposeAttrs>(node.inputs[0]) : -1;
    if (windows && moved < 0) moved = e_.made_by<ViewAttrs>(node.inputs[0]);
    const auto x = bytes_of(n, moved >= 0 ? e_.node(moved).inputs[0] : node.inputs[0]);
    if (!x) return std::nullopt;
    ValueId numbers = x->numbers;
    if (moved >= 0) numbers = e_.insert(n, e_.node(moved).attrs, {numbers});
    if (numbers != kAbsent && windows)
      numbers = padded(n, depthwise ? node.as<DepthwiseConvAttrs>()->pads : node.as<ConvAttrs>()->pads,
                       numbers, x->zero);
    if (numbers == kAbsent) return std::nullopt;

    std::vector<int32_t> bias(weights->sums.size());
    Product p{integer_attrs(node, weights->integers.wide), {}};
    if (x->known && weights->exact) {
      for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<int32_t>(-*x->known * weights->sums[i]);
    } else {
      e_.graph().decide(e_.value(x->zero), e_.node(made), DType::kFloat32, TypeRule::kIntExact,
                        TypeEffect::kCast,
                        "the zero point meets the sums of the weights in float32, which holds both exactly");
      const ValueId steps = e_.insert(n, CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {x->zero});
      if (steps == kAbsent) return std::nullopt;
      const std::vector<float> sums(weights->sums.begin(), weights->sums.end());
      p.shift = e_.insert(n, MulAttrs{}, {e_.constant(vector_of(DType::kFloat32, sums)), steps});
      if (p.shift == kAbsent) return std::nullopt;
    }
    p.inputs = {numbers, e_.constant(weights->integers.q), e_.constant(vector_of(DType::kInt32, bias)),
                e_.constant(vector_of<float>(DType::kFloat32, {1.0f}))};
    if (const auto& zeros = weights->integers.zeros; !zeros.empty())
      p.inputs.push_back(e_.constant(vector_of<int8_t>(DType::kInt8, zeros)));
    return p;
  }

  ValueId insert_like(int n, ValueId like, const OpAttrs& attrs, const std::vector<ValueId>& inputs) {
    const ValueId made = e_.insert(n, attrs, inputs);
    if (made != kAbsent) e_.graph().value(made).bounded_dims = e_.value(like).bounded_dims;
    return made;
  }

  // Nothing is beyond the edges of an x that is padded.
  static OpAttrs integer_attrs(const Node& node, bool wide) {
    OpAttrs attrs =
        integer_product(node, {.to = static_cast<int64_t>(DType::kFloat32), .wide = wide ? 1 : 0});
    const auto clear = [](auto* q) {
      for (int i = 0; q != nullptr && i < q->pads.size(); ++i) q->pads[i] = 0;
    };
    clear(std::get_if<QConvAttrs>(&attrs));
    clear(std::get_if<QDepthwiseConvAttrs>(&attrs));
    return attrs;
  }

  // Pads x with the zero point, which may be a number of the run, so that no window leaves x.
  ValueId padded(int n, const IntList& pads, ValueId x, ValueId zero) {
    if (std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; })) return x;
    const int axes = pads.size() / 2;
    PadAttrs pad{};
    for (const int end : {0, 1}) {
      pad.pads.push(0);  // the batch
      for (int i = 0; i < axes; ++i) pad.pads.push(pads[end * axes + i]);
      pad.pads.push(0);  // channels
    }
    return e_.insert(n, pad, {x, zero});
  }

  // Returns int32 numbers as bytes less one zero point, if they are that.
  std::optional<Bytes> bytes_of(int n, ValueId x) {
    const int difference = e_.made_by<SubAttrs>(x);
    const ValueId wide = difference >= 0 ? e_.node(difference).inputs[0] : x;
    const ValueId from = cast_byte(wide);
    if (from == kAbsent || !same_dims(e_.graph(), x, wide)) return std::nullopt;
    const DType type = e_.value(from).dtype;
    Bytes b;
    ValueId zero = kAbsent;
    if (difference < 0) {
      b.known = 0;
    } else if (const ValueId less = e_.node(difference).inputs[1]; e_.graph().is_constant(less)) {
      const Constant& number = *e_.value(less).constant;
      if (number.size() != 1) return std::nullopt;
      b.known = number.as_int64s()[0];
    } else {
      zero = cast_byte(e_.node(difference).inputs[1]);
      if (zero == kAbsent || e_.value(zero).dtype != type || !e_.value(zero).dims.empty())
        return std::nullopt;
    }
    if (b.known) {
      *b.known -= type == DType::kUint8 ? 128 : 0;
      if (*b.known < -128 || *b.known > 127) return std::nullopt;
      b.zero = e_.constant(Constant::scalar_int(DType::kInt8, *b.known));
    }
    const int quantize = type == DType::kUint8 ? e_.made_by<DynamicQuantizeAttrs>(from) : -1;
    if (quantize >= 0 && e_.node(quantize).outputs[0] == from) {
      const auto q = quantized(quantize);
      if (!q) return std::nullopt;
      b.numbers = q->numbers;
      if (zero != kAbsent && e_.node(quantize).outputs[2] == zero) b.zero = q->zero;
    }
    if (b.numbers == kAbsent) b.numbers = as_signed(n, from);
    if (b.zero == kAbsent) b.zero = as_signed(n, zero);
    return b.numbers == kAbsent || b.zero == kAbsent ? std::nullopt : std::optional(b);
  }
  // The bytes that a value is cast from; kAbsent: it is something else.
  ValueId cast_byte(ValueId id) {
    const int cast = e_.made_by<CastAttrs>(id);
    if (cast < 0) return kAbsent;
    const ValueId from = e_.node(cast).inputs[0];
    const DType type = e_.value(from).dtype;
    return type == DType::kUint8 || type == DType::kInt8 ? from : kAbsent;
  }
  // int8 numbers as they are, and uint8 less 128.
  ValueId as_signed(int n, ValueId id) {
    if (e_.value(id).dtype == DType::kInt8) return id;
    std::vector<int8_t> less(256);
    for (size_t i = 0; i < less.size(); ++i) less[i] = static_cast<int8_t>(static_cast<int>(i) - 128);
    return insert_like(n, id, LutAttrs{}, {id, e_.constant(vector_of(DType::kInt8, less))});
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

  // Returns integers as int8 less a zero point for each column; nothing if a column spans more than 8 bits.
  static std::optional<IntegerWeights> column_bytes(const Constant& numbers, const Channels& columns) {
    const std::vector<int64_t> items = numbers.as_int64s();
    std::vector<int8_t> q(items.size());
    IntegerWeights w;
    for (size_t c = 0; c < columns.count(); ++c) {
      int64_t low = 0, high = 0;
      columns.each(c, items.size(),
                   [&](size_t i) { low = std::min(low, items[i]), high = std::max(high, items[i]); });
      if (low < -255 || high > 255 || high - low > 255) return std::nullopt;
      const int64_t less = std::clamp<int64_t>(0, high - 127, low + 128);
      w.zeros.push_back(static_cast<int8_t>(-less));
      columns.each(c, items.size(), [&](size_t i) { q[i] = static_cast<int8_t>(items[i] - less); });
    }
    w.wide = std::find(q.begin(), q.end(), int8_t{-128}) != q.end();
    w.q = Constant::of<int8_t>(DType::kInt8, numbers.dims(), q);
    return w;
  }

  static std::optional<ColumnWeights> column_weights(const ConstantPtr& numbers, bool depthwise) {
    if (numbers->dims().size() < 2 || numbers->size() == 0) return std::nullopt;
    // Sums of products of int8, and sums of weights in float32, are exact.
    const Channels columns(numbers->dims(), depthwise ? static_cast<int64_t>(numbers->dims().size()) - 1 : 0);
    const int64_t depth = numbers->size() / static_cast<int64_t>(columns.count());
    if (depth > kExactInFloat / 256) return std::nullopt;
    auto integers = byte_weights(numbers);
    if (!integers) integers = column_bytes(*numbers, columns);
    // Kernels of depthwise convolutions subtract no zero points; float_products takes those.
    if (!integers || (depthwise && !integers->zeros.empty())) return std::nullopt;
    ColumnWeights w{std::move(*integers), {}};
    const std::vector<int8_t>& zeros = w.integers.zeros;
    const LoadedBytes loaded = w.integers.q->load();
    const auto* q = reinterpret_cast<const int8_t*>(loaded.bytes.data());
    int64_t most = 0;
    for (size_t c = 0; c < columns.count(); ++c) {
      const int64_t zero = zeros.empty() ? 0 : zeros.size() == 1 ? zeros[0] : zeros[c];
      int64_t sum = 0, magnitude = 0;
      columns.each(c, static_cast<size_t>(numbers->size()), [&](size_t i) {
        sum += q[i] - zero;
        magnitude += std::abs(q[i] - zero);
      });
      w.sums.push_back(sum);
      most = std::max(most, magnitude);
    }
    w.exact = 255 * most <= kExactInFloat;
    return w;
  }

  Editor e_;
  std::map<int, Quantized> quantized_;
};

}  // namespace

int dynamic_products(Graph& graph) {
  const int changes = DynamicProducts(graph).float_sums();
  return changes + DynamicProducts(graph).integer_sums();
}

}  // namespace sinter::convert
