// Lstm: gates in the order input, output, forget, cell; peepholes in the order input, output, forget. `clip`
// bounds the sums that gates are computed from; the cell state is not clipped (as in onnxruntime).
#include "runtime/kernels/recurrent.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace recurrent;

Settings lstm_settings(const OpCall& call) {
  static constexpr RnnActivation kDefaults[] = {RnnActivation::kSigmoid, RnnActivation::kTanh,
                                                RnnActivation::kTanh};
  const auto& a = call.attrs<LstmAttrs>();
  return {{a.hidden_size, a.direction, a.layout, 4}, a.activations, a.alpha, a.beta, a.clip, kDefaults, true};
}

Status infer_lstm(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_code(call.attrs<LstmAttrs>().input_forget, 2));
  return infer_recurrent(call, lstm_settings(call));
}

Status lstm_workspace(const OpCall& call, int threads, size_t* bytes) {
  return recurrent_workspace(call, lstm_settings(call), threads, bytes);
}

Status run_lstm(const OpCall& call, RunContext& context) {
  Layout l;
  SINTER_RETURN_IF_ERROR(resolve(call, lstm_settings(call), &l));
  SINTER_RETURN_IF_ERROR(check_lengths(call, l));
  const bool coupled = call.attrs<LstmAttrs>().input_forget != 0;
  return for_float(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk<T>(call, l, context, [&](Unit<T>& u) {
      const int64_t h = u.hidden;
      for (int64_t row = 0; row < 4 * h; ++row) u.sums[row] = u.sum(row);
      const auto peep = [&](int64_t gate, int64_t i) {
        return u.peephole != nullptr ? static_cast<double>(u.peephole[gate * h + i]) * u.c[i] : 0.0;
      };
      for (int64_t i = 0; i < h; ++i) {
        const double in = u.activate(0, u.sums[i] + peep(0, i));
        const double forget = coupled ? 1 - in : u.activate(0, u.sums[2 * h + i] + peep(2, i));
        u.c[i] = forget * u.c[i] + in * u.activate(1, u.sums[3 * h + i]);
        u.h[i] = u.activate(0, u.sums[h + i] + peep(1, i)) * apply(u.act[2], u.c[i]);
      }
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kLstmKernel = reference_kernel({Op::kLstm, infer_lstm, lstm_workspace, run_lstm});

}  // namespace sinter
