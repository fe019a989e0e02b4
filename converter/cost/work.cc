#include "converter/cost/work.h"

#include <algorithm>

#include "converter/ir/op_table.h"

namespace sinter::convert {
namespace {

// Multiply-adds that one of a call's is worth, an element of its result, and one of its largest operand or
// result. Estimates.
struct Worth {
  double product, output, element;
};
constexpr Worth kProducts{1, 0, 0}, kElements{0, 0, 2}, kExponentials{0, 8, 0};

constexpr OpRow<Worth> kWorth[] = {
    {WorkKind::kNothing, kElements},
    {WorkKind::kMovement, kElements},
    {WorkKind::kRepetition, kElements},
    {WorkKind::kScatter, kElements},
    {WorkKind::kConversion, kElements},
    {WorkKind::kLogic, kElements},
    {WorkKind::kArithmetic, kElements},
    {WorkKind::kCheapFunction, kElements},
    {WorkKind::kFunction, kExponentials},
    {Op::kSqrt, kElements},
    {Op::kRsqrt, kElements},
    {Op::kLog, kElements},
    {Op::kElu, kElements},
    {Op::kSoftplus, kElements},
    {Op::kLut, kElements},
    {Op::kQTable, kElements},
    {WorkKind::kReduction, kElements},
    {WorkKind::kNormalization, kElements},
    {Op::kSoftmax, kExponentials},
    {Op::kQSoftmax, kExponentials},
    {WorkKind::kSearch, kElements},
    {WorkKind::kPool, kElements},
    {WorkKind::kProduct, kProducts},
    {WorkKind::kDepthwiseProduct, {2, 0, 0}},
    {WorkKind::kTransposedProduct, kProducts},
    {WorkKind::kMatrixProduct, kProducts},
    {WorkKind::kAttention, kProducts},
    {WorkKind::kRotation, kElements},
    {WorkKind::kResize, kElements},
    {WorkKind::kSampling, kElements},
    {WorkKind::kRecurrent, kProducts},
    {WorkKind::kTransform, kElements},
    {WorkKind::kCustom, kElements},
    {WorkKind::kControl, kElements},
};
static_assert(unanswered(kWorth) == Op{}, "every operation has a worth");

bool is_transposed(const CallShape& call) {
  return call.op == Op::kMatMul ? call.attrs<MatMulAttrs>().transpose_a != 0
                                : call.attrs<QMatMulAttrs>().transpose_a != 0;
}

// 1 where the operand does not have the axis.
double dim_from_last(const CallShape::Operand& operand, size_t axis) {
  const size_t rank = operand.dims.size();
  return rank > axis ? static_cast<double>(operand.dims[rank - 1 - axis]) : 1;
}

}  // namespace

double CallShape::Operand::size() const {
  double product = present ? 1 : 0;
  for (const int64_t d : dims) product *= static_cast<double>(d);
  return product;
}

double CallShape::Operand::last_dim() const {
  return dims.empty() ? 1 : static_cast<double>(std::max<int64_t>(dims.back(), 1));
}

CallShape::CallShape(const OpCall& call) : op(call.op), attributes(call.attributes) {
  for (const TensorView& v : call.inputs) inputs.push_back({v.shape(), v.present(), v.constant});
  for (const TensorView& v : call.outputs) outputs.push_back({v.shape(), v.present(), false});
}

CallShape::CallShape(const Graph& graph, const Node& node)
    : op(node.op()), attributes(attrs_pointer(node.attrs)) {
  const auto operand = [&](ValueId id) {
    return id < 0 ? Operand{} : Operand{graph.value(id).dims, true, graph.is_constant(id)};
  };
  for (const ValueId id : node.inputs) inputs.push_back(operand(id));
  for (const ValueId id : node.outputs) outputs.push_back(operand(id));
}

double multiply_adds(const CallShape& call) {
  const WorkKind kind = work_kind(call.op);
  if (kind == WorkKind::kRecurrent) {  // its first result may be absent
    const CallShape::Operand& x = call.inputs[0];
    return x.size() / x.last_dim() * (call.inputs[1].size() + call.inputs[2].size());
  }
  if (!call.has_output()) return 0;
  const double outputs = call.outputs[0].size();
  if (call.op == Op::kExpertFullyConnected) return outputs * call.inputs[0].last_dim();
  // A state is scaled, read, changed and read again for every token.
  if (call.op == Op::kLinearAttention) return 4 * call.inputs[2].size() * call.inputs[1].last_dim();
  switch (kind) {
    case WorkKind::kProduct: {  // weights [O, ...]
      const CallShape::Operand& weights = call.inputs[1];
      const double rows = weights.dims.empty() ? 1 : static_cast<double>(weights.dims[0]);
      return rows > 0 ? outputs * weights.size() / rows : 0;
    }
    case WorkKind::kDepthwiseProduct:
      return outputs * call.inputs[1].size() / call.inputs[1].last_dim();
    case WorkKind::kTransposedProduct:
      return call.inputs[0].size() * call.inputs[1].size() / call.inputs[0].last_dim();
    case WorkKind::kMatrixProduct:
      return outputs * dim_from_last(call.inputs[0], is_transposed(call) ? 1 : 0);
    case WorkKind::kAttention:
      return (call.inputs[0].size() + outputs) * dim_from_last(call.inputs[1], 1);
    default:
      return 0;
  }
}

double total(const TypedProducts& products) {
  double sum = 0;
  for (const auto& [dtype, count] : products) sum += count;
  return sum;
}

TypedProducts multiply_adds(Op op, const void* attributes, const std::vector<TypedProducts>& bodies) {
  TypedProducts most;
  for (const TypedProducts& body : bodies)
    if (total(body) > total(most)) most = body;
  if (op == Op::kLoop)
    for (auto& [dtype, count] : most)
      count *= static_cast<double>(static_cast<const LoopAttrs*>(attributes)->max_trips);
  return most;
}

TypedProducts multiply_adds(const Graph& graph, const Node& node) {
  if (node.bodies.empty()) {
    const double count = multiply_adds(CallShape(graph, node));
    return count > 0 ? TypedProducts{{graph.value(node.inputs[0]).dtype, count}} : TypedProducts();
  }
  std::vector<TypedProducts> bodies;
  for (const auto& body : node.bodies) bodies.push_back(multiply_adds(*body));
  return multiply_adds(node.op(), attrs_pointer(node.attrs), bodies);
}

TypedProducts multiply_adds(const Graph& graph) {
  TypedProducts sum;
  for (const Node& node : graph.nodes)
    for (const auto& [dtype, count] : multiply_adds(graph, node)) sum[dtype] += count;
  return sum;
}

double estimated_work(const CallShape& call) {
  const auto all = [](const std::vector<CallShape::Operand>& operands) {
    double sum = 0;
    for (const CallShape::Operand& o : operands) sum += o.size();
    return sum;
  };
  const Worth& worth = answer_for(kWorth, call.op);
  const double in = all(call.inputs), out = all(call.outputs);
  return worth.product * multiply_adds(call) + worth.output * out + worth.element * std::max(in, out);
}

}  // namespace sinter::convert
