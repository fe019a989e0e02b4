#include "converter/quantize/integers/standard_form.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "converter/ir/builder.h"
#include "converter/ir/integer_weights.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/quant_params.h"
#include "converter/ir/recipe.h"
#include "converter/passes/editor.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/passes/integers/product_bias.h"
#include "converter/quantize/integers/roles.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kMostBias = 0x1p31 - 1;

class Standard {
 public:
  explicit Standard(Graph& graph) : g_(graph), uses_(graph) {}

  StandardForm run() {
    std::vector<Node> old = std::move(g_.nodes);
    std::vector<std::optional<QuantParams>> params;
    for (const Node& node : old) params.push_back(quant_params(g_, node));
    for (size_t n = 0; n < old.size(); ++n) make_unsigned(old[n], params[n]);
    for (const Node& node : old)
      if (node.as<QuantizeAttrs>() != nullptr) quantized_by_[node.inputs[0]] = quant_params_of(node);
    for (Node& node : old) {
      for (const auto& body : node.bodies) add(give_standard_form(*body));
      write(std::move(node));
    }
    g_.nodes = std::move(nodes_);
    return std::move(form_);
  }

 private:
  void add(const StandardForm& body) {
    form_.pairs += body.pairs, form_.weights += body.weights, form_.biases += body.biases;
    form_.float_biases.insert(form_.float_biases.end(), body.float_biases.begin(), body.float_biases.end());
  }

  std::optional<QuantParams> quant_params_of(const Node& node) const { return quant_params(g_, node); }

  // Activations of int8 become uint8, as most runtimes compute them beside int8 weights. onnxruntime rewrites
  // them so by itself, and fails where it has put pairs of its own between.
  void make_unsigned(Node& node, const std::optional<QuantParams>& params) {
    if (!params || params->type != DType::kInt8) return;
    auto* quantize = node.as<QuantizeAttrs>();
    const ValueId q = quantize != nullptr ? node.outputs[0] : node.inputs[0];
    if (quantize != nullptr)
      quantize->to = static_cast<int64_t>(DType::kUint8), unsigned_.insert(q),
      g_.value(q).dtype = DType::kUint8;
    else if (!unsigned_.contains(q))
      return;
    if (node.inputs.size() < 3) node.inputs.resize(3, kAbsent);
    node.inputs[2] = g_.add_constant(Constant::scalar_int(DType::kUint8, params->zero_point + kToUnsigned));
  }

  void write(Node node) {
    if (weight_axis(g_, node) >= 0)
      product(node);
    else
      operands(node);
    drop_clamp(node);
    if (node.as<QuantizeAttrs>() != nullptr) ++form_.pairs;
    const bool dequantizes = node.as<DequantizeAttrs>() != nullptr;
    const std::optional<QuantParams> moved = dequantizes ? quant_params_of(node) : moved_params(node);
    const bool rounds = moved && !dequantizes && !is_rearranged(node);
    nodes_.push_back(std::move(node));
    if (rounds) round_moved(*moved);
    if (moved) known_[nodes_.back().outputs[0]] = *moved;
  }

  const QuantParams* known(ValueId id) const {
    const auto at = known_.find(id);
    return at == known_.end() ? nullptr : &at->second;
  }
  // The parameters of the Quantize that alone reads a value; null: something else reads it.
  const QuantParams* rounded_to(ValueId id) const {
    const auto at = quantized_by_.find(id);
    return at == quantized_by_.end() || !at->second || !uses_.single_reader(id) ? nullptr : &*at->second;
  }

  // Returns a constant that is (q - zero) * scale, stored as these.
  ValueId stored(const ConstantPtr& q, const ConstantPtr& scale, const ConstantPtr& zero,
                 DequantizeAttrs attrs, const std::string& name) {
    attrs.to = static_cast<int64_t>(DType::kFloat32);
    std::vector<ConstantPtr> parts{q, scale};
    if (zero) parts.push_back(zero);
    const ConstantPtr numbers = evaluated(attrs, parts, false);
    if (!numbers) return kAbsent;
    size_t bytes = 0;
    for (const ConstantPtr& part : parts) bytes += part->byte_size();
    return g_.add_constant(
        Constant::made(numbers, std::make_shared<const Recipe>(Recipe{attrs, std::move(parts), bytes, 1})),
        name);
  }
  // Puts it in the place of an operand. Returns whether it could be computed.
  bool store(ValueId* operand, const ConstantPtr& q, const ConstantPtr& scale, const ConstantPtr& zero,
             DequantizeAttrs attrs) {
    const ValueId made = stored(q, scale, zero, attrs, std::string(g_.value(*operand).name));
    if (made != kAbsent) *operand = made;
    return made != kAbsent;
  }

  // Weights and bias of a product whose operand comes from integers.
  void product(Node& node) {
    const QuantParams* x = known(node.inputs[0]);
    if (x == nullptr || in_groups_of_rows(node)) return;
    const int64_t axis = weight_axis(g_, node);
    const auto w = integer_weights(g_.value(node.inputs[1]).constant, axis);
    if (!w) return;
    const bool biased = node.inputs.size() > 2 && g_.is_constant(node.inputs[2]);
    const std::vector<double> addends =
        biased ? g_.value(node.inputs[2]).constant->as_doubles() : std::vector<double>(w->scales.size(), 0);
    const QuantParams* y = rounded_to(node.outputs[0]);
    std::vector<float> scales, steps;
    std::vector<int32_t> sums;
    bool fit = true;
    for (size_t c = 0; c < w->scales.size(); ++c) {
      const double scale = w->scales[c] != 0
                               ? w->scales[c]
                               : empty_channel_scale(addends[c], x->scale, y == nullptr ? 0 : y->scale);
      scales.push_back(static_cast<float>(scale));
      steps.push_back(static_cast<float>(x->scale) * scales.back());
      const double sum = std::nearbyint(addends[c] / (x->scale * scale));
      fit = fit && std::fabs(sum) <= kMostBias && std::isnormal(steps.back());
      sums.push_back(fit ? static_cast<int32_t>(sum) : 0);
    }
    const ConstantPtr zeros =
        vector_of(DType::kInt8, w->zeros.empty() ? std::vector<int8_t>(w->scales.size(), 0) : w->zeros);
    if (!store(&node.inputs[1], w->q, vector_of(DType::kFloat32, scales), zeros, {axis})) return;
    ++form_.weights;
    if (!biased) return;
    if (!fit) {
      form_.float_biases.push_back(node.name);
      return;
    }
    form_.biases += store(&node.inputs[2], vector_of(DType::kInt32, sums), vector_of(DType::kFloat32, steps),
                          nullptr, {0});
  }

  // A transposed convolution in groups has fewer rows in ONNX's weights than output channels.
  bool in_groups_of_rows(const Node& node) const {
    const auto* a = node.as<ConvTransposeAttrs>();
    return a != nullptr && a->group != 1;
  }

  // Constants that an operation on integers reads beside a known value.
  void operands(Node& node) {
    if (!node.as<AddAttrs>() && !node.as<SubAttrs>() && !node.as<MulAttrs>() && !node.as<MatMulAttrs>())
      return;
    if (std::none_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return known(id) != nullptr; }))
      return;
    for (ValueId& id : node.inputs) {
      if (!g_.is_constant(id) || g_.value(id).dtype != DType::kFloat32) continue;
      const ConstantPtr c = g_.value(id).constant;
      if (c->size() < 2) continue;
      const auto w = integer_weights(c->reshaped({1, c->size()}), 0);
      if (!w || !(w->scales[0] > 0)) continue;
      form_.weights += store(&id, w->q->reshaped(c->dims()),
                             Constant::scalar(DType::kFloat32, static_cast<float>(w->scales[0])),
                             Constant::scalar_int(DType::kInt8, w->zeros.empty() ? 0 : w->zeros[0]), {});
    }
  }

  // A Quantize saturates: bounds at or beyond the ends of its range do nothing.
  void drop_clamp(Node& node) {
    if (node.outputs.size() != 1) return;
    const QuantParams* y = rounded_to(node.outputs[0]);
    if (y == nullptr) return;
    const QuantRange range = quant_range(y->type);
    std::visit(
        [&](auto& a) {
          if constexpr (requires { a.act_min; }) {
            if (y->quantize(a.act_min) == range.min) a.act_min = -kInfinity;
            if (y->quantize(a.act_max) == range.max) a.act_max = kInfinity;
          }
        },
        node.attrs);
  }

  // The parameters that the result of an operation has which only moves a known value; nullopt: it does not.
  std::optional<QuantParams> moved_params(const Node& node) const {
    if (node.inputs.empty() || node.outputs.size() != 1) return std::nullopt;
    const QuantParams* x = known(node.inputs[0]);
    const ValueId y = node.outputs[0];
    if (x == nullptr || !keeps_scale(g_, node) || rounded_to(y) != nullptr) return std::nullopt;
    const auto& readers = uses_.readers[static_cast<size_t>(y)];
    const bool read = std::any_of(readers.begin(), readers.end(), [](int n) { return n >= 0; });
    if (!read || element_count(g_.value(y).dims) == 0) return std::nullopt;
    if (const auto* pad = node.as<PadAttrs>(); pad != nullptr &&
                                               static_cast<PadMode>(pad->mode) == PadMode::kConstant &&
                                               node.inputs.size() > 1 && node.inputs[1] >= 0) {
      if (!g_.is_constant(node.inputs[1])) return std::nullopt;
      for (const double fill : g_.value(node.inputs[1]).constant->as_doubles())
        if (std::fabs(static_cast<double>(x->quantize(fill) - x->zero_point) * x->scale - fill) >
            1e-6 * x->scale)
          return std::nullopt;
    }
    return *x;
  }

  // Whether the elements only get another order, or axes of length 1: a file may state that otherwise or not.
  bool is_rearranged(const Node& node) const {
    if (node.as<TransposeAttrs>() != nullptr) return true;
    Dims from = g_.value(node.inputs[0]).dims, to = g_.value(node.outputs[0]).dims;
    for (Dims* dims : {&from, &to}) std::erase(*dims, 1);
    return node.as<ViewAttrs>() != nullptr && from == to;
  }

  // Puts a Quantize and a Dequantize behind the last node, whose readers then read integers.
  void round_moved(const QuantParams& params) {
    Node& mover = nodes_.back();
    const ValueId y = mover.outputs[0];
    const Value value = g_.value(y);
    const ValueId scale = g_.add_constant(Constant::scalar(DType::kFloat32, params.scale)),
                  zero = g_.add_constant(Constant::scalar_int(params.type, params.zero_point));
    const ValueId moved =
                      g_.add_value(value.name.empty() ? "" : value.name + ".moved", value.dtype, value.dims),
                  q = g_.add_value(value.name.empty() ? "" : value.name + "." + dtype_name(params.type),
                                   params.type, value.dims);
    g_.value(moved).order = g_.value(q).order = value.order;
    mover.outputs[0] = moved;
    QuantizeAttrs quantize{};
    quantize.to = static_cast<int64_t>(params.type);
    DequantizeAttrs dequantize{};
    Node rounds{quantize, {moved, scale, zero}, {q}, mover.name, mover.origin, {}};
    Node widens{dequantize, {q, scale, zero}, {y}, mover.name, mover.origin, {}};
    nodes_.push_back(std::move(rounds));
    nodes_.push_back(std::move(widens));
    ++form_.pairs;
  }

  Graph& g_;
  const Uses uses_;
  std::vector<Node> nodes_;
  StandardForm form_;
  std::set<ValueId> unsigned_;
  std::map<ValueId, QuantParams> known_;                        // what comes from a Dequantize
  std::map<ValueId, std::optional<QuantParams>> quantized_by_;  // what a Quantize reads
};

}  // namespace

StandardForm give_standard_form(Graph& graph) { return Standard(graph).run(); }

}  // namespace sinter::convert
