#include "converter/passes/global/half_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "converter/ir/call_view.h"
#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/global/float_rows.h"
#include "converter/passes/global/half_bounds.h"
#include "converter/passes/integers/integer_rows.h"
#include "runtime/core/float_formats.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// The largest loss by rounding weights, as a share of the sum of a filter's magnitudes. Rounding normal
// numbers to float16 changes half of that at most.
constexpr double kLargestLoss = 0x1p-10;

constexpr char kEntersSoftmax[] = "it enters a softmax, whose operands are not rounded";

bool is_float32(const Graph& graph, ValueId id) {
  return id >= 0 && graph.value(id).dtype == DType::kFloat32;
}

// The number of terms whose sum a result is.
int64_t terms(const Graph& graph, const Node& node) {
  const auto of_weights = [&](size_t from) {
    const Dims& w = graph.value(node.inputs[1]).dims;
    int64_t n = 1;
    for (size_t i = from; i < w.size(); ++i) n *= w[i];
    return n;
  };
  const Dims& x = graph.value(node.inputs[0]).dims;
  switch (node.op()) {
    case Op::kConv:
    case Op::kConvTranspose:
    case Op::kFullyConnected:
      return of_weights(1);
    case Op::kDepthwiseConv: {
      const Dims& w = graph.value(node.inputs[1]).dims;
      return element_count(w) / std::max<int64_t>(w.back(), 1);
    }
    case Op::kMatMul:
      return x.empty() ? 1 : x.back();
    case Op::kAvgPool:
      return summed_elements(graph, node);
    default:
      return 2;
  }
}

}  // namespace

bool stays_float32(Op op, size_t i) { return (op == Op::kAttention && i == 3) || (op == Op::kRope && i > 0); }

HalfSplit split_for(const HalfType& type, const Node& node) {
  if (!type.composed) return {};
  const auto* silu = node.as<SiluAttrs>();
  if (silu != nullptr && silu->alpha == 1) return {SigmoidAttrs{}, MulAttrs{}};
  const Bounds bounds = clamp_of(node);
  if (bounds.none()) return {};
  const ClampAttrs clamp{bounds.low, bounds.high};
  const auto unclamped = [&](auto plain) -> HalfSplit { return {OpAttrs{plain}, clamp}; };
  if (node.op() == Op::kAdd) return unclamped(AddAttrs{});
  if (node.op() == Op::kSub) return unclamped(SubAttrs{});
  if (node.op() == Op::kMul) return unclamped(MulAttrs{});
  return {};
}

bool HalfRules::Origins::has(const Graph& graph, const Node& node) const {
  if (!node.name.empty() && nodes.count(node.name) != 0) return true;
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return id >= 0 && values.count(graph.value(id).name) != 0; });
}

double HalfRules::rounded(double v) const {
  return type_.dtype == DType::kFloat16 ? float16_value(float16_bits(v)) : bfloat16_value(bfloat16_bits(v));
}

bool HalfRules::exact(const Constant& c) const {
  bool all = true;
  for_each_float(c, true, [&](float v, size_t) { all &= v != v || rounded(v) == v; });
  return all;
}

HalfRules::HalfRules(const HalfType& type, const Graph& graph, const AcceptCall& accept,
                     const Reached& reached)
    : type_(type),
      graph_(graph),
      accept_(accept),
      reached_(reached),
      wide_(graph.values.size(), nullptr),
      from_integers_(graph.values.size()) {
  find_origins();
  sums_ = type_.is_narrow() ? half_bounds(graph).sums : std::vector<double>(graph.nodes.size());
  find_wide();
}

// Finds the operations that one node of the model became. Values between them have no type in the model, so
// that all of the operations share one.
void HalfRules::find_origins() {
  for (const Node& node : graph_.nodes)
    for (const ValueId id : node.outputs) {
      const DType model = id < 0 ? DType::kNone : graph_.value(id).model_dtype;
      if (model == DType::kNone) continue;
      Origins& of = model == type_.dtype ? half_ : other_;
      if (!graph_.value(id).name.empty()) of.values.insert(graph_.value(id).name);
      if (!node.name.empty()) of.nodes.insert(node.name);
    }
}

bool HalfRules::concerns(int n) const {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  if (!node.bodies.empty() || node.outputs.empty() || node.op() == Op::kCast ||
      moves_by_attributes(node.attrs))
    return false;
  if (!is_float32(graph_, node.outputs[0]) || other_.has(graph_, node)) return false;
  return half_.empty() || half_.has(graph_, node);
}

// Backwards from what needs more than the precision of 16 bits, forwards from integers.
void HalfRules::find_wide() {
  const auto elementwise = [](const Node& node) {
    return is_elementwise(node.op()) || moves_by_attributes(node.attrs);
  };
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    const Node& node = graph_.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (stays_float32(node.op(), i) && is_float32(graph_, node.inputs[i]) && accepts(node))
        wide_[static_cast<size_t>(node.inputs[i])] =
            node.op() == Op::kAttention ? kEntersSoftmax : "a rotation takes its angles in float32";
    const char* why = nullptr;
    if (node.as<SoftmaxAttrs>() != nullptr)
      why = kEntersSoftmax;
    else if (node.as<TrigAttrs>() != nullptr || node.as<ExpAttrs>() != nullptr)
      why = "an exponential or an angle is computed from it";
    else if (elementwise(node) && !node.outputs.empty() && node.outputs[0] >= 0)
      why = wide_[static_cast<size_t>(node.outputs[0])];
    if (why == nullptr) continue;
    for (const ValueId id : node.inputs)
      if (is_float32(graph_, id)) wide_[static_cast<size_t>(id)] = why;
  }
  for (const Node& node : graph_.nodes) {
    if (node.outputs.empty() || node.outputs[0] < 0) continue;
    bool from_integers = false;
    if (node.op() == Op::kCast) {
      const DType from = graph_.value(node.inputs[0]).dtype;
      from_integers = is_integer(from) && byte_width(from) > 1;
    } else if (elementwise(node)) {
      for (const ValueId id : node.inputs)
        from_integers |= id >= 0 && from_integers_[static_cast<size_t>(id)];
    }
    if (!from_integers || !is_float32(graph_, node.outputs[0])) continue;
    from_integers_[static_cast<size_t>(node.outputs[0])] = true;
  }
}

std::string HalfRules::refusal(int n) const {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  if (!has_traits(node.op(), kFloat16Suffices))
    return fmt::format("{} is kept in float32", op_name(node.op()));
  for (const auto& list : {node.inputs, node.outputs})
    for (const ValueId id : list)
      if (id >= 0 && !is_float32(graph_, id)) return "an operand is not floating-point";
  const bool product = is_product(node.op()) || node.op() == Op::kAttention;
  const auto& looked_at = product ? node.inputs : node.outputs;
  for (size_t i = 0; i < looked_at.size(); ++i) {
    const ValueId id = looked_at[i];
    if (id < 0 || (product && stays_float32(node.op(), i))) continue;
    if (from_integers_[static_cast<size_t>(id)])
      return fmt::format("it is computed from integers that {} may not hold", type_.name);
    if (!product && wide_[static_cast<size_t>(id)] != nullptr) return wide_[static_cast<size_t>(id)];
  }
  if (const int64_t count = terms(graph_, node); count > type_.most_terms)
    return fmt::format("a sum of {} terms is kept in float32", count);
  if (std::string why = refusal_of_operands(node); !why.empty()) return why;
  const auto too_large = [&](ValueId id) {
    const auto it = reached_.find(id);
    return it != reached_.end() && !(it->second <= 1);
  };
  const auto out_of_range = [&](const char* what) {
    return fmt::format("in the trial run {} approaches or exceeds {}'s range", what, type_.name);
  };
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (!stays_float32(node.op(), i) && too_large(node.inputs[i])) return out_of_range("an operand");
  for (const ValueId id : node.outputs)
    if (too_large(id)) return out_of_range(id == node.outputs[0] ? "the result" : "an operand");
  const HalfSplit split = split_for(type_, node);
  const std::string no_kernel = fmt::format("the target has no {} kernel for it", type_.name);
  if (split.first) {
    const ValueId x = node.inputs[0], y = node.outputs[0];
    const bool last = std::holds_alternative<ClampAttrs>(split.second);
    const bool both = accepts({*split.first, last ? node.inputs : std::vector{x}, {y}, {}, {}, {}}) &&
                      accepts({split.second, last ? std::vector{y} : std::vector{x, y}, {y}, {}, {}, {}});
    return both ? "" : no_kernel;
  }
  return accepts(node) ? "" : no_kernel;
}

bool HalfRules::accepts(const Node& node) const {
  CallView view(graph_, node);
  const auto narrow = [&](TensorView& v) {
    if (!v.present()) return;
    const Dims dims(v.dims, v.dims + v.rank);
    v.dtype = type_.dtype;
    v.set_shape(dims);
  };
  for (size_t i = 0; i < view.inputs.size(); ++i)
    if (!stays_float32(node.op(), i)) narrow(view.inputs[i]);
  for (TensorView& v : view.outputs) narrow(v);
  size_t workspace = 0;
  return accept_(view.call, &workspace).ok();
}

std::string HalfRules::refusal_of_operands(const Node& node) const {
  const Bounds bounds = clamp_of(node);
  for (const double b : {bounds.low, bounds.high})
    if (std::isfinite(b) && std::fabs(b) > type_.largest)
      return fmt::format("the bound {:g} is beyond {}'s range", b, type_.name);
  if (node.op() == Op::kMul && node.inputs[0] == node.inputs[1]) return "squares are kept in float32";
  if (is_product(node.op()) && !graph_.is_constant(node.inputs[1]))
    return "a product of two computed values is kept in float32";
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (graph_.is_constant(node.inputs[i]) && !stays_float32(node.op(), i))
      if (std::string why = refusal_of_constant(node, i); !why.empty()) return why;
  return {};
}

std::string HalfRules::refusal_of_constant(const Node& node, size_t operand) const {
  const Constant& c = *graph_.value(node.inputs[operand]).constant;
  const double most = largest_magnitude(c);
  if (std::isfinite(most) && std::isinf(rounded(most)))
    return fmt::format("the constant {:g} is beyond {}'s range", most, type_.name);
  const bool addend = node.op() == Op::kAdd || node.op() == Op::kSub;
  if (addend && most > type_.largest_addend)
    return fmt::format("{} is too coarse for numbers near the constant {:g}", type_.name, most);
  if (addend || !type_.is_narrow() || (is_product(node.op()) && operand > 1)) return {};
  // Small weights: what is lost of a filter.
  const bool first = filters_first(node), product = is_product(node.op());
  std::vector<double> sums(product ? row_count(c, first) : 1), lost(sums.size());
  for_each_float(c, first, [&](float v, size_t row) {
    if (!product) row = 0;
    if (!std::isfinite(v)) return;
    sums[row] += std::fabs(v);
    lost[row] += std::fabs(static_cast<double>(v) - rounded(v));
  });
  for (size_t row = 0; row < sums.size(); ++row)
    if (lost[row] > kLargestLoss * sums[row])
      return fmt::format("its weights are too small for {}", type_.name);
  return {};
}

}  // namespace sinter::convert
