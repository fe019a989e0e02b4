#include "converter/quantize/cost.h"

#include <algorithm>

namespace sinter::convert {
namespace {

// Nanoseconds for a step, and for each: multiplication (of whole vectors of output channels), output, input.
struct Rate {
  double step, product, output, input;
};
struct Rates {
  Rate float32, int8, int16;
};

// Channels that a vector holds, and multiplications that one instruction sums.
constexpr double kVector = 16, kDot = 4;

constexpr Rates kConv = {{150, 0.0092, 0.05, 0.01}, {250, 0.0024, 0.12, 0.05}, {400, 0.013, 10, 0.05}};
constexpr Rates kDepthwise = {{150, 0.028, 0.02, 0.02}, {250, 0.016, 0.1, 0.05}, {300, 0.22, 0.3, 0.1}};
constexpr Rates kConvTranspose = {{300, 0.012, 0.1, 0.05}, {400, 0.008, 0.2, 0.1}, {500, 1, 5, 1}};
// Weights that are read once, from outer caches where there are many.
constexpr Rates kOneRow = {{60, 0.022, 0.1, 0.1}, {100, 0.0068, 0.3, 0.1}, {100, 0.013, 10, 0.1}};
constexpr double kFarWeights = 1 << 20, kFarFloat = 0.1;  // elements; float32 products beyond them

// For each step of a sequence in one direction, multiplication, and (as `output`) row of gates.
constexpr Rates kRecurrent = {{250, 0.026, 2.6, 0}, {200, 0.019, 5, 0}, {200, 0.019, 5, 0}};

// Products of two activations on int16 have a portable kernel only.
constexpr Rate kPortable16 = {200, 1, 1, 0.1};

// What is computed element by element; a table for one-input functions.
constexpr Rates kArithmetic = {{60, 0, 0.2, 0}, {100, 0, 0.12, 0}, {100, 0, 0.16, 0}};
constexpr Rates kFunction = {{60, 0, 0.37, 0}, {60, 0, 0.026, 0}, {60, 0, 0.35, 0}};
constexpr Rates kCheapFunction = {{60, 0, 0.1, 0}, {60, 0, 0.026, 0}, {60, 0, 0.35, 0}};
constexpr Rates kPRelu = {{60, 0, 0.13, 0}, {100, 0, 0.15, 0}, {100, 0, 0.17, 0}};
constexpr Rates kPool = {{150, 0.1, 0.05, 0}, {200, 0.09, 0.1, 0}, {200, 0.14, 0.1, 0}};
constexpr Rates kMovement = {{60, 0, 0.19, 0}, {60, 0, 0.055, 0}, {60, 0, 0.1, 0}};
constexpr Rates kResize = {{200, 0, 0.5, 0.05}, {300, 0, 0.5, 0.05}, {300, 0, 0.5, 0.05}};
constexpr Rates kOther = {{60, 0, 0.3, 0.1}, {60, 0, 0.3, 0.1}, {60, 0, 0.3, 0.1}};
constexpr double kBoundaryStep = 60, kBoundary = 0.1;

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
  Rates rates = kOther;
  double float_products = 0, int8_products = 0;
};

// Every output is a sum over `depth`, of `group` groups of output channels.
Work product(const Graph& g, const Node& node, double depth, double group) {
  const double outputs = elements(g, node.outputs[0]), columns = last_dim(g, node.outputs[0]) / group;
  const double rows = outputs / last_dim(g, node.outputs[0]);
  Work w;
  w.rates = kConv;
  if (node.as<FullyConnectedAttrs>() != nullptr && rows <= 4) {
    w.rates = kOneRow;
    if (depth * columns > kFarWeights) w.rates.float32.product = kFarFloat;
  }
  w.float_products = rows * group * whole(columns, kVector) * depth;
  w.int8_products = rows * group * whole(columns, kVector) * whole(depth, kDot);
  return w;
}

bool is_gated(const Node& node) { return node.op() == Op::kLstm || node.op() == Op::kGru; }

// Every step of a sequence multiplies one row by W's and one by R's [directions, gates, columns].
double recurrent_products(const Graph& g, const Node& node) {
  return elements(g, node.inputs[0]) / last_dim(g, node.inputs[0]) *
         (elements(g, node.inputs[1]) + elements(g, node.inputs[2]));
}

Work recurrent(const Graph& g, const Node& node) {
  const Dims& weights = g.value(node.inputs[1]).dims;
  const double steps = elements(g, node.inputs[0]) / last_dim(g, node.inputs[0]);
  const auto of_steps = [&](const Rate& rate) {
    const double each = rate.step + rate.output * static_cast<double>(weights[1]);
    return Rate{steps * static_cast<double>(weights[0]) * each, rate.product, 0, rate.input};
  };
  Work w;
  w.rates = {of_steps(kRecurrent.float32), of_steps(kRecurrent.int8), of_steps(kRecurrent.int16)};
  if (elements(g, node.inputs[1]) + elements(g, node.inputs[2]) > kFarWeights)
    w.rates.float32.product = kFarFloat;
  w.float_products = w.int8_products = recurrent_products(g, node);
  return w;
}

Work work_of(const Graph& g, const Node& node) {
  if (is_gated(node)) return recurrent(g, node);
  Work w;
  if (node.outputs.empty() || node.outputs[0] < 0) return w;
  const double outputs = elements(g, node.outputs[0]);
  const auto weights = [&] { return elements(g, node.inputs[1]); };
  const auto window = [&](const IntList& kernel) {
    double taps = 1;
    for (int i = 0; i < kernel.size(); ++i) taps *= static_cast<double>(kernel[i]);
    w.rates = kPool;
    w.float_products = w.int8_products = outputs * taps;
    return w;
  };
  switch (node.op()) {
    case Op::kConv: {
      const auto group = static_cast<double>(std::max<int64_t>(node.as<ConvAttrs>()->group, 1));
      return product(g, node, weights() / last_dim(g, node.outputs[0]), group);
    }
    case Op::kFullyConnected:
      return product(g, node, last_dim(g, node.inputs[0]), 1);
    case Op::kMatMul:
      w = product(g, node, last_dim(g, node.inputs[0]), 1);
      w.rates.int16 = kPortable16;
      return w;
    case Op::kDepthwiseConv:
      w.rates = kDepthwise;
      w.float_products = w.int8_products = outputs * weights() / last_dim(g, node.inputs[1]);
      return w;
    case Op::kConvTranspose:
      w.rates = kConvTranspose;
      w.float_products = w.int8_products =
          elements(g, node.inputs[0]) * weights() / last_dim(g, node.inputs[0]);
      return w;
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMin:
    case Op::kMax:
      w.rates = kArithmetic;
      return w;
    case Op::kPRelu:
      w.rates = kPRelu;
      return w;
    case Op::kClamp:
    case Op::kAbs:
    case Op::kNeg:
    case Op::kLeakyRelu:
    case Op::kHardSigmoid:
    case Op::kHardSwish:
      w.rates = kCheapFunction;
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
      w.rates = kFunction;
      return w;
    case Op::kAvgPool:
      return window(node.as<AvgPoolAttrs>()->kernel);
    case Op::kMaxPool:
      return window(node.as<MaxPoolAttrs>()->kernel);
    case Op::kReduce:
      w.rates = kPool;
      return w;
    case Op::kResize:
      w.rates = kResize;
      return w;
    case Op::kConcat:
    case Op::kSlice:
    case Op::kTranspose:
    case Op::kPad:
    case Op::kGather:
    case Op::kCopy:
      w.rates = kMovement;
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

double float_cost(const Graph& g, const Node& node) {
  const Work w = work_of(g, node);
  return cost(g, node, w.rates.float32, w.float_products);
}

double int8_cost(const Graph& g, const Node& node) {
  const Work w = work_of(g, node);
  return cost(g, node, w.rates.int8, w.int8_products);
}

double int16_cost(const Graph& g, const Node& node) {
  const Work w = work_of(g, node);
  return cost(g, node, w.rates.int16, w.int8_products);
}

double boundary_cost(int64_t elements) { return kBoundaryStep + kBoundary * static_cast<double>(elements); }

}  // namespace sinter::convert
