// The common parts of Lstm, Gru and Rnn: shapes, activation functions, and the walk over directions, samples
// and steps.
//
// A thread's unit of work is one sample in one direction. State and gates are kept in double over the whole
// sequence; only results are rounded.
#pragma once

#include "runtime/core/op_enums.h"
#include "runtime/kernels/linear.h"

namespace sinter::recurrent {

struct Activation {
  RnnActivation fn = RnnActivation::kSigmoid;
  double alpha = 0, beta = 0;
};
double apply(const Activation& a, double x);

// The attributes of every recurrent row, including the integer ones.
struct LayerSettings {
  int64_t hidden_size, direction, layout;
  int gates;  // rows of W and R per hidden unit
};

// The attributes that Lstm, Gru and Rnn have in common, and the properties of the row.
struct Settings : LayerSettings {
  const IntList& activations;
  const FloatList& alpha;
  const FloatList& beta;
  double clip;
  std::span<const RnnActivation> defaults;  // activations of one direction
  bool cell;                                // initial_c, P and Y_c exist
};

struct Layout {
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1;
  bool batch_first = false, first_is_reverse = false;
  int gates = 0, per_direction = 0;  // activations per direction
  double clip = kInfinity;
  Activation activations[6];  // per_direction for the first direction, then for the second

  bool reverse(int64_t direction) const { return first_is_reverse || direction == 1; }
  // Return the index of the first of a run of `input` (or hidden) elements.
  int64_t x_row(int64_t t, int64_t b) const { return batch_first ? b * steps + t : t * batch + b; }
  int64_t y_row(int64_t t, int64_t d, int64_t b) const {
    return batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
  int64_t state_row(int64_t d, int64_t b) const { return batch_first ? b * directions + d : d * batch + b; }
};

// Fills the sizes that X (rank 3) and the settings give, and checks these attributes and the operands' dims.
Status set_sizes(const OpCall& call, const LayerSettings& settings, Layout* layout);
// Sets the outputs' types and shapes: Y, then Y_h and Y_c.
Status give_results(OpCall& call, const Layout& layout, DType y, DType final_state);
// Checks all operands and attributes.
Status resolve(const OpCall& call, const Settings& settings, Layout* layout);
Status infer_recurrent(OpCall& call, const Settings& settings);
// Returns the scratch: per thread x, gates, h, c and one more row of hidden values.
Status recurrent_workspace(const OpCall& call, const Settings& settings, int threads, size_t* bytes);
// Checks 0 <= sequence_lens <= steps; `operand` is its place among the inputs.
Status check_lengths(const OpCall& call, const Layout& l, size_t operand = 4);

// The values of one direction, and the scratch of a step.
template <class T>
struct Unit {
  const T* w;         // [gates * hidden, input]
  const T* r;         // [gates * hidden, hidden]
  const T* bias;      // [2 * gates * hidden] or null
  const T* peephole;  // [3 * hidden] or null
  const Activation* act;
  double clip;
  int64_t input, hidden, gates;
  double *x, *sums, *h, *c, *spare;

  double from_x(int64_t row) const { return linear::dot(x, w + row * input, input); }
  double from_h(int64_t row, const double* state) const {
    return linear::dot(state, r + row * hidden, hidden);
  }
  double bias_w(int64_t row) const { return bias != nullptr ? static_cast<double>(bias[row]) : 0.0; }
  double bias_r(int64_t row) const { return bias_w(gates * hidden + row); }
  // Returns the inflow of a gate.
  double sum(int64_t row) const { return from_x(row) + from_h(row, h) + bias_w(row) + bias_r(row); }
  double activate(int which, double v) const {
    return apply(act[which], v < -clip ? -clip : v > clip ? clip : v);
  }
};

// Cell(unit) makes one step: reads x and h (and c), writes h (and c).
template <class T, class Cell>
void walk(const OpCall& call, const Layout& l, RunContext& context, Cell&& cell) {
  const int64_t row = l.gates * l.hidden;
  const int64_t values = l.input + row + 3 * l.hidden;
  const size_t each = align_up(static_cast<size_t>(values) * sizeof(double), kBufferAlignment);
  if (context.workspace.size() < each) return;
  const int64_t units = l.directions * l.batch;
  const int64_t threads = threads_of(context.threads);
  const int64_t slots =
      std::min(units, std::clamp<int64_t>(threads, 1, static_cast<int64_t>(context.workspace.size() / each)));
  const auto* lengths = call.has_input(4) ? call.in(4).as<int32_t>() : nullptr;

  const auto run_unit = [&](int64_t d, int64_t b, double* scratch) {
    Unit<T> u;
    u.w = call.in(1).as<T>() + d * row * l.input;
    u.r = call.in(2).as<T>() + d * row * l.hidden;
    u.bias = call.has_input(3) ? call.in(3).as<T>() + d * 2 * row : nullptr;
    u.peephole = call.has_input(7) ? call.in(7).as<T>() + d * 3 * l.hidden : nullptr;
    u.act = l.activations + d * l.per_direction;
    u.clip = l.clip, u.input = l.input, u.hidden = l.hidden, u.gates = l.gates;
    u.x = scratch, u.sums = u.x + l.input, u.h = u.sums + row, u.c = u.h + l.hidden, u.spare = u.c + l.hidden;
    const int64_t state = l.state_row(d, b) * l.hidden;
    const T* h0 = call.has_input(5) ? call.in(5).as<T>() + state : nullptr;
    const T* c0 = call.has_input(6) ? call.in(6).as<T>() + state : nullptr;
    for (int64_t i = 0; i < l.hidden; ++i) {
      u.h[i] = h0 != nullptr ? static_cast<double>(h0[i]) : 0.0;
      u.c[i] = c0 != nullptr ? static_cast<double>(c0[i]) : 0.0;
    }
    T* y = call.has_output(0) ? call.out(0).as<T>() : nullptr;
    const int64_t length = lengths != nullptr ? lengths[b] : l.steps;
    for (int64_t i = 0; length == 0 && i < l.hidden; ++i) u.h[i] = u.c[i] = 0;
    for (int64_t s = 0; s < length; ++s) {
      const int64_t t = l.reverse(d) ? length - 1 - s : s;
      const T* x = call.in(0).as<T>() + l.x_row(t, b) * l.input;
      for (int64_t i = 0; i < l.input; ++i) u.x[i] = static_cast<double>(x[i]);
      cell(u);
      for (int64_t i = 0; y != nullptr && i < l.hidden; ++i)
        y[l.y_row(t, d, b) * l.hidden + i] = static_cast<T>(u.h[i]);
    }
    for (int64_t t = length; y != nullptr && t < l.steps; ++t)
      for (int64_t i = 0; i < l.hidden; ++i) y[l.y_row(t, d, b) * l.hidden + i] = T{0};
    for (int64_t i = 0; i < l.hidden; ++i) {
      if (call.has_output(1)) call.out(1).as<T>()[state + i] = static_cast<T>(u.h[i]);
      if (call.has_output(2)) call.out(2).as<T>()[state + i] = static_cast<T>(u.c[i]);
    }
  };
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    auto* scratch = reinterpret_cast<double*>(context.workspace.data() + slot * static_cast<int64_t>(each));
    for (int64_t unit = begin; unit < end; ++unit) run_unit(unit / l.batch, unit % l.batch, scratch);
  });
}

}  // namespace sinter::recurrent
