// Lstm, Gru and Rnn: the product of the input with W for all steps at once, then the steps.
#include <algorithm>
#include <limits>

#include "platforms/cuda/operators.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {
namespace {

constexpr int64_t kMostLaunches = 2000;

// The activation functions that read alpha and beta, and the defaults of these.
struct Parameters {
  bool alpha, beta;
  double alpha_default, beta_default;
};
Parameters parameters_of(RnnActivation fn) {
  switch (fn) {
    case RnnActivation::kAffine:
      return {true, true, 1, 0};
    case RnnActivation::kLeakyRelu:
      return {true, false, 0.01, 0};
    case RnnActivation::kThresholdedRelu:
    case RnnActivation::kElu:
      return {true, false, 1, 0};
    case RnnActivation::kScaledTanh:
      return {true, true, 1, 1};
    case RnnActivation::kHardSigmoid:
      return {true, true, 0.2, 0.5};
    default:
      return {false, false, 0, 0};
  }
}

// Functions that take alphas and betas consume them in order.
template <class A>
void set_activations(const A& attrs, std::span<const RnnActivation> defaults, RecurrentArguments* a) {
  a->per_direction = static_cast<int32_t>(defaults.size());
  int alphas = 0, betas = 0;
  for (int i = 0; i < a->per_direction * a->directions; ++i) {
    const auto fn = attrs.activations.empty() ? defaults[static_cast<size_t>(i % a->per_direction)]
                                              : static_cast<RnnActivation>(attrs.activations[i]);
    const Parameters p = parameters_of(fn);
    RecurrentActivation& to = a->activations[i];
    to = {static_cast<int32_t>(fn), p.alpha_default, p.beta_default};
    if (p.alpha && alphas < attrs.alpha.size()) to.alpha = attrs.alpha[alphas];
    if (p.beta && betas < attrs.beta.size()) to.beta = attrs.beta[betas];
    alphas += p.alpha ? 1 : 0, betas += p.beta ? 1 : 0;
  }
}

// Sets the operands of all three operations; `gates` is the number of rows of W and R for a hidden unit.
template <class A>
Status set_operands(Lowering& l, const A& attrs, int gates, std::span<const RnnActivation> defaults,
                    RecurrentArguments* a) {
  SINTER_RETURN_IF_ERROR(l.check_dense());
  const TensorView& x = l.in(0);
  a->batch_first = attrs.layout == 1 ? 1 : 0;
  const int64_t steps = x.dims[attrs.layout == 1 ? 1 : 0], batch = x.dims[attrs.layout == 1 ? 0 : 1];
  constexpr int64_t kMost = 1 << 21;
  SINTER_RETURN_UNLESS(
      steps <= INT32_MAX && batch <= 65535 && x.dims[2] <= INT32_MAX && attrs.hidden_size <= kMost / gates,
      unsupported("the layer is too large"));
  a->steps = static_cast<int32_t>(steps), a->batch = static_cast<int32_t>(batch);
  a->input = static_cast<int32_t>(x.dims[2]), a->hidden = static_cast<int32_t>(attrs.hidden_size);
  a->rows = gates * a->hidden;
  a->directions = attrs.direction == static_cast<int64_t>(RnnDirection::kBidirectional) ? 2 : 1;
  a->first_is_reverse = attrs.direction == static_cast<int64_t>(RnnDirection::kReverse) ? 1 : 0;
  a->clip = attrs.clip == 0 ? std::numeric_limits<double>::infinity() : attrs.clip;
  a->dtype = x.dtype;
  set_activations(attrs, defaults, a);
  a->x = x.data, a->w = l.in(1).data, a->r = l.in(2).data;
  if (l.has_input(3)) a->bias = l.in(3).data;
  if (l.has_input(4)) a->lengths = l.in(4).as<int32_t>(), a->fault = l.fault();
  if (l.has_input(5)) a->h0 = l.in(5).data;
  if (l.has_input(6)) a->c0 = l.in(6).data;
  if (l.has_input(7)) a->peephole = l.in(7).data;
  if (l.has_output(0)) a->y = l.out(0).data;
  if (l.has_output(1)) a->y_h = l.out(1).data;
  if (l.has_output(2)) a->y_c = l.out(2).data;
  return ok_status();
}

Status add_inflow(Lowering& l, RecurrentArguments& a, bool wide) {
  constexpr int64_t kTile = 64, kFew = 8, kWarps = 8;
  const int64_t samples = int64_t{a.steps} * a.batch;
  const auto directions = static_cast<uint32_t>(a.directions);
  if (samples <= kFew)
    return l.launch_one_of(
        wide ? Kernel::k_recurrent_inflow_few_doubles : Kernel::k_recurrent_inflow_few_floats,
        {.blocks = {blocks_for(a.rows, kWarps), static_cast<uint32_t>(samples), directions}}, a);
  constexpr uint32_t kNumbers = 2 * 16 * (kTile + 4);  // of a block's parts of X and W
  return l.launch_one_of(wide ? Kernel::k_recurrent_inflow_doubles : Kernel::k_recurrent_inflow_floats,
                         {.blocks = {blocks_for(samples, kTile), blocks_for(a.rows, kTile), directions},
                          .shared_bytes = kNumbers * (wide ? 8u : 4u)},
                         a);
}

Status add_steps(Lowering& l, RecurrentArguments& a, bool wide) {
  const size_t number = wide ? 8 : 4, sequences = size_t(a.directions) * size_t(a.batch);
  // The shared memory holds h, the next h, c or the update gate, and reset times h.
  const size_t shared = 4 * align_up(static_cast<size_t>(a.hidden) * number, 16);
  // One block reads R from the second level of cache. If R is large and there are few blocks, a launch for
  // each step costs less.
  constexpr int64_t kLarge = 512 << 10;
  constexpr size_t kFewSequences = 16;
  const int64_t r_bytes = int64_t{a.rows} * a.hidden * static_cast<int64_t>(byte_width(a.dtype));
  const int halves = a.cell == Cell::kGru ? 2 : 1;
  const bool few_launches = int64_t{a.steps} * halves <= kMostLaunches;
  const bool fits = shared <= kMostShared;
  SINTER_RETURN_UNLESS(fits || few_launches,
                       unsupported("the state is too large for one block, and there are too many steps"));
  if (fits && !(few_launches && r_bytes > kLarge && sequences < kFewSequences))
    return l.launch_one_of(wide ? Kernel::k_recurrent_sequence_doubles : Kernel::k_recurrent_sequence_floats,
                           {.blocks = {static_cast<uint32_t>(a.batch), static_cast<uint32_t>(a.directions)},
                            .shared_bytes = static_cast<uint32_t>(shared)},
                           a);
  const size_t state = sequences * static_cast<size_t>(a.hidden) * number;
  a.h = l.workspace(2 * state);
  if (a.cell == Cell::kLstm) a.c = l.workspace(state);
  if (a.cell == Cell::kGru) a.update = l.workspace(state), a.spare = l.workspace(state);
  const int64_t numbers = static_cast<int64_t>(sequences) * a.hidden;
  SINTER_RETURN_IF_ERROR(
      l.launch_one_of(wide ? Kernel::k_recurrent_begin_doubles : Kernel::k_recurrent_begin_floats,
                      {.blocks = {blocks_for(numbers, threads_of(Kernel::k_recurrent_begin_floats))}}, a));
  const uint32_t blocks = blocks_for(a.hidden, threads_of(Kernel::k_recurrent_step_floats) / 32);
  for (a.step = 0; a.step < a.steps; ++a.step)
    for (a.half = 0; a.half < halves; ++a.half)
      SINTER_RETURN_IF_ERROR(l.launch_one_of(
          wide ? Kernel::k_recurrent_step_doubles : Kernel::k_recurrent_step_floats,
          {.blocks = {blocks, static_cast<uint32_t>(a.batch), static_cast<uint32_t>(a.directions)}}, a));
  return ok_status();
}

Status add_layer(Lowering& l, RecurrentArguments& a) {
  const bool wide = a.dtype == DType::kFloat64;
  if (a.batch == 0) return ok_status();
  if (a.steps > 0) {
    int64_t bytes = 0;
    SINTER_RETURN_UNLESS(checked_mul(int64_t{a.directions} * a.steps * a.batch, int64_t{a.rows} * 8, &bytes),
                         unsupported("the layer is too large"));
    a.inflow = l.workspace(static_cast<size_t>(wide ? bytes : bytes / 2));
    SINTER_RETURN_IF_ERROR(add_inflow(l, a, wide));
    return add_steps(l, a, wide);
  }
  for (size_t i = 1; i < l.call().outputs.size(); ++i)
    if (l.has_output(i))
      SINTER_RETURN_IF_ERROR(l.fill(l.out(i).data, static_cast<size_t>(l.out(i).dense_bytes()), 0));
  return ok_status();
}

}  // namespace

Status lower_Lstm(Lowering& l) {
  static constexpr RnnActivation kDefaults[] = {RnnActivation::kSigmoid, RnnActivation::kTanh,
                                                RnnActivation::kTanh};
  RecurrentArguments a;
  SINTER_RETURN_IF_ERROR(set_operands(l, l.attrs<LstmAttrs>(), 4, kDefaults, &a));
  a.cell = Cell::kLstm;
  a.coupled = l.attrs<LstmAttrs>().input_forget != 0 ? 1 : 0;
  return add_layer(l, a);
}

Status lower_Gru(Lowering& l) {
  static constexpr RnnActivation kDefaults[] = {RnnActivation::kSigmoid, RnnActivation::kTanh};
  RecurrentArguments a;
  SINTER_RETURN_IF_ERROR(set_operands(l, l.attrs<GruAttrs>(), 3, kDefaults, &a));
  a.cell = l.attrs<GruAttrs>().linear_before_reset != 0 ? Cell::kGruResetLast : Cell::kGru;
  return add_layer(l, a);
}

Status lower_Rnn(Lowering& l) {
  static constexpr RnnActivation kDefaults[] = {RnnActivation::kTanh};
  RecurrentArguments a;
  SINTER_RETURN_IF_ERROR(set_operands(l, l.attrs<RnnAttrs>(), 1, kDefaults, &a));
  a.cell = Cell::kRnn;
  return add_layer(l, a);
}

}  // namespace sinter::cuda
