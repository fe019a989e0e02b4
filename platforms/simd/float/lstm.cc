// Lstm with constant weights, packed. A panel has the weights of as many hidden units as a vector has lanes:
// for the bias, for every number of x, then for every number of h, one vector of each gate. A step then reads
// its weights in the order in which they are stored, and a unit's gates are computed together.
#include "platforms/simd/recurrent_layout.h"
#include "platforms/simd/table.h"
#include "platforms/simd/variant.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/lstm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

#ifndef SINTER_SIMD_LSTM_ONCE
#define SINTER_SIMD_LSTM_ONCE
namespace sinter::simd {

constexpr int64_t kGates = 4, kLstmLanes = 16;  // units are padded to the longest vector

// The operands of one step of one sample in one direction.
struct LstmStep {
  const float* x;        // the step's input, or null where `inflow` has its part
  const float* inflow;   // one vector of each gate for every panel, biases included
  const float* weights;  // those of the direction
  const float* h;        // the state before the step
  float *next, *c, *y;   // the state after it, padded; y may be null
  int64_t input, hidden;
};
// The inflow of the gates from `rows` inputs.
struct LstmInflow {
  const float* x;
  float* y;
  const float* weights;
  int64_t x_step, y_step, rows, input, hidden;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

struct GateSums {
  V in, out, forget, cell;
};
HWY_INLINE GateSums load_gates(const float* p) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  return {hn::LoadU(d, p), hn::LoadU(d, p + lanes), hn::LoadU(d, p + 2 * lanes), hn::LoadU(d, p + 3 * lanes)};
}
HWY_INLINE void add_gates(GateSums& s, const float* weights, V x) {
  const GateSums w = load_gates(weights);
  s.in = hn::MulAdd(w.in, x, s.in), s.out = hn::MulAdd(w.out, x, s.out);
  s.forget = hn::MulAdd(w.forget, x, s.forget), s.cell = hn::MulAdd(w.cell, x, s.cell);
}
// Adds the products of n numbers with their weights, even and odd ones apart, so that sums do not wait for
// each other.
HWY_INLINE void add_products(GateSums& s, const float* weights, const float* x, int64_t n) {
  const auto row = static_cast<int64_t>(kGates * hn::Lanes(F()));
  GateSums odd = {hn::Zero(F()), hn::Zero(F()), hn::Zero(F()), hn::Zero(F())};
  int64_t i = 0;
  for (; i + 2 <= n; i += 2, weights += 2 * row) {
    add_gates(s, weights, set(x[i]));
    add_gates(odd, weights + row, set(x[i + 1]));
  }
  if (i < n) add_gates(s, weights, set(x[i]));
  s.in = hn::Add(s.in, odd.in), s.out = hn::Add(s.out, odd.out);
  s.forget = hn::Add(s.forget, odd.forget), s.cell = hn::Add(s.cell, odd.cell);
}

// Computes units first .. end - 1, which fill vectors.
void lstm_units(const LstmStep& w, int64_t first, int64_t end) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), row = kGates * lanes;
  for (int64_t unit = first; unit < end && unit < w.hidden; unit += lanes) {
    const float* panel = w.weights + unit * kGates * (1 + w.input + w.hidden);
    GateSums s = load_gates(w.x != nullptr ? panel : w.inflow + unit * kGates);
    if (w.x != nullptr) add_products(s, panel + row, w.x, w.input);
    add_products(s, panel + row * (1 + w.input), w.h, w.hidden);
    const V c = hn::MulAdd(sigmoid(s.forget), hn::LoadU(d, w.c + unit), hn::Mul(sigmoid(s.in), tanh(s.cell)));
    const V h = hn::Mul(sigmoid(s.out), tanh(c));
    hn::StoreU(c, d, w.c + unit);
    hn::StoreU(h, d, w.next + unit);
    if (w.y == nullptr) continue;
    if (unit + lanes <= w.hidden)
      hn::StoreU(h, d, w.y + unit);
    else
      hn::StoreN(h, d, w.y + unit, static_cast<size_t>(w.hidden - unit));
  }
}

void lstm_inflow(const LstmInflow& w, int64_t first, int64_t end) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), row = kGates * lanes;
  const auto store = [=](const GateSums& s, float* y) SINTER_SIMD_LAMBDA {
    hn::StoreU(s.in, d, y), hn::StoreU(s.out, d, y + lanes);
    hn::StoreU(s.forget, d, y + 2 * lanes), hn::StoreU(s.cell, d, y + 3 * lanes);
  };
  for (int64_t unit = first; unit < end && unit < w.hidden; unit += lanes) {
    const float* panel = w.weights + unit * kGates * (1 + w.input + w.hidden);
    const float* x = w.x;
    float* y = w.y + unit * kGates;
    int64_t r = 0;
    for (; r + 2 <= w.rows; r += 2, x += 2 * w.x_step, y += 2 * w.y_step) {
      GateSums a = load_gates(panel), b = a;
      for (int64_t i = 0; i < w.input; ++i) {
        add_gates(a, panel + (1 + i) * row, set(x[i]));
        add_gates(b, panel + (1 + i) * row, set(x[w.x_step + i]));
      }
      store(a, y);
      store(b, y + w.y_step);
    }
    if (r == w.rows) continue;
    GateSums a = load_gates(panel);
    for (int64_t i = 0; i < w.input; ++i) add_gates(a, panel + (1 + i) * row, set(x[i]));
    store(a, y);
  }
}

// Packs `count` rows of n numbers, the first columns of a panel's gate; the panel is zero before.
HWY_INLINE void pack_gate(const float* rows, int64_t count, int64_t n, float* y) {
  const auto step = static_cast<int64_t>(kGates * hn::Lanes(F()));
  for (int64_t i = 0; i < n; ++i, y += step)
    for (int64_t lane = 0; lane < count; ++lane) y[lane] = rows[lane * n + i];
}

// Packs rows of W [4 hidden, input], R [4 hidden, hidden] and B [8 hidden] (or null) of a direction to
// panels.
void pack_lstm_panels(const float* w, const float* r, const float* bias, int64_t input, int64_t hidden,
                      float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F())), row = kGates * lanes;
  const int64_t padded = (hidden + kLstmLanes - 1) / kLstmLanes * kLstmLanes,
                size = row * (1 + input + hidden);
  for (int64_t unit = 0; unit < padded; unit += lanes, y += size) {
    const int64_t count = hidden - unit < lanes ? hidden - unit : lanes;
    if (count < lanes || bias == nullptr)
      for (int64_t i = 0; i < size; ++i) y[i] = 0;
    for (int64_t gate = 0; gate < kGates; ++gate) {
      const int64_t at = gate * hidden + unit;
      float* to = y + gate * lanes;
      for (int64_t lane = 0; bias != nullptr && lane < count; ++lane)
        to[lane] = bias[at + lane] + bias[kGates * hidden + at + lane];
      pack_gate(w + at * input, count, input, to + row);
      pack_gate(r + at * hidden, count, hidden, to + row * (1 + input));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(lstm_units);
HWY_EXPORT(lstm_inflow);
HWY_EXPORT(pack_lstm_panels);

constexpr int64_t kStepThreads = 25600;  // weights of a step (100 KB) from which threads share it
constexpr int64_t kInflowRows = 16;      // inputs of one piece of work

int64_t padded_units(const RecurrentLayout& l) { return divide_up(l.hidden, kLstmLanes) * kLstmLanes; }
// A single input is multiplied within its step.
bool has_inflow(const RecurrentLayout& l) { return l.steps * l.batch > 1; }

// Counts the floats of the workspace: inflow [directions, steps * batch, gates of padded units], and for
// every sample and direction h before and after a step, and c.
bool lstm_floats(const RecurrentLayout& l, int64_t* packed, int64_t* workspace) {
  const int64_t padded = padded_units(l), rows = l.directions * l.batch;
  int64_t depth = 0, flow = 0, state = 0;
  return checked_add(l.input + 1, l.hidden, &depth) && checked_mul(l.directions * kGates, padded, packed) &&
         checked_mul(*packed, depth, packed) && checked_mul<int64_t>(*packed, sizeof(float), packed) &&
         checked_mul(has_inflow(l) ? l.steps : 0, rows, &flow) && checked_mul(flow, kGates * padded, &flow) &&
         checked_mul(rows, 3 * padded, &state) && checked_add(flow, state, workspace) &&
         checked_mul<int64_t>(*workspace, sizeof(float), workspace);
}

struct LstmRun {
  RecurrentLayout l;
  const float *x, *weights, *h0, *c0;
  float *y, *h_end, *c_end, *inflow, *states;
  const int32_t* lengths;
  int64_t padded, direction_weights;

  int64_t length(int64_t b) const { return lengths != nullptr ? lengths[b] : l.steps; }
  float* state(int64_t d, int64_t b) const { return states + (d * l.batch + b) * 3 * padded; }

  void begin(int64_t d, int64_t b) const {
    float* at = state(d, b);
    const int64_t from = l.state_row(d, b) * l.hidden;
    for (int64_t i = 0; i < 3 * padded; ++i) at[i] = 0;
    if (length(b) == 0) return;
    for (int64_t i = 0; i < l.hidden; ++i) {
      if (h0 != nullptr) at[i] = h0[from + i];
      if (c0 != nullptr) at[2 * padded + i] = c0[from + i];
    }
  }
  // Computes units first .. end - 1 of a step. h alternates between two places.
  void step(int64_t d, int64_t b, int64_t number, int64_t first, int64_t end) const {
    if (number >= length(b)) return;
    const int64_t t = l.reverse(d) ? length(b) - 1 - number : number, row = l.x_row(t, b);
    float* at = state(d, b);
    const LstmStep w = {has_inflow(l) ? nullptr : x,
                        has_inflow(l) ? inflow + (d * l.steps * l.batch + row) * kGates * padded : nullptr,
                        weights + d * direction_weights,
                        at + number % 2 * padded,
                        at + (number + 1) % 2 * padded,
                        at + 2 * padded,
                        y != nullptr ? y + l.y_row(t, d, b) * l.hidden : nullptr,
                        l.input,
                        l.hidden};
    HWY_DYNAMIC_DISPATCH(lstm_units)(w, first, end);
  }
  void finish(int64_t d, int64_t b) const {
    const float* h = state(d, b) + length(b) % 2 * padded;
    const float* c = state(d, b) + 2 * padded;
    const int64_t to = l.state_row(d, b) * l.hidden;
    for (int64_t t = length(b); y != nullptr && t < l.steps; ++t)
      for (int64_t i = 0; i < l.hidden; ++i) y[l.y_row(t, d, b) * l.hidden + i] = 0;
    for (int64_t i = 0; i < l.hidden; ++i) {
      if (h_end != nullptr) h_end[to + i] = h[i];
      if (c_end != nullptr) c_end[to + i] = c[i];
    }
  }

  void add_inflow(ThreadPool* threads) const {
    const int64_t rows = l.steps * l.batch, pieces = divide_up(rows, kInflowRows),
                  blocks = padded / kLstmLanes;
    const int64_t work = kLstmLanes * kGates * l.input * std::min(rows, kInflowRows);
    parallel_for(threads, l.directions * blocks * pieces,
                 std::max<int64_t>(32768 / std::max<int64_t>(work, 1), 1), [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % pieces * kInflowRows, unit = i / pieces % blocks * kLstmLanes,
                                   d = i / pieces / blocks;
                     HWY_DYNAMIC_DISPATCH(lstm_inflow)
                     ({x + first * l.input, inflow + (d * rows + first) * kGates * padded,
                       weights + d * direction_weights, l.input, kGates * padded,
                       std::min(kInflowRows, rows - first), l.input, l.hidden},
                      unit, unit + kLstmLanes);
                   }
                 });
  }
};

Fit takes_lstm(const OpCall& call, int, VariantNeeds* needs) {
  if (!call.in(2).constant || (call.has_input(3) && !call.in(3).constant)) return Fit::kNever;
  const RecurrentLayout l = recurrent_layout<LstmAttrs>(call, kGates);
  int64_t bytes = 0, workspace = 0;
  if (!lstm_floats(l, &bytes, &workspace)) return Fit::kNever;
  const bool has_bias = call.has_input(3);
  needs->packing = form_of(bytes, has_bias ? 0b1110u : 0b110u, {l.directions, l.input, l.hidden, has_bias});
  needs->workspace = static_cast<size_t>(workspace);
  return Fit::kEverywhere;
}

void pack_lstm_weights(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  const RecurrentLayout l = recurrent_layout<LstmAttrs>(call, kGates);
  const auto* bias = call.has_input(3) ? call.in(3).as<const float>() : nullptr;
  const int64_t size = kGates * padded_units(l) * (1 + l.input + l.hidden), rows = l.gate_rows();
  parallel_for(threads, l.directions, 1, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) HWY_DYNAMIC_DISPATCH(pack_lstm_panels)
    (call.in(1).as<const float>() + d * rows * l.input, call.in(2).as<const float>() + d * rows * l.hidden,
     bias != nullptr ? bias + 2 * d * rows : nullptr, l.input, l.hidden,
     reinterpret_cast<float*>(packed) + d * size);
  });
}

Status run_lstm_panels(const VariantStep& step, const OpCall& call, RunContext& context) {
  const auto input = [&](size_t i) { return call.has_input(i) ? call.in(i).as<const float>() : nullptr; };
  const auto output = [&](size_t i) { return call.has_output(i) ? call.out(i).as<float>() : nullptr; };
  LstmRun run;
  const RecurrentLayout& l = run.l = recurrent_layout<LstmAttrs>(call, kGates);
  run.lengths = call.has_input(4) ? call.in(4).as<const int32_t>() : nullptr;
  SINTER_RETURN_IF_ERROR(check_lengths(run.lengths, l));
  run.x = input(0), run.weights = reinterpret_cast<const float*>(step.packed), run.h0 = input(5),
  run.c0 = input(6);
  run.y = output(0), run.h_end = output(1), run.c_end = output(2);
  run.padded = padded_units(l);
  run.direction_weights = kGates * run.padded * (1 + l.input + l.hidden);
  run.inflow = reinterpret_cast<float*>(context.workspace.data());
  run.states = run.inflow + (has_inflow(l) ? l.directions * l.steps * l.batch * kGates * run.padded : 0);
  if (has_inflow(l)) run.add_inflow(context.threads);

  const int64_t walks = l.directions * l.batch;
  const int64_t depth = has_inflow(l) ? l.hidden : l.input + l.hidden,
                step_weights = kGates * run.padded * depth;
  if (step_weights < kStepThreads || walks >= threads_of(context.threads)) {
    parallel_for(context.threads, walks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t d = i / l.batch, b = i % l.batch;
        run.begin(d, b);
        for (int64_t number = 0; number < run.length(b); ++number) run.step(d, b, number, 0, l.hidden);
        run.finish(d, b);
      }
    });
    return ok_status();
  }
  // Threads share every step: all samples of a block of units, then the next block.
  const int64_t blocks = run.padded / kLstmLanes;
  for (int64_t i = 0; i < walks; ++i) run.begin(i / l.batch, i % l.batch);
  for (int64_t number = 0; number < l.steps; ++number)
    parallel_for(context.threads, blocks * walks, std::max<int64_t>(8192 / (kGates * kLstmLanes * depth), 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t b = i % l.batch, unit = i / l.batch % blocks * kLstmLanes,
                                   d = i / l.batch / blocks;
                     run.step(d, b, number, unit, unit + kLstmLanes);
                   }
                 });
  for (int64_t i = 0; i < walks; ++i) run.finish(i / l.batch, i % l.batch);
  return ok_status();
}

}  // namespace

const Variant f32_lstm = {.takes = takes_lstm, .pack = pack_lstm_weights, .run = run_lstm_panels};

}  // namespace sinter::simd
#endif  // HWY_ONCE
