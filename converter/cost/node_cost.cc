#include "converter/cost/node_cost.h"

#include <algorithm>
#include <cmath>

#include "converter/cost/tables.h"
#include "converter/cost/work.h"
#include "converter/ir/op_table.h"

namespace sinter::convert {
namespace {

constexpr double kFewRows = 4;  // of a product whose weights are read once

// The row of a table for each operation; null: it costs nothing.
using Row = Rates CostTable::*;
constexpr OpRow<Row> kRows[] = {
    {Op::kView, nullptr},
    {WorkKind::kNothing, &CostTable::other},
    {WorkKind::kMovement, &CostTable::movement},
    {WorkKind::kRepetition, &CostTable::other},
    {WorkKind::kScatter, &CostTable::other},
    {WorkKind::kConversion, &CostTable::other},
    {WorkKind::kLogic, &CostTable::other},
    {WorkKind::kArithmetic, &CostTable::arithmetic},
    {Op::kPRelu, &CostTable::prelu},
    {WorkKind::kCheapFunction, &CostTable::cheap_function},
    {Op::kSign, &CostTable::other},
    {Op::kRound, &CostTable::other},
    {WorkKind::kFunction, &CostTable::function},
    {Op::kSqrt, &CostTable::other},
    {Op::kRsqrt, &CostTable::other},
    {Op::kTrig, &CostTable::other},
    {Op::kPow, &CostTable::other},
    {WorkKind::kReduction, &CostTable::other},
    {Op::kReduce, &CostTable::pool},
    {WorkKind::kNormalization, &CostTable::other},
    {WorkKind::kSearch, &CostTable::other},
    {WorkKind::kPool, &CostTable::pool},
    {WorkKind::kProduct, &CostTable::conv},
    {WorkKind::kDepthwiseProduct, &CostTable::depthwise},
    {WorkKind::kTransposedProduct, &CostTable::conv_transpose},
    {WorkKind::kMatrixProduct, &CostTable::mat_mul},
    {WorkKind::kAttention, &CostTable::mat_mul},
    {WorkKind::kRotation, &CostTable::other},
    {WorkKind::kResize, &CostTable::resize},
    {WorkKind::kSampling, &CostTable::other},
    {WorkKind::kRecurrent, &CostTable::recurrent},
    {Op::kRnn, &CostTable::other},
    {WorkKind::kTransform, &CostTable::other},
    {WorkKind::kCustom, &CostTable::other},
    {WorkKind::kControl, &CostTable::other},
};
static_assert(unanswered(kRows) == Op{}, "every operation has a row of the tables of costs");

// Quantization does not replace these, so they cost the same in a float graph and in an integer one.
constexpr Op kKept[] = {Op::kAttention,
                        Op::kLinearAttention,
                        Op::kExpertFullyConnected,
                        Op::kLowBitFullyConnected,
                        Op::kLut,
                        Op::kQTable,
                        Op::kQAdd,
                        Op::kQMul,
                        Op::kQPRelu,
                        Op::kQAvgPool,
                        Op::kQConv,
                        Op::kQFullyConnected,
                        Op::kQDepthwiseConv,
                        Op::kQConvTranspose,
                        Op::kQMatMul,
                        Op::kQResize,
                        Op::kQLstm,
                        Op::kQGru};

Row compared_row(Op op) {
  return std::ranges::find(kKept, op) != std::end(kKept) ? &CostTable::other : answer_for(kRows, op);
}

struct RowName {
  Row row;
  const char* name;
};
constexpr RowName kRowNames[] = {
    {&CostTable::conv, "conv"},
    {&CostTable::depthwise, "depthwise"},
    {&CostTable::conv_transpose, "conv_transpose"},
    {&CostTable::one_row, "one_row"},
    {&CostTable::mat_mul, "mat_mul"},
    {&CostTable::recurrent, "recurrent"},
    {&CostTable::arithmetic, "arithmetic"},
    {&CostTable::function, "function"},
    {&CostTable::cheap_function, "cheap_function"},
    {&CostTable::prelu, "prelu"},
    {&CostTable::pool, "pool"},
    {&CostTable::movement, "movement"},
    {&CostTable::resize, "resize"},
    {&CostTable::other, "other"},
};

double whole(double n, double unit) {
  return static_cast<double>(static_cast<int64_t>((n + unit - 1) / unit)) * unit;
}

// Rates and multiplications of a call, those of whole vectors of output channels.
struct Work {
  Row row = nullptr;
  Rates rates = {};
  double float_products = 0, int8_products = 0;
};

// Every output is a sum over `depth`, of `group` groups of output channels.
Work product(const CostTable& t, const CallShape& call, Row row, double group) {
  const double outputs = call.outputs[0].size(), channels = call.outputs[0].last_dim();
  const double depth = outputs > 0 ? multiply_adds(call) / outputs : 0, rows = outputs / channels;
  const bool layer = call.op == Op::kFullyConnected || call.op == Op::kQFullyConnected;
  if (layer && rows <= kFewRows) row = &CostTable::one_row;
  Work w{row, t.*row};
  if (row == &CostTable::one_row && depth * channels > t.far_weights)
    w.rates.float32.product = t.far_float.product;
  w.float_products = rows * group * whole(channels / group, t.vector) * depth;
  w.int8_products = rows * group * whole(channels / group, t.vector) * whole(depth, t.dot);
  return w;
}

// Every step of a sequence multiplies one row by W's and one by R's [directions, gates, columns].
Work recurrent(const CostTable& t, const CallShape& call) {
  const CallShape::Operand &x = call.inputs[0], &weights = call.inputs[1];
  const double steps = x.size() / x.last_dim();
  const auto of_steps = [&](const Rate& rate) {
    const double each = rate.step + rate.output * static_cast<double>(weights.dims[1]);
    return Rate{steps * static_cast<double>(weights.dims[0]) * each, rate.product, 0, rate.input,
                rate.provenance};
  };
  Work w{&CostTable::recurrent};
  w.rates = {of_steps(t.recurrent.float32), of_steps(t.recurrent.int8), of_steps(t.recurrent.int16)};
  w.float_products = w.int8_products = multiply_adds(call);
  return w;
}

// Elements that a pool reads.
template <class A>
double reads(const CallShape& call) {
  const IntList& kernel = call.attrs<A>().kernel;
  double taps = call.outputs[0].size();
  for (int i = 0; i < kernel.size(); ++i) taps *= static_cast<double>(kernel[i]);
  return taps;
}

// The part of a depthwise convolution's products whose lines of input are not padding. Kernels of float32
// leave the others out.
double inside_share(const CallShape& call) {
  const auto& a = call.attrs<DepthwiseConvAttrs>();
  const std::span<const int64_t> x = call.inputs[0].dims, w = call.inputs[1].dims, y = call.outputs[0].dims;
  const auto divide_up = [](double n, double by) { return std::ceil(n / by); };
  double share = 1;
  for (int i = 0; i + 1 < a.strides.size(); ++i) {
    const auto axis = static_cast<size_t>(i);
    const auto lines = static_cast<double>(y[axis + 1]), taps = static_cast<double>(w[axis]);
    const auto stride = static_cast<double>(a.strides[i]);
    if (lines == 0 || taps == 0) return 1;
    double inside = 0;
    for (double t = 0; t < taps; ++t) {
      // Position p of the result reads line p * stride - before.
      const double before = static_cast<double>(a.pads[i]) - t * static_cast<double>(a.dilations[i]);
      const double first = std::clamp(divide_up(before, stride), 0.0, lines);
      const double end = divide_up(before + static_cast<double>(x[axis + 1]), stride);
      inside += std::clamp(end, first, lines) - first;
    }
    share *= inside / (lines * taps);
  }
  return share;
}

double inputs_of(const CallShape& call) {
  double sum = 0;
  for (const CallShape::Operand& o : call.inputs) sum += o.constant ? 0 : o.size();
  return sum;
}
double outputs_of(const CallShape& call) {
  double sum = 0;
  for (const CallShape::Operand& o : call.outputs) sum += o.size();
  return sum;
}

Work work_on(const CostTable& t, const CallShape& call, Row row) {
  if (row == nullptr) return {};
  if (row == &CostTable::recurrent) return recurrent(t, call);
  if (!call.has_output()) return {&CostTable::other, t.other};
  if (row == &CostTable::conv) {
    const int64_t group = call.op == Op::kConv    ? call.attrs<ConvAttrs>().group
                          : call.op == Op::kQConv ? call.attrs<QConvAttrs>().group
                                                  : 1;
    return product(t, call, row, static_cast<double>(std::max<int64_t>(group, 1)));
  }
  if (row == &CostTable::mat_mul) return product(t, call, row, 1);
  double products = 0;
  if (row == &CostTable::depthwise || row == &CostTable::conv_transpose) products = multiply_adds(call);
  if (call.op == Op::kMaxPool) products = reads<MaxPoolAttrs>(call);
  if (call.op == Op::kAvgPool) products = reads<AvgPoolAttrs>(call);
  const double float_products = call.op == Op::kDepthwiseConv ? products * inside_share(call) : products;
  return {row, t.*row, float_products, products};
}

double cost(const CallShape& call, const Rate& rate, double products) {
  return rate.step + rate.product * products + rate.output * outputs_of(call) + rate.input * inputs_of(call);
}

// Tiles for which transformed filters are read once: about those that a kernel computes together.
constexpr double kBlockTiles = 24;

double pieces(double n, double unit) {
  return static_cast<double>(static_cast<int64_t>((n + unit - 1) / unit));
}

}  // namespace

double float_cost(Cpu cpu, const Graph& graph, const Node& node) {
  const CallShape call(graph, node);
  const Work w = work_on(cost_table(cpu), call, compared_row(call.op));
  return cost(call, w.rates.float32, w.float_products);
}

double int8_cost(Cpu cpu, const Graph& graph, const Node& node) {
  const CallShape call(graph, node);
  const Work w = work_on(cost_table(cpu), call, compared_row(call.op));
  return cost(call, w.rates.int8, w.int8_products);
}

double int16_cost(Cpu cpu, const Graph& graph, const Node& node) {
  const CallShape call(graph, node);
  const Work w = work_on(cost_table(cpu), call, compared_row(call.op));
  return cost(call, w.rates.int16, w.int8_products);
}

double step_cost(Cpu cpu, const OpCall& call) {
  const CallShape shape(call);
  const Work w = work_on(cost_table(cpu), shape, answer_for(kRows, call.op));
  const DType x = call.inputs.empty() ? DType::kFloat32 : call.in(0).dtype;
  if (x == DType::kInt8 || x == DType::kUint8) return cost(shape, w.rates.int8, w.int8_products);
  if (x == DType::kInt16) return cost(shape, w.rates.int16, w.int8_products);
  return cost(shape, w.rates.float32, w.float_products);
}

Counts counts_of(Cpu cpu, const CallShape& call) {
  const Work w = work_on(cost_table(cpu), call, compared_row(call.op));
  static constexpr Rates kNothing = {};
  for (const RowName& row : kRowNames)
    if (row.row == w.row)
      return {row.name,        &(cost_table(cpu).*w.row), w.float_products,
              w.int8_products, outputs_of(call),          inputs_of(call)};
  return {"", &kNothing, w.float_products, w.int8_products, outputs_of(call), inputs_of(call)};
}

double boundary_cost(Cpu cpu, int64_t elements) {
  const Rate& rate = cost_table(cpu).boundary;
  return rate.step + rate.output * static_cast<double>(elements);
}

uint32_t worthwhile_threads(const Target& target, const OpCall& call) {
  const Cpu cpu = cpu_of(target);
  return step_cost(cpu, call) < cost_table(cpu).second_thread.time ? 1 : 0;
}

int planned_threads(const Target& target, const OpCall& call) {
  return worthwhile_threads(target, call) == 1 ? 1 : target.cores;
}

WinogradCounts winograd_counts(double vector, const Dims& weights, const Dims& output, int64_t tile) {
  const auto length = [](const Dims& dims, size_t axis) { return static_cast<double>(dims[axis]); };
  const auto m = static_cast<double>(tile);
  const double positions = (m + 2) * (m + 2), channels = length(weights, 3);
  const double columns = pieces(length(weights, 0), vector) * vector;
  const double tiles = length(output, 0) * pieces(length(output, 1), m) * pieces(length(output, 2), m);
  const double filters = positions * channels * columns;
  return {.products = positions * tiles * channels * columns,
          .inputs = positions * tiles * channels,
          .outputs = positions * tiles * length(weights, 0),
          .filters = filters > kFarWeights ? filters * pieces(tiles, kBlockTiles) : 0};
}

double winograd_cost(Cpu cpu, const Dims& weights, const Dims& output, int64_t tile) {
  const CostTable& t = cost_table(cpu);
  const WinogradRate& rate = t.winograd;
  const WinogradCounts n = winograd_counts(t.vector, weights, output, tile);
  return rate.step + rate.product * n.products + rate.input * n.inputs + rate.output * n.outputs +
         rate.filter * n.filters;
}

}  // namespace sinter::convert
