// Gru: gates in the order update, reset, hidden.
#include "runtime/kernels/recurrent.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace recurrent;

Settings gru_settings(const OpCall& call) {
  static constexpr RnnActivation kDefaults[] = {RnnActivation::kSigmoid, RnnActivation::kTanh};
  const auto& a = call.attrs<GruAttrs>();
  return {
      {a.hidden_size, a.direction, a.layout, 3}, a.activations, a.alpha, a.beta, a.clip, kDefaults, false};
}

Status infer_gru(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_code(call.attrs<GruAttrs>().linear_before_reset, 2));
  return infer_recurrent(call, gru_settings(call));
}

Status gru_workspace(const OpCall& call, int threads, size_t* bytes) {
  return recurrent_workspace(call, gru_settings(call), threads, bytes);
}

Status run_gru(const OpCall& call, RunContext& context) {
  Layout l;
  SINTER_RETURN_IF_ERROR(resolve(call, gru_settings(call), &l));
  SINTER_RETURN_IF_ERROR(check_lengths(call, l));
  const bool linear_first = call.attrs<GruAttrs>().linear_before_reset != 0;
  return for_float(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk<T>(call, l, context, [&](Unit<T>& u) {
      const int64_t h = u.hidden;
      for (int64_t row = 0; row < 2 * h; ++row) u.sums[row] = u.activate(0, u.sum(row));
      const double* reset = u.sums + h;
      for (int64_t i = 0; i < h; ++i) u.spare[i] = reset[i] * u.h[i];
      for (int64_t i = 0; i < h; ++i) {
        const int64_t row = 2 * h + i;
        const double recurrent = linear_first ? reset[i] * (u.from_h(row, u.h) + u.bias_r(row))
                                              : u.from_h(row, u.spare) + u.bias_r(row);
        u.sums[row] = u.activate(1, u.from_x(row) + recurrent + u.bias_w(row));
      }
      for (int64_t i = 0; i < h; ++i) u.h[i] = (1 - u.sums[i]) * u.sums[2 * h + i] + u.sums[i] * u.h[i];
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kGruKernel = reference_kernel({Op::kGru, infer_gru, gru_workspace, run_gru});

}  // namespace sinter
