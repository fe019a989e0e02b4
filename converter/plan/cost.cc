#include "converter/plan/cost.h"

namespace sinter::convert {

double estimated_work(const OpCall& call) {
  double out = 0, in = 0;
  for (const TensorView& v : call.outputs) out += v.present() ? static_cast<double>(v.size()) : 0;
  for (const TensorView& v : call.inputs) in += v.present() ? static_cast<double>(v.size()) : 0;
  const auto weights_per_output = [&](size_t w) {
    const TensorView& weights = call.in(w);
    const double outputs = weights.rank > 0 ? static_cast<double>(weights.dims[0]) : 1;
    return outputs > 0 ? static_cast<double>(weights.size()) / outputs : 0;
  };
  switch (call.op) {
    case Op::kConv:
    case Op::kFullyConnected:
    case Op::kLowBitFullyConnected:
    case Op::kQConv:
    case Op::kQFullyConnected:
      return out * weights_per_output(1);
    case Op::kConvTranspose:
    case Op::kQConvTranspose:
      return static_cast<double>(call.in(0).size()) * weights_per_output(1);
    case Op::kDepthwiseConv:
    case Op::kQDepthwiseConv: {
      const TensorView& w = call.in(1);
      return 2 * out * static_cast<double>(w.size()) /
             static_cast<double>(w.rank ? w.dims[w.rank - 1] + 1 : 1);
    }
    case Op::kMatMul:
    case Op::kQMatMul: {
      const TensorView& a = call.in(0);
      const bool transposed = call.op == Op::kMatMul ? call.attrs<MatMulAttrs>().transpose_a != 0
                                                     : call.attrs<QMatMulAttrs>().transpose_a != 0;
      return out * static_cast<double>(transposed ? a.dims[a.rank - 2] : a.dims[a.rank - 1]);
    }
    case Op::kAttention:
      return 2 * static_cast<double>(call.in(0).size()) * static_cast<double>(call.in(1).dims[2]);
    case Op::kLstm:
    case Op::kGru:
    case Op::kRnn:
    case Op::kQLstm:
    case Op::kQGru: {
      const TensorView& x = call.in(0);
      const double steps = static_cast<double>(x.dims[0] * x.dims[1]);
      return steps * static_cast<double>(call.in(1).size() + call.in(2).size());
    }
    case Op::kSoftmax:
    case Op::kQSoftmax:
    case Op::kExp:
    case Op::kErf:
    case Op::kGelu:
    case Op::kSilu:
    case Op::kTanh:
    case Op::kSigmoid:
    case Op::kPow:
    case Op::kTrig:
      return 8 * out;
    default:
      return 2 * (out > in ? out : in);
  }
}

uint32_t worthwhile_threads(const OpCall& call) {
  // A step below this takes less time than waking a thread does.
  constexpr double kWorthSharing = 250e3;
  return estimated_work(call) < kWorthSharing ? 1 : 0;
}

}  // namespace sinter::convert
