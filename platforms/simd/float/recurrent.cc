// Gru, and Lstm whose weights are not constant (lstm.cc has the others), with their usual activations: the
// inflow from x is one product over all steps, then every sample of every direction goes through its steps
// separately; each step is a matrix-vector product.
#include "platforms/simd/recurrent_layout.h"
#include "platforms/simd/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/recurrent.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/dot-inl.h"

#ifndef SINTER_SIMD_RECURRENT_ONCE
#define SINTER_SIMD_RECURRENT_ONCE
namespace sinter::simd {

// The operands of one sample in one direction.
struct Walk {
  const float* inflow;  // step t is at inflow + t * inflow_step: gates * hidden numbers, biases included
  const float* r;       // [gates * hidden, hidden]
  const float* bias;    // Gru: the hidden gate's recurrent bias, or null
  float *h, *c, *sums;  // state (kept from step to step) and gates * hidden numbers of scratch
  float* y;             // step t is at y + t * y_step; or null
  int64_t inflow_step, y_step, length, hidden;
  bool reverse, linear_before_reset;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Computes y[i] = base[i] + rows[i] . x for `rows` rows of n numbers; base may be null, or y itself.
void multiply_rows(const float* matrix, size_t rows, size_t n, const float* x, const float* base, float* y) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const size_t whole = n / lanes * lanes, rest = n - whole;
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    float sums[4];
    four_dots(matrix + r * n, n, x, sums);
    for (size_t k = 0; k < 4; ++k) y[r + k] = (base != nullptr ? base[r + k] : 0.0f) + sums[k];
  }
  for (; r < rows; ++r) {
    const float* m = matrix + r * n;
    V s = hn::Zero(d);
    for (size_t i = 0; i < whole; i += lanes) s = hn::MulAdd(hn::LoadU(d, m + i), hn::LoadU(d, x + i), s);
    if (rest > 0) s = hn::MulAdd(hn::LoadN(d, m + whole, rest), hn::LoadN(d, x + whole, rest), s);
    y[r] = (base != nullptr ? base[r] : 0.0f) + hn::ReduceSum(d, s);
  }
}

void walk_lstm(const Walk& w) {
  const F d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(w.hidden);
  for (int64_t step = 0; step < w.length; ++step) {
    const int64_t t = w.reverse ? w.length - 1 - step : step;
    multiply_rows(w.r, 4 * n, n, w.h, w.inflow + t * w.inflow_step, w.sums);
    for (size_t i = 0; i < n; i += lanes) {
      const size_t count = n - i < lanes ? n - i : lanes;
      const float* s = w.sums + i;
      const V in = sigmoid(hn::LoadN(d, s, count)), out = sigmoid(hn::LoadN(d, s + n, count));
      const V forget = sigmoid(hn::LoadN(d, s + 2 * n, count)), cell = tanh(hn::LoadN(d, s + 3 * n, count));
      const V c = hn::MulAdd(forget, hn::LoadN(d, w.c + i, count), hn::Mul(in, cell));
      const V h = hn::Mul(out, tanh(c));
      hn::StoreN(c, d, w.c + i, count);
      hn::StoreN(h, d, w.h + i, count);
      if (w.y != nullptr) hn::StoreN(h, d, w.y + t * w.y_step + i, count);
    }
  }
}

void walk_gru(const Walk& w) {
  const F d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(w.hidden);
  float* hidden = w.sums + 2 * n;
  for (int64_t step = 0; step < w.length; ++step) {
    const int64_t t = w.reverse ? w.length - 1 - step : step;
    const float* inflow = w.inflow + t * w.inflow_step;
    multiply_rows(w.r, 2 * n, n, w.h, inflow, w.sums);
    // The reset gate acts on the state, or on its product. w.c holds the state after the gate.
    if (w.linear_before_reset) multiply_rows(w.r + 2 * n * n, n, n, w.h, w.bias, hidden);
    for (size_t i = 0; i < n; i += lanes) {
      const size_t count = n - i < lanes ? n - i : lanes;
      const V reset = sigmoid(hn::LoadN(d, w.sums + n + i, count));
      float* at = w.linear_before_reset ? hidden + i : w.c + i;
      const float* from = w.linear_before_reset ? hidden + i : w.h + i;
      hn::StoreN(hn::Mul(reset, hn::LoadN(d, from, count)), d, at, count);
    }
    if (!w.linear_before_reset) multiply_rows(w.r + 2 * n * n, n, n, w.c, w.bias, hidden);
    for (size_t i = 0; i < n; i += lanes) {
      const size_t count = n - i < lanes ? n - i : lanes;
      const V update = sigmoid(hn::LoadN(d, w.sums + i, count));
      const V fresh = tanh(hn::Add(hn::LoadN(d, hidden + i, count), hn::LoadN(d, inflow + 2 * n + i, count)));
      const V old = hn::LoadN(d, w.h + i, count);
      const V h = hn::MulAdd(update, hn::Sub(old, fresh), fresh);
      hn::StoreN(h, d, w.h + i, count);
      if (w.y != nullptr) hn::StoreN(h, d, w.y + t * w.y_step + i, count);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(multiply_rows);
HWY_EXPORT(walk_lstm);
HWY_EXPORT(walk_gru);

// Counts the floats of the workspace: inflow [directions, steps * batch, gate_rows], summed biases
// [directions, gate_rows], and per sample and direction h, c and sums.
int64_t inflow_floats(const RecurrentLayout& l) { return l.directions * l.steps * l.batch * l.gate_rows(); }
int64_t unit_floats(const RecurrentLayout& l) { return l.gate_rows() + 2 * l.hidden; }

Status workspace_bytes(const RecurrentLayout& l, size_t* bytes) {
  int64_t n = l.directions * l.gate_rows(), flow = 0, units = 0;
  SINTER_RETURN_UNLESS(checked_mul(l.steps, l.batch, &flow) && checked_mul(flow, n, &flow) &&
                           checked_mul(l.directions * l.batch, unit_floats(l), &units) &&
                           checked_add(n, flow, &n) && checked_add(n, units, &n) &&
                           checked_mul<int64_t>(n, sizeof(float), &n),
                       too_much_workspace());
  *bytes = static_cast<size_t>(n);
  return ok_status();
}

// Checks for the usual activations, in every direction; sequence_lens (int32) alone is not floating-point.
template <class Attrs>
Status accept_usual(const OpCall& call, std::initializer_list<RnnActivation> usual) {
  const auto& a = call.attrs<Attrs>();
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i) && i != 4) SINTER_RETURN_IF_ERROR(check_float_dense(call.in(i)));
  for (const TensorView& t : call.outputs)
    if (t.present()) SINTER_RETURN_IF_ERROR(check_float_dense(t));
  SINTER_RETURN_UNLESS(!call.has_input(4) || call.in(4).dense(), unsupported("sequence_lens is not dense"));
  SINTER_RETURN_UNLESS(a.clip == 0, unsupported("the simd kernel does not clip"));
  const auto each = static_cast<int>(usual.size());
  for (int i = 0; i < a.activations.size(); ++i)
    SINTER_RETURN_UNLESS(a.activations[i] == static_cast<int64_t>(usual.begin()[i % each]),
                         unsupported("the simd kernel has the default activations only"));
  return ok_status();
}

Status run_recurrent(const OpCall& call, RunContext& context, const RecurrentLayout& l, bool lstm,
                     bool linear_before_reset) {
  const auto* lengths = call.has_input(4) ? call.in(4).as<const int32_t>() : nullptr;
  SINTER_RETURN_IF_ERROR(check_lengths(lengths, l));
  const auto input = [&](size_t i) { return call.has_input(i) ? call.in(i).as<const float>() : nullptr; };
  const auto output = [&](size_t i) { return call.has_output(i) ? call.out(i).as<float>() : nullptr; };
  const int64_t row = l.gate_rows(), rows = l.steps * l.batch;
  auto* inflow = reinterpret_cast<float*>(context.workspace.data());
  float* biases = inflow + inflow_floats(l);
  float* units = biases + l.directions * row;

  const float* bias = input(3);
  for (int64_t i = 0; i < l.directions * row; ++i) {
    const int64_t d = i / row, at = i % row;
    biases[i] = bias == nullptr ? 0.0f : bias[2 * d * row + at];
    // The Gru's hidden gate takes its recurrent bias later.
    if (bias != nullptr && (lstm || at < 2 * l.hidden)) biases[i] += bias[(2 * d + 1) * row + at];
  }
  const int64_t block = 64, blocks = divide_up(row, block);  // gates of one piece of work
  parallel_for(context.threads, l.directions * rows * blocks,
               std::max<int64_t>(16384 / std::max<int64_t>(block * l.input, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t piece = begin; piece < end; ++piece) {
                   // The outermost loop is over blocks of rows of W, which stay in the cache for all steps.
                   const int64_t x_row = piece % rows, d = piece / rows / blocks,
                                 first = piece / rows % blocks * block;
                   HWY_DYNAMIC_DISPATCH(multiply_rows)
                   (input(1) + (d * row + first) * l.input, static_cast<size_t>(std::min(block, row - first)),
                    static_cast<size_t>(l.input), input(0) + x_row * l.input, biases + d * row + first,
                    inflow + (d * rows + x_row) * row + first);
                 }
               });
  parallel_for(context.threads, l.directions * l.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t d = unit / l.batch, b = unit % l.batch, state = l.state_row(d, b) * l.hidden;
      Walk w;
      w.h = units + unit * unit_floats(l), w.c = w.h + l.hidden, w.sums = w.c + l.hidden;
      w.length = lengths != nullptr ? lengths[b] : l.steps;
      w.hidden = l.hidden;
      for (int64_t i = 0; i < l.hidden; ++i) {
        w.h[i] = input(5) != nullptr && w.length > 0 ? input(5)[state + i] : 0.0f;
        w.c[i] = lstm && input(6) != nullptr && w.length > 0 ? input(6)[state + i] : 0.0f;
      }
      w.inflow = inflow + (d * rows + l.x_row(0, b)) * row;
      w.inflow_step = (l.x_row(1, 0) - l.x_row(0, 0)) * row;
      w.r = input(2) + d * row * l.hidden;
      w.bias = bias != nullptr ? bias + (2 * d + 1) * row + 2 * l.hidden : nullptr;
      w.y = output(0) != nullptr ? output(0) + l.y_row(0, d, b) * l.hidden : nullptr;
      w.y_step = (l.y_row(1, 0, 0) - l.y_row(0, 0, 0)) * l.hidden;
      w.reverse = l.reverse(d);
      w.linear_before_reset = linear_before_reset;
      if (lstm)
        HWY_DYNAMIC_DISPATCH(walk_lstm)(w);
      else
        HWY_DYNAMIC_DISPATCH(walk_gru)(w);
      for (int64_t t = w.length; w.y != nullptr && t < l.steps; ++t)
        for (int64_t i = 0; i < l.hidden; ++i) w.y[t * w.y_step + i] = 0.0f;
      for (int64_t i = 0; i < l.hidden; ++i) {
        if (output(1) != nullptr) output(1)[state + i] = w.h[i];
        if (lstm && output(2) != nullptr) output(2)[state + i] = w.c[i];
      }
    }
  });
  return ok_status();
}

Status accept_lstm(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.attrs<LstmAttrs>().input_forget == 0 && !call.has_input(7),
                       unsupported("the simd kernel has no peepholes and no coupled gates"));
  return accept_usual<LstmAttrs>(call, {RnnActivation::kSigmoid, RnnActivation::kTanh, RnnActivation::kTanh});
}
Status lstm_workspace(const OpCall& call, int, size_t* bytes) {
  return workspace_bytes(recurrent_layout<LstmAttrs>(call, 4), bytes);
}
Status run_lstm(const OpCall& call, RunContext& context) {
  return run_recurrent(call, context, recurrent_layout<LstmAttrs>(call, 4), true, false);
}

Status accept_gru(const OpCall& call) {
  return accept_usual<GruAttrs>(call, {RnnActivation::kSigmoid, RnnActivation::kTanh});
}
Status gru_workspace(const OpCall& call, int, size_t* bytes) {
  return workspace_bytes(recurrent_layout<GruAttrs>(call, 3), bytes);
}
Status run_gru(const OpCall& call, RunContext& context) {
  return run_recurrent(call, context, recurrent_layout<GruAttrs>(call, 3), false,
                       call.attrs<GruAttrs>().linear_before_reset != 0);
}

}  // namespace

const Kernel kLstmKernel = {Op::kLstm, nullptr, lstm_workspace, run_lstm, accept_lstm};
const Kernel kGruKernel = {Op::kGru, nullptr, gru_workspace, run_gru, accept_gru};

}  // namespace sinter::simd
#endif  // HWY_ONCE
