// Rnn: one fully connected layer of input and previous output per step.
#include "runtime/kernels/recurrent.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace recurrent;

Settings rnn_settings(const OpCall& call) {
  static constexpr RnnActivation kDefaults[] = {RnnActivation::kTanh};
  const auto& a = call.attrs<RnnAttrs>();
  return {
      {a.hidden_size, a.direction, a.layout, 1}, a.activations, a.alpha, a.beta, a.clip, kDefaults, false};
}

Status infer_rnn(OpCall& call) { return infer_recurrent(call, rnn_settings(call)); }

Status rnn_workspace(const OpCall& call, int threads, size_t* bytes) {
  return recurrent_workspace(call, rnn_settings(call), threads, bytes);
}

Status run_rnn(const OpCall& call, RunContext& context) {
  Layout l;
  SINTER_RETURN_IF_ERROR(resolve(call, rnn_settings(call), &l));
  SINTER_RETURN_IF_ERROR(check_lengths(call, l));
  return for_float(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk<T>(call, l, context, [&](Unit<T>& u) {
      for (int64_t i = 0; i < u.hidden; ++i) u.sums[i] = u.activate(0, u.sum(i));
      for (int64_t i = 0; i < u.hidden; ++i) u.h[i] = u.sums[i];
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kRnnKernel = reference_kernel({Op::kRnn, infer_rnn, rnn_workspace, run_rnn});

}  // namespace sinter
