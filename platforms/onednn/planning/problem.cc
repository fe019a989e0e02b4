#include "platforms/onednn/planning/problem.h"

#include <algorithm>
#include <iterator>

#include "runtime/core/checked.h"

namespace sinter::onednn {
namespace {

// The library counts bytes in int.
constexpr int64_t kLargestOperand = INT32_MAX;

Status check_operands(const OpCall& call) {
  for (const auto views : {call.inputs, call.outputs})
    for (const TensorView& v : views) {
      if (!v.present()) continue;
      SINTER_RETURN_UNLESS(v.dtype == DType::kFloat32, unsupported("oneDNN is used for float32 only"));
      SINTER_RETURN_UNLESS(v.dense() && v.size() > 0, unsupported("only dense operands with elements"));
      SINTER_RETURN_UNLESS(v.dense_bytes() <= kLargestOperand,
                           unsupported("only operands of less than 2 GB"));
    }
  SINTER_RETURN_UNLESS(call.in(1).constant && (!call.has_input(2) || call.in(2).constant),
                       unsupported("weights must be constant"));
  return ok_status();
}

Status set_clamp(double low, double high, Problem* p) {
  p->low = static_cast<float>(low), p->high = static_cast<float>(high);
  p->clamped = low != -kInfinity || high != kInfinity;
  SINTER_RETURN_UNLESS(p->low <= p->high, unsupported("the clamp's bounds are crossed"));
  return ok_status();
}

template <class A>
Status set_window(const OpCall& call, Problem* p) {
  SINTER_RETURN_IF_ERROR(set_clamp(call.attrs<A>().act_min, call.attrs<A>().act_max, p));
  SINTER_RETURN_UNLESS(call.in(0).rank == 3 || call.in(0).rank == 4,
                       unsupported("only one or two spatial axes"));
  p->convolution = true, p->depthwise = kDepthwiseWindow<A>;
  p->window = window_geometry<A>(call);
  const WindowGeometry& g = p->window;
  SINTER_RETURN_UNLESS(p->depthwise || g.group == 1, unsupported("only Conv of one group and DepthwiseConv"));
  SINTER_RETURN_UNLESS(!p->depthwise || g.in_channels == g.out_channels,
                       unsupported("only one output channel per input channel"));
  // The library generates tens of thousands of instructions for the former, and copies the input of the
  // latter.
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

// Of a product whose weights are known. The library computes a single column by another kernel, which packs
// in every run.
Status check_product(const Problem& p) {
  SINTER_RETURN_UNLESS(p.n > 1, unsupported("only products of several columns"));
  return ok_status();
}

int64_t rows_of(const TensorView& x) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.dims[i];
  return rows;
}

Status set_layer(const OpCall& call, Problem* p) {
  const auto& a = call.attrs<FullyConnectedAttrs>();
  SINTER_RETURN_IF_ERROR(set_clamp(a.act_min, a.act_max, p));
  const TensorView& w = call.in(1);
  p->rows = rows_of(call.in(0)), p->k = w.dims[1], p->n = w.dims[0];
  p->k_step = 1, p->n_step = p->k;
  return check_product(*p);
}

Status set_product(const OpCall& call, Problem* p) {
  const auto& a = call.attrs<MatMulAttrs>();
  const TensorView& b = call.in(1);
  SINTER_RETURN_UNLESS(a.transpose_a == 0, unsupported("only a first matrix that is not transposed"));
  SINTER_RETURN_UNLESS(rows_of(b) == b.dims[b.rank - 2], unsupported("only a single second matrix"));
  const bool transposed = a.transpose_b != 0;
  p->k = b.dims[b.rank - (transposed ? 1 : 2)], p->n = b.dims[b.rank - (transposed ? 2 : 1)];
  p->k_step = transposed ? 1 : p->n, p->n_step = transposed ? p->k : 1;
  p->rows = rows_of(call.in(0));
  return check_product(*p);
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

}  // namespace sinter::onednn
