#include "converter/quantize/search/cost.h"

#include <algorithm>

#include "converter/quantize/search/cost_tables.h"

namespace sinter::convert {
namespace {

constexpr double kFarWeights = 1 << 20;  // elements: read from outer caches

double elements(const Graph& g, ValueId id) {
  return id < 0 ? 0 : static_cast<double>(element_count(g.value(id).dims));
}
double last_dim(const Graph& g, ValueId id) {
  const Dims& dims = g.value(id).dims;
  return dims.empty() ? 1 : static_cast<double>(std::max<int64_t>(dims.back(), 1));
}
double whole(double n, double unit) {
  return (static_cast<double>(static_cast<int64_t>((n + unit - 1) / unit))) * unit;
}

// Rates and multiplications of a node.
struct Work {
  Rates rates;
  double float_products = 0, int8_products = 0;
};

// Every output is a sum over `depth`, of `group` groups of output channels.
Work product(const CostTable& t, const Graph& g, const Node& node, double depth, double group) {
  const double outputs = elements(g, node.outputs[0]), columns = last_dim(g, node.outputs[0]) / group;
  const double rows = outputs / last_dim(g, node.outputs[0]);
  Work w;
  w.rates = t.conv;
  if (node.as<FullyConnectedAttrs>() != nullptr && rows <= 4) {
    w.rates = t.one_row;
    if (depth * columns > kFarWeights) w.rates.float32.product = t.far_float;
  }
  w.float_products = rows * group * whole(columns, t.vector) * depth;
  w.int8_products = rows * group * whole(columns, t.vector) * whole(depth, t.dot);
  return w;
}

bool is_gated(const Node& node) { return node.op() == Op::kLstm || node.op() == Op::kGru; }

// Every step of a sequence multiplies one row by W's and one by R's [directions, gates, columns].
double recurrent_products(const Graph& g, const Node& node) {
  return elements(g, node.inputs[0]) / last_dim(g, node.inputs[0]) *
         (elements(g, node.inputs[1]) + elements(g, node.inputs[2]));
}

Work recurrent(const CostTable& t, const Graph& g, const Node& node) {
  const Dims& weights = g.value(node.inputs[1]).dims;
  const double steps = elements(g, node.inputs[0]) / last_dim(g, node.inputs[0]);
  const auto of_steps = [&](const Rate& rate) {
    const double each = rate.step + rate.output * static_cast<double>(weights[1]);
    return Rate{steps * static_cast<double>(weights[0]) * each, rate.product, 0, rate.input};
  };
  Work w;
  w.rates = {of_steps(t.recurrent.float32), of_steps(t.recurrent.int8), of_steps(t.recurrent.int16)};
  if (elements(g, node.inputs[1]) + elements(g, node.inputs[2]) > kFarWeights)
    w.rates.float32.product = t.far_float;
  w.float_products = w.int8_products = recurrent_products(g, node);
  return w;
}

Work work_of(const CostTable& t, const Graph& g, const Node& node) {
  if (is_gated(node)) return recurrent(t, g, node);
  Work w;
  w.rates = t.other;
  if (node.outputs.empty() || node.outputs[0] < 0) return w;
  const double outputs = elements(g, node.outputs[0]);
  const auto weights = [&] { return elements(g, node.inputs[1]); };
  const auto window = [&](const IntList& kernel) {
    double taps = 1;
    for (int i = 0; i < kernel.size(); ++i) taps *= static_cast<double>(kernel[i]);
    w.rates = t.pool;
    w.float_products = w.int8_products = outputs * taps;
    return w;
  };
  switch (node.op()) {
    case Op::kConv: {
      const auto group = static_cast<double>(std::max<int64_t>(node.as<ConvAttrs>()->group, 1));
      return product(t, g, node, weights() / last_dim(g, node.outputs[0]), group);
    }
    case Op::kFullyConnected:
      return product(t, g, node, last_dim(g, node.inputs[0]), 1);
    case Op::kMatMul:
      w = product(t, g, node, last_dim(g, node.inputs[0]), 1);
      w.rates.int16 = t.portable_int16;
      return w;
    case Op::kDepthwiseConv:
      w.rates = t.depthwise;
      w.float_products = w.int8_products = outputs * weights() / last_dim(g, node.inputs[1]);
      return w;
    case Op::kConvTranspose:
      w.rates = t.conv_transpose;
      w.float_products = w.int8_products =
          elements(g, node.inputs[0]) * weights() / last_dim(g, node.inputs[0]);
      return w;
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMin:
    case Op::kMax:
      w.rates = t.arithmetic;
      return w;
    case Op::kPRelu:
      w.rates = t.prelu;
      return w;
    case Op::kClamp:
    case Op::kAbs:
    case Op::kNeg:
    case Op::kLeakyRelu:
    case Op::kHardSigmoid:
    case Op::kHardSwish:
      w.rates = t.cheap_function;
      return w;
    case Op::kSigmoid:
    case Op::kTanh:
    case Op::kGelu:
    case Op::kSilu:
    case Op::kElu:
    case Op::kSoftplus:
    case Op::kExp:
    case Op::kLog:
    case Op::kErf:
      w.rates = t.function;
      return w;
    case Op::kAvgPool:
      return window(node.as<AvgPoolAttrs>()->kernel);
    case Op::kMaxPool:
      return window(node.as<MaxPoolAttrs>()->kernel);
    case Op::kReduce:
      w.rates = t.pool;
      return w;
    case Op::kResize:
      w.rates = t.resize;
      return w;
    case Op::kConcat:
    case Op::kSlice:
    case Op::kTranspose:
    case Op::kPad:
    case Op::kGather:
    case Op::kCopy:
      w.rates = t.movement;
      return w;
    case Op::kView:
      w.rates = {};
      return w;
    default:
      return w;
  }
}

double cost(const Graph& g, const Node& node, const Rate& rate, double products) {
  double in = 0, out = 0;
  for (const ValueId id : node.inputs)
    if (id >= 0 && !g.is_constant(id)) in += elements(g, id);
  for (const ValueId id : node.outputs) out += elements(g, id);
  return rate.step + rate.product * products + rate.output * out + rate.input * in;
}

}  // namespace

double multiply_adds(const Graph& g, const Node& node) {
  if (is_gated(node) || node.op() == Op::kRnn) return recurrent_products(g, node);
  if (node.outputs.empty() || node.outputs[0] < 0) return 0;
  const double outputs = elements(g, node.outputs[0]);
  const auto weights = [&](size_t operand) { return elements(g, node.inputs[operand]); };
  switch (node.op()) {
    case Op::kConv:
      return outputs * weights(1) / last_dim(g, node.outputs[0]);
    case Op::kDepthwiseConv:
      return outputs * weights(1) / last_dim(g, node.inputs[1]);
    case Op::kConvTranspose:
      return elements(g, node.inputs[0]) * weights(1) / last_dim(g, node.inputs[0]);
    case Op::kFullyConnected:
      return outputs * last_dim(g, node.inputs[0]);
    case Op::kMatMul: {
      const Dims& a = g.value(node.inputs[0]).dims;
      const bool turned = node.as<MatMulAttrs>()->transpose_a != 0 && a.size() > 1;
      return outputs * (turned ? static_cast<double>(a[a.size() - 2]) : last_dim(g, node.inputs[0]));
    }
    case Op::kAttention: {
      const Dims& keys = g.value(node.inputs[1]).dims;
      const double count = keys.size() > 1 ? static_cast<double>(keys[keys.size() - 2]) : 1;
      return (elements(g, node.inputs[0]) + outputs) * count;
    }
    default:
      return 0;
  }
}

double float_cost(Cpu cpu, const Graph& g, const Node& node) {
  const Work w = work_of(cost_table(cpu), g, node);
  return cost(g, node, w.rates.float32, w.float_products);
}

double int8_cost(Cpu cpu, const Graph& g, const Node& node) {
  const Work w = work_of(cost_table(cpu), g, node);
  return cost(g, node, w.rates.int8, w.int8_products);
}

double int16_cost(Cpu cpu, const Graph& g, const Node& node) {
  const Work w = work_of(cost_table(cpu), g, node);
  return cost(g, node, w.rates.int16, w.int8_products);
}

double boundary_cost(Cpu cpu, int64_t elements) {
  const CostTable& t = cost_table(cpu);
  return t.boundary_step + t.boundary * static_cast<double>(elements);
}

}  // namespace sinter::convert
