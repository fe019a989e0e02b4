#include "platforms/onednn/planning/problem.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "runtime/core/checked.h"

namespace sinter::onednn {
namespace {

// The library counts bytes in int.
constexpr int64_t kLargestOperand = INT32_MAX;

// Integers up to this size are exact in float32.
constexpr int64_t kMostExact = 1 << 24;

Status check_operands(const OpCall& call) {
  for (const auto views : {call.inputs, call.outputs})
    for (const TensorView& v : views) {
      if (!v.present()) continue;
      SINTER_RETURN_UNLESS(v.dense() && v.size() > 0, unsupported("only dense operands with elements"));
      SINTER_RETURN_UNLESS(v.dense_bytes() <= kLargestOperand,
                           unsupported("only operands of less than 2 GB"));
    }
  for (size_t i = 1; i < call.inputs.size(); ++i)
    SINTER_RETURN_UNLESS(!call.inputs[i].present() || call.inputs[i].constant,
                         unsupported("weights must be constant"));
  return ok_status();
}

Status set_float(const OpCall& call, Problem* p) {
  const DType type = call.in(0).dtype;
  SINTER_RETURN_UNLESS(type == DType::kFloat32 || type == DType::kBFloat16,
                       unsupported("oneDNN is used for float32, bfloat16 and int8 only"));
  for (const auto views : {call.inputs, call.outputs})
    for (const TensorView& v : views)
      SINTER_RETURN_UNLESS(!v.present() || v.dtype == type, unsupported("only float operands of one type"));
  p->bfloat16 = type == DType::kBFloat16;
  return ok_status();
}

Status set_clamp(double low, double high, Problem* p) {
  p->low = static_cast<float>(low), p->high = static_cast<float>(high);
  p->clamped = low != -kInfinity || high != kInfinity;
  SINTER_RETURN_UNLESS(p->low <= p->high, unsupported("the clamp's bounds are crossed"));
  return ok_status();
}

// Describes a convolution of any type.
template <class A>
Status set_geometry(const OpCall& call, Problem* p) {
  SINTER_RETURN_UNLESS(call.in(0).rank == 3 || call.in(0).rank == 4,
                       unsupported("only one or two spatial axes"));
  p->convolution = true, p->depthwise = kDepthwiseWindow<A>;
  p->window = window_geometry<A>(call);
  const WindowGeometry& g = p->window;
  SINTER_RETURN_UNLESS(p->depthwise || g.group == 1, unsupported("only Conv of one group and DepthwiseConv"));
  SINTER_RETURN_UNLESS(!p->depthwise || g.in_channels == g.out_channels,
                       unsupported("only one output channel per input channel"));
  // For one input channel the library generates tens of thousands of instructions; for results of one column
  // it copies the input.
  SINTER_RETURN_UNLESS(p->depthwise || g.in_channels > 1, unsupported("only Conv of several input channels"));
  SINTER_RETURN_UNLESS(p->depthwise || g.out[2] > 1,
                       unsupported("only Conv with results of several columns"));
  for (int i = 1; i < kMaxWindowAxes; ++i) {
    const int64_t extent = (g.kernel[i] - 1) * g.dilation[i] + 1;
    SINTER_RETURN_UNLESS(!p->depthwise || g.dilation[i] == 1,
                         unsupported("only DepthwiseConv without dilation"));
    SINTER_RETURN_UNLESS(g.pad[i] >= 0 && g.end_pad[i] >= 0 && g.pad[i] < extent && g.end_pad[i] < extent,
                         unsupported("a window is entirely in the padding"));
  }
  return ok_status();
}

template <class A>
Status set_window(const OpCall& call, Problem* p) {
  SINTER_RETURN_IF_ERROR(set_float(call, p));
  SINTER_RETURN_IF_ERROR(set_clamp(call.attrs<A>().act_min, call.attrs<A>().act_max, p));
  return set_geometry<A>(call, p);
}

// Checks a product whose weights are known. The library computes a single column by another kernel, which
// packs in every run.
Status check_product(const Problem& p) {
  SINTER_RETURN_UNLESS(p.n > 1, unsupported("only products of several columns"));
  return ok_status();
}

int64_t rows_of(const TensorView& x) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.dims[i];
  return rows;
}

void set_layer_dims(const OpCall& call, Problem* p) {
  const TensorView& w = call.in(1);
  p->rows = rows_of(call.in(0)), p->k = w.dims[1], p->n = w.dims[0];
  p->k_step = 1, p->n_step = p->k;
}

Status set_layer(const OpCall& call, Problem* p) {
  const auto& a = call.attrs<FullyConnectedAttrs>();
  SINTER_RETURN_IF_ERROR(set_float(call, p));
  SINTER_RETURN_IF_ERROR(set_clamp(a.act_min, a.act_max, p));
  set_layer_dims(call, p);
  return check_product(*p);
}

template <class A>
Status set_product_dims(const OpCall& call, Problem* p) {
  const auto& a = call.attrs<A>();
  const TensorView& b = call.in(1);
  SINTER_RETURN_UNLESS(a.transpose_a == 0, unsupported("only a first matrix that is not transposed"));
  SINTER_RETURN_UNLESS(rows_of(b) == b.dims[b.rank - 2], unsupported("only a single second matrix"));
  const bool transposed = a.transpose_b != 0;
  p->k = b.dims[b.rank - (transposed ? 1 : 2)], p->n = b.dims[b.rank - (transposed ? 2 : 1)];
  p->k_step = transposed ? 1 : p->n, p->n_step = transposed ? p->k : 1;
  p->rows = rows_of(call.in(0));
  return ok_status();
}

Status set_product(const OpCall& call, Problem* p) {
  SINTER_RETURN_IF_ERROR(set_float(call, p));
  SINTER_RETURN_IF_ERROR(set_product_dims<MatMulAttrs>(call, p));
  return check_product(*p);
}

// ---- integers

template <class A>
Status set_integer(const OpCall& call, Problem* p) {
  const auto& a = call.attrs<A>();
  SINTER_RETURN_UNLESS(call.in(0).dtype == DType::kInt8 && call.in(1).dtype == DType::kInt8,
                       unsupported("of integers, oneDNN is used for int8 only"));
  const DType result = call.out(0).dtype;
  SINTER_RETURN_UNLESS(result == DType::kInt8 || result == DType::kFloat32,
                       unsupported("only results of int8 or float32"));
  p->integer = true, p->rounded = result == DType::kInt8;
  p->x_zero = static_cast<int32_t>(a.x_zero);
  if (!p->rounded) return ok_status();
  p->y_zero = static_cast<int32_t>(a.y_zero);
  p->low = static_cast<float>(a.q_min - a.y_zero), p->high = static_cast<float>(a.q_max - a.y_zero);
  p->clamped = a.q_min > INT8_MIN || a.q_max < INT8_MAX;
  SINTER_RETURN_UNLESS(p->low <= p->high, unsupported("the clamp's bounds are crossed"));
  return ok_status();
}

// Describes a product with multipliers as operands.
template <class A>
Status set_integer_layer_kind(const OpCall& call, Problem* p) {
  SINTER_RETURN_IF_ERROR(set_integer<A>(call, p));
  SINTER_RETURN_UNLESS(!call.has_input(4), unsupported("only weights without zero points"));
  p->one_multiplier = call.in(3).size() == 1;
  return ok_status();
}

// Describes the product as a convolution of 1x1.
Status set_line(Problem* p) {
  // The library packs for a single column, and is slower than others for a single row.
  SINTER_RETURN_UNLESS(p->rows > 1, unsupported("only products of several rows of int8"));
  SINTER_RETURN_IF_ERROR(check_product(*p));
  p->convolution = true;
  WindowGeometry& g = p->window;
  g = {};
  g.batch = 1, g.in_channels = p->k, g.out_channels = p->n;
  g.in[2] = g.out[2] = p->rows;
  return ok_status();
}

Status set_integer_window(const OpCall& call, Problem* p) {
  SINTER_RETURN_IF_ERROR(set_integer_layer_kind<QConvAttrs>(call, p));
  return set_geometry<QConvAttrs>(call, p);
}

Status set_integer_layer(const OpCall& call, Problem* p) {
  SINTER_RETURN_IF_ERROR(set_integer_layer_kind<QFullyConnectedAttrs>(call, p));
  set_layer_dims(call, p);
  return set_line(p);
}

Status set_integer_product(const OpCall& call, Problem* p) {
  const auto& a = call.attrs<QMatMulAttrs>();
  SINTER_RETURN_IF_ERROR(set_integer<QMatMulAttrs>(call, p));
  SINTER_RETURN_UNLESS(a.b_zero == 0, unsupported("only weights without zero points"));
  p->one_multiplier = true;
  SINTER_RETURN_IF_ERROR(set_product_dims<QMatMulAttrs>(call, p));
  return set_line(p);
}

}  // namespace

bool is_known(Op op) {
  constexpr Op kOps[] = {
#define SINTER_ONEDNN(op, problem) Op::k##op,
#include "platforms/onednn/operators.def"
#undef SINTER_ONEDNN
  };
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

bool is_of_integers(Op op) { return op == Op::kQConv || op == Op::kQFullyConnected || op == Op::kQMatMul; }

Status problem_of(const OpCall& call, Problem* p) {
  *p = {};
  SINTER_RETURN_UNLESS(is_known(call.op), unsupported("oneDNN is not used for this operation"));
  SINTER_RETURN_IF_ERROR(check_operands(call));
  p->bias = call.has_input(2);
  switch (call.op) {
#define SINTER_ONEDNN(op, problem) \
  case Op::k##op:                  \
    return set_##problem(call, p);
#include "platforms/onednn/operators.def"
#undef SINTER_ONEDNN
    default:
      return unsupported("oneDNN is not used for this operation");
  }
}

// The library adds the bias as a float32 to the sum as a float32. It rounds once if both are exact.
Status check_constants(const OpCall& call, const Problem& p) {
  if (!p.integer || !p.bias) return ok_status();
  const TensorView &bias = call.in(2), &multipliers = call.in(3);
  SINTER_RETURN_UNLESS(bias.data != nullptr && multipliers.data != nullptr,
                       unsupported("only biases that are small enough to be examined"));
  for (int64_t i = 0; i < multipliers.size(); ++i)
    SINTER_RETURN_UNLESS(std::isfinite(multipliers.as<const float>()[i]),
                         unsupported("a multiplier is not finite"));
  int64_t most = 0;
  for (int64_t i = 0; i < bias.size(); ++i)
    most = std::max(most, std::abs(int64_t{bias.as<const int32_t>()[i]}));
  if (most == 0) return ok_status();
  const int64_t depth = p.window.in_channels * p.window.taps();
  const int64_t difference = std::max(int64_t{INT8_MAX} - p.x_zero, int64_t{p.x_zero} - INT8_MIN);
  SINTER_RETURN_UNLESS(most <= kMostExact && depth <= kMostExact / (difference * -INT8_MIN),
                       unsupported("sums of int8 may exceed what is exact in float32"));
  return ok_status();
}

}  // namespace sinter::onednn
