#include "runtime/kernels/recurrent.h"

#include <cmath>

namespace sinter::recurrent {
namespace {

// The activation functions that read alpha and beta, and the defaults of these.
struct Parameters {
  bool alpha, beta;
  double alpha_default, beta_default;
};
constexpr Parameters kParameters[] = {
    {false, false, 0, 0},    // sigmoid
    {false, false, 0, 0},    // tanh
    {false, false, 0, 0},    // relu
    {true, true, 1, 0},      // affine
    {true, false, 0.01, 0},  // leaky relu
    {true, false, 1, 0},     // thresholded relu
    {true, true, 1, 1},      // scaled tanh
    {true, true, 0.2, 0.5},  // hard sigmoid
    {true, false, 1, 0},     // elu
    {false, false, 0, 0},    // softsign
    {false, false, 0, 0},    // softplus
};
constexpr int64_t kFunctions = sizeof(kParameters) / sizeof(kParameters[0]);

// Functions consume alphas and betas in order. A function for which none is left has the default.
Status resolve_activations(const Settings& s, Layout* l) {
  const int each = static_cast<int>(s.defaults.size());
  const int count = each * static_cast<int>(l->directions);
  SINTER_RETURN_UNLESS(s.activations.empty() || s.activations.size() == count,
                       invalid("%a activations are given where %b are needed", s.activations.size(), count));
  int alphas = 0, betas = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t code =
        s.activations.empty() ? static_cast<int64_t>(s.defaults[i % each]) : s.activations[i];
    SINTER_RETURN_IF_ERROR(check_code(code, kFunctions));
    const Parameters& p = kParameters[code];
    Activation& a = l->activations[i];
    a = {static_cast<RnnActivation>(code), p.alpha_default, p.beta_default};
    if (p.alpha && alphas < s.alpha.size()) a.alpha = s.alpha[alphas];
    if (p.beta && betas < s.beta.size()) a.beta = s.beta[betas];
    alphas += p.alpha, betas += p.beta;
  }
  SINTER_RETURN_UNLESS((alphas == 0 || s.alpha.size() <= alphas) && (betas == 0 || s.beta.size() <= betas),
                       invalid("more alphas or betas are given than the activations take"));
  l->per_direction = each;
  return ok_status();
}

Status check_operand(const OpCall& call, size_t i, std::initializer_list<int64_t> dims) {
  if (!call.has_input(i)) return ok_status();
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, i, 0));
  const auto shape = call.in(i).shape();
  SINTER_RETURN_UNLESS(std::equal(shape.begin(), shape.end(), dims.begin(), dims.end()),
                       invalid("it does not have the shape that X, W and hidden_size require").of_input(i));
  return ok_status();
}

}  // namespace

double apply(const Activation& a, double x) {
  switch (a.fn) {
    case RnnActivation::kSigmoid:
      return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
    case RnnActivation::kTanh:
      return std::tanh(x);
    case RnnActivation::kRelu:
      return x < 0 ? 0 : x;
    case RnnActivation::kAffine:
      return a.alpha * x + a.beta;
    case RnnActivation::kLeakyRelu:
      return x < 0 ? a.alpha * x : x;
    case RnnActivation::kThresholdedRelu:
      return x <= a.alpha ? 0 : x;
    case RnnActivation::kScaledTanh:
      return a.alpha * std::tanh(a.beta * x);
    case RnnActivation::kHardSigmoid: {
      const double v = a.alpha * x + a.beta;
      return v < 0 ? 0 : v > 1 ? 1 : v;
    }
    case RnnActivation::kElu:
      return x < 0 ? a.alpha * std::expm1(x) : x;
    case RnnActivation::kSoftsign:
      return x / (1 + std::fabs(x));
    case RnnActivation::kSoftplus:
      return std::log1p(std::exp(-std::fabs(x))) + (x < 0 ? 0 : x);
  }
  return x;
}

Status set_sizes(const OpCall& call, const LayerSettings& s, Layout* l) {
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_code(s.direction, 3));
  SINTER_RETURN_IF_ERROR(check_code(s.layout, 2));
  for (const TensorView& operand : call.inputs)
    if (operand.present()) SINTER_RETURN_IF_ERROR(linear::check_dims(operand));
  l->batch_first = s.layout == 1;
  l->steps = x.dims[l->batch_first ? 1 : 0], l->batch = x.dims[l->batch_first ? 0 : 1], l->input = x.dims[2];
  l->hidden = s.hidden_size, l->gates = s.gates;
  l->directions = s.direction == static_cast<int64_t>(RnnDirection::kBidirectional) ? 2 : 1;
  l->first_is_reverse = s.direction == static_cast<int64_t>(RnnDirection::kReverse);
  SINTER_RETURN_UNLESS(l->hidden >= 1 && l->hidden < (int64_t{1} << 40),
                       invalid("hidden_size %a is out of range", l->hidden));
  return ok_status();
}

Status resolve(const OpCall& call, const Settings& s, Layout* l) {
  const TensorView &x = call.in(0), &w = call.in(1), &r = call.in(2);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_UNLESS(x.rank == 3 && w.rank == 3 && r.rank == 3,
                       invalid("X, W and R must have three axes each"));
  SINTER_RETURN_UNLESS(s.clip >= 0, invalid("clip is negative or not a number"));
  l->clip = s.clip == 0 ? kInfinity : s.clip;
  SINTER_RETURN_IF_ERROR(set_sizes(call, s, l));
  SINTER_RETURN_IF_ERROR(resolve_activations(s, l));
  const int64_t d = l->directions, h = l->hidden, rows = s.gates * h;
  const int64_t first = l->batch_first ? l->batch : d, second = l->batch_first ? d : l->batch;
  SINTER_RETURN_IF_ERROR(check_operand(call, 1, {d, rows, l->input}));
  SINTER_RETURN_IF_ERROR(check_operand(call, 2, {d, rows, h}));
  SINTER_RETURN_IF_ERROR(check_operand(call, 3, {d, 2 * rows}));
  SINTER_RETURN_IF_ERROR(check_operand(call, 5, {first, second, h}));
  SINTER_RETURN_IF_ERROR(check_operand(call, 6, {first, second, h}));
  SINTER_RETURN_IF_ERROR(check_operand(call, 7, {d, 3 * h}));
  if (call.has_input(4))
    SINTER_RETURN_UNLESS(
        call.in(4).dtype == DType::kInt32 && call.in(4).rank == 1 && call.in(4).dims[0] == l->batch,
        invalid("sequence_lens is not one int32 per sample"));
  return ok_status();
}

Status give_results(OpCall& call, const Layout& l, DType y, DType final_state) {
  const int64_t y_steps_first[] = {l.steps, l.directions, l.batch, l.hidden};
  const int64_t y_batch_first[] = {l.batch, l.steps, l.directions, l.hidden};
  SINTER_RETURN_IF_ERROR(give_output(call, 0, y, l.batch_first ? y_batch_first : y_steps_first));
  const int64_t state[] = {l.batch_first ? l.batch : l.directions, l.batch_first ? l.directions : l.batch,
                           l.hidden};
  SINTER_RETURN_IF_ERROR(give_output(call, 1, final_state, state));
  return give_output(call, 2, final_state, state);
}

Status infer_recurrent(OpCall& call, const Settings& s) {
  Layout l;
  SINTER_RETURN_IF_ERROR(resolve(call, s, &l));
  return give_results(call, l, call.in(0).dtype, call.in(0).dtype);
}

Status recurrent_workspace(const OpCall& call, const Settings& s, int threads, size_t* bytes) {
  Layout l;
  SINTER_RETURN_IF_ERROR(resolve(call, s, &l));
  int64_t n = 0;
  SINTER_RETURN_UNLESS(
      checked_add(l.input, (l.gates + 3) * l.hidden, &n) && checked_mul<int64_t>(n, sizeof(double), &n) &&
          checked_add<int64_t>(n, kBufferAlignment, &n) &&
          checked_mul<size_t>(align_up(static_cast<size_t>(n) - kBufferAlignment, kBufferAlignment),
                              static_cast<size_t>(std::max(threads, 1)), bytes),
      too_much_workspace());
  return ok_status();
}

Status check_lengths(const OpCall& call, const Layout& l, size_t operand) {
  if (!call.has_input(operand)) return ok_status();
  for (int64_t b = 0; b < l.batch; ++b) {
    const int64_t length = call.in(operand).as<int32_t>()[b];
    SINTER_RETURN_UNLESS(
        length >= 0 && length <= l.steps,
        error(Code::kOutOfRange, "a sequence has length %a, the input %b steps", length, l.steps));
  }
  return ok_status();
}

}  // namespace sinter::recurrent
