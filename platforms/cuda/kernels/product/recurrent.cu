// The steps of Lstm, Gru and Rnn, in one launch, in which a block has one sample and direction and keeps its
// state in shared memory, or in a launch for each step, whose blocks share the hidden units.
//
// A warp computes a hidden unit at a time: the products of its rows of R with the state, then its gates.
#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/product/recurrent.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {
namespace {

template <class V>
SINTER_CALLED V activated(const RecurrentActivation& f, V x) {
  const V alpha = static_cast<V>(f.alpha), beta = static_cast<V>(f.beta);
  switch (static_cast<RnnActivation>(f.fn)) {
    case RnnActivation::kSigmoid: {
      const V e = m_exp(-m_fabs(x));
      return (x >= V(0) ? V(1) : e) / (V(1) + e);
    }
    case RnnActivation::kTanh:
      return m_tanh(x);
    case RnnActivation::kRelu:
      return x < V(0) ? V(0) : x;
    case RnnActivation::kAffine:
      return alpha * x + beta;
    case RnnActivation::kLeakyRelu:
      return x < V(0) ? alpha * x : x;
    case RnnActivation::kThresholdedRelu:
      return x <= alpha ? V(0) : x;
    case RnnActivation::kScaledTanh:
      return alpha * m_tanh(beta * x);
    case RnnActivation::kHardSigmoid: {
      const V v = alpha * x + beta;
      return v < V(0) ? V(0) : v > V(1) ? V(1) : v;
    }
    case RnnActivation::kElu:
      return x < V(0) ? alpha * m_expm1(x) : x;
    case RnnActivation::kSoftsign:
      return x / (V(1) + m_fabs(x));
    case RnnActivation::kSoftplus:
      return m_log1p(m_exp(-m_fabs(x))) + (x < V(0) ? V(0) : x);
  }
  return x;
}

// The operands of one sample in one direction. Room is V* or Shared<V>, of `hidden` numbers.
template <class V, class Room>
struct Unit {
  int direction, sample;
  int64_t x_row, y_row;  // of the step
  Room h, next, c, update, spare;
};

template <class V>
SINTER_DEVICE V load_at(const RecurrentArguments& a, const std::byte* p, int64_t i) {
  return load_float<V>(p + i * static_cast<int64_t>(byte_width(a.dtype)), a.dtype);
}
template <class V>
SINTER_DEVICE void store_at(const RecurrentArguments& a, std::byte* p, int64_t i, V v) {
  store_float<V>(p + i * static_cast<int64_t>(byte_width(a.dtype)), a.dtype, v);
}
SINTER_DEVICE int64_t state_row(const RecurrentArguments& a, int direction, int sample) {
  return a.batch_first != 0 ? int64_t{sample} * a.directions + direction
                            : int64_t{direction} * a.batch + sample;
}
template <class V, class Room>
SINTER_DEVICE void set_step(const RecurrentArguments& a, Unit<V, Room>* u, int t) {
  u->x_row = a.batch_first != 0 ? int64_t{u->sample} * a.steps + t : int64_t{t} * a.batch + u->sample;
  u->y_row = a.batch_first != 0 ? u->x_row * a.directions + u->direction
                                : (int64_t{t} * a.directions + u->direction) * a.batch + u->sample;
}

// Computes sums[g] = the products of rows (first + g) * hidden + i of R with the state, for every lane.
template <int kGates, class V, class Room>
SINTER_DEVICE void multiply_rows(const RecurrentArguments& a, const Unit<V, Room>& u, const Room& state,
                                 int first, int i, V (&sums)[kGates]) {
  const int64_t width = byte_width(a.dtype), between = int64_t{a.hidden} * a.hidden * width;
  const std::byte* r =
      a.r + (int64_t{u.direction} * a.rows + int64_t{first} * a.hidden + i) * a.hidden * width;
  SINTER_UNROLL
  for (int g = 0; g < kGates; ++g) sums[g] = 0;
  constexpr int kAhead = 2;  // of each row, loads are under way for as many elements
  for (int k = lane(); k < a.hidden; k += kAhead * kWarp) {
    Loaded<V> loaded[kAhead][kGates];
    SINTER_UNROLL
    for (int j = 0; j < kAhead; ++j) SINTER_UNROLL
    for (int g = 0; g < kGates; ++g)
      loaded[j][g] =
          k + j * kWarp < a.hidden ? begin_load<V>(r + g * between + (k + j * kWarp) * width, a.dtype) : 0;
    SINTER_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      if (k + j * kWarp >= a.hidden) break;
      const V s = state[k + j * kWarp];
      SINTER_UNROLL
      for (int g = 0; g < kGates; ++g) sums[g] = m_fma(value_of<V>(loaded[j][g], a.dtype), s, sums[g]);
    }
  }
  SINTER_UNROLL
  for (int g = 0; g < kGates; ++g) sums[g] = fold_warp(sums[g], AddUp());
}

// Returns the inflow of gate g of hidden unit i from x.
template <class V, class Room>
SINTER_DEVICE V inflow_of(const RecurrentArguments& a, const Unit<V, Room>& u, int g, int i) {
  const int64_t row = int64_t{u.direction} * a.steps * a.batch + u.x_row;
  return reinterpret_cast<const V*>(a.inflow)[row * a.rows + int64_t{g} * a.hidden + i];
}
template <class V, class Room>
SINTER_DEVICE V activate(const RecurrentArguments& a, const Unit<V, Room>& u, int which, V v) {
  const V clip = static_cast<V>(a.clip);
  v = v < -clip ? -clip : v > clip ? clip : v;
  return activated<V>(a.activations[u.direction * a.per_direction + which], v);
}

template <class V, class Room>
SINTER_DEVICE void finish_unit(const RecurrentArguments& a, const Unit<V, Room>& u, int i, V h) {
  if (lane() != 0) return;
  u.next[i] = h;
  if (a.y != nullptr) store_at<V>(a, a.y, u.y_row * a.hidden + i, h);
}

// ---- cells: hidden unit i of one step. A lane computes each gate.

template <class V, class Room>
SINTER_DEVICE void lstm_unit(const RecurrentArguments& a, const Unit<V, Room>& u, int i) {
  V sums[4];
  multiply_rows(a, u, u.h, 0, i, sums);
  const V c = u.c[i];
  const int64_t peephole = int64_t{u.direction} * 3 * a.hidden + i;
  const auto peep = [&](int gate, V cell) {
    return a.peephole != nullptr ? load_at<V>(a, a.peephole, peephole + int64_t{gate} * a.hidden) * cell
                                 : V(0);
  };
  // The gates are input, forget and candidate.
  const int gate = lane() % 3;
  const V into = gate == 0   ? sums[0] + inflow_of(a, u, 0, i) + peep(0, c)
                 : gate == 1 ? sums[2] + inflow_of(a, u, 2, i) + peep(2, c)
                             : sums[3] + inflow_of(a, u, 3, i);
  const V gates = activate(a, u, gate == 2 ? 1 : 0, into);
  const V in = shuffle(gates, 0), forget = a.coupled != 0 ? V(1) - in : shuffle(gates, 1);
  const V next = forget * c + in * shuffle(gates, 2);
  // The output is next; the cell's own function is not clipped.
  const V out_in = sums[1] + inflow_of(a, u, 1, i) + peep(1, next);
  const V clip = static_cast<V>(a.clip), clipped = out_in < -clip ? -clip : out_in > clip ? clip : out_in;
  const V last = activated<V>(a.activations[u.direction * a.per_direction + (lane() == 0 ? 0 : 2)],
                              lane() == 0 ? clipped : next);
  const V h = shuffle(last, 0) * shuffle(last, 1);
  warp_barrier();  // all lanes have read the cell
  if (lane() == 0) u.c[i] = next;
  finish_unit(a, u, i, h);
}

// Returns the bias of R for Gru's candidate.
template <class V, class Room>
SINTER_DEVICE V candidate_bias(const RecurrentArguments& a, const Unit<V, Room>& u, int i) {
  return a.bias != nullptr
             ? load_at<V>(a, a.bias, int64_t{2} * u.direction * a.rows + a.rows + int64_t{2} * a.hidden + i)
             : V(0);
}

// If the reset gate comes before the product, all reset gates are computed first.
template <class V, class Room>
SINTER_DEVICE void gru_gates(const RecurrentArguments& a, const Unit<V, Room>& u, int i) {
  V sums[2];
  multiply_rows(a, u, u.h, 0, i, sums);
  const int gate = lane() & 1;
  const V gates = activate(a, u, 0, (gate == 0 ? sums[0] : sums[1]) + inflow_of(a, u, gate, i));
  const V reset = shuffle(gates, 1);
  if (lane() == 0) u.update[i] = gates, u.spare[i] = reset * static_cast<V>(u.h[i]);
}
template <class V, class Room>
SINTER_DEVICE void gru_unit(const RecurrentArguments& a, const Unit<V, Room>& u, int i) {
  V sums[1];
  multiply_rows(a, u, u.spare, 2, i, sums);
  const V candidate = activate(a, u, 1, inflow_of(a, u, 2, i) + (sums[0] + candidate_bias(a, u, i)));
  const V update = u.update[i];
  finish_unit(a, u, i, (V(1) - update) * candidate + update * static_cast<V>(u.h[i]));
}
template <class V, class Room>
SINTER_DEVICE void gru_unit_reset_last(const RecurrentArguments& a, const Unit<V, Room>& u, int i) {
  V sums[3];
  multiply_rows(a, u, u.h, 0, i, sums);
  const int gate = lane() & 1;
  const V gates = activate(a, u, 0, (gate == 0 ? sums[0] : sums[1]) + inflow_of(a, u, gate, i));
  const V update = shuffle(gates, 0), reset = shuffle(gates, 1);
  const V candidate = activate(a, u, 1, inflow_of(a, u, 2, i) + reset * (sums[2] + candidate_bias(a, u, i)));
  finish_unit(a, u, i, (V(1) - update) * candidate + update * static_cast<V>(u.h[i]));
}
template <class V, class Room>
SINTER_DEVICE void rnn_unit(const RecurrentArguments& a, const Unit<V, Room>& u, int i) {
  V sums[1];
  multiply_rows(a, u, u.h, 0, i, sums);
  finish_unit(a, u, i, activate(a, u, 0, sums[0] + inflow_of(a, u, 0, i)));
}
template <class V, class Room>
SINTER_DEVICE void compute_unit(const RecurrentArguments& a, const Unit<V, Room>& u, int i) {
  switch (a.cell) {
    case Cell::kLstm:
      return lstm_unit(a, u, i);
    case Cell::kGru:
      return gru_unit(a, u, i);
    case Cell::kGruResetLast:
      return gru_unit_reset_last(a, u, i);
    case Cell::kRnn:
      return rnn_unit(a, u, i);
  }
}

// Returns the length of a sample's sequence, which is within the existing steps even if the given one is not.
SINTER_DEVICE int length_of(const RecurrentArguments& a, int sample, bool report) {
  if (a.lengths == nullptr) return a.steps;
  const int32_t length = a.lengths[sample];
  const bool fits = length >= 0 && length <= a.steps;
  if (!fits && report) report_fault(a.fault, FaultCode::kLength, sample);
  return fits ? length : 0;
}
SINTER_DEVICE bool reversed(const RecurrentArguments& a, int direction) {
  return a.first_is_reverse != 0 || direction == 1;
}

// ---- one launch: blocks [batch, directions]

template <class V>
SINTER_DEVICE void run_sequence(const RecurrentArguments& a) {
  const int hidden = a.hidden, room = (hidden * static_cast<int>(sizeof(V)) + 15) / 16 * 16;
  Unit<V, Shared<V>> u;
  u.sample = static_cast<int>(block_x()), u.direction = static_cast<int>(block_y());
  u.h = shared_memory<V>(0, hidden), u.next = shared_memory<V>(room, hidden);
  // Lstm has a cell, Gru two other rooms in its place.
  u.c = u.update = shared_memory<V>(2 * room, hidden), u.spare = shared_memory<V>(3 * room, hidden);
  const int length = length_of(a, u.sample, u.direction == 0 && thread_index() == 0);
  const int64_t state = state_row(a, u.direction, u.sample) * hidden;
  for (int i = thread_index(); i < hidden; i += block_threads()) {
    u.h[i] = length > 0 && a.h0 != nullptr ? load_at<V>(a, a.h0, state + i) : V(0);
    u.c[i] = length > 0 && a.c0 != nullptr ? load_at<V>(a, a.c0, state + i) : V(0);
  }
  barrier();
  const int warps = block_threads() / kWarp;
  for (int s = 0; s < length; ++s) {
    set_step(a, &u, reversed(a, u.direction) ? length - 1 - s : s);
    if (a.cell == Cell::kGru) {
      for (int i = warp_index(); i < hidden; i += warps) gru_gates(a, u, i);
      barrier();
    }
    for (int i = warp_index(); i < hidden; i += warps) compute_unit(a, u, i);
    barrier();
    const Shared<V> h = u.h;
    u.h = u.next, u.next = h;
  }
  for (int t = length; a.y != nullptr && t < a.steps; ++t) {
    set_step(a, &u, t);
    for (int i = thread_index(); i < hidden; i += block_threads())
      store_at<V>(a, a.y, u.y_row * hidden + i, V(0));
  }
  for (int i = thread_index(); i < hidden; i += block_threads()) {
    if (a.y_h != nullptr) store_at<V>(a, a.y_h, state + i, static_cast<V>(u.h[i]));
    if (a.y_c != nullptr) store_at<V>(a, a.y_c, state + i, static_cast<V>(u.c[i]));
  }
}

// ---- a launch for each step: blocks [hidden / warps, batch, directions]

template <class V>
SINTER_DEVICE void run_step(const RecurrentArguments& a) {
  Unit<V, V*> u;
  const int i = static_cast<int>(block_x()) * (block_threads() / kWarp) + warp_index();
  if (i >= a.hidden) return;  // whole warps: nothing waits for the block
  u.sample = static_cast<int>(block_y()), u.direction = static_cast<int>(block_z());
  const int64_t all = int64_t{a.directions} * a.batch * a.hidden;
  const int64_t own = (int64_t{u.direction} * a.batch + u.sample) * a.hidden;
  const int64_t state = state_row(a, u.direction, u.sample) * a.hidden;
  u.h = reinterpret_cast<V*>(a.h) + (a.step & 1) * all + own;
  u.next = reinterpret_cast<V*>(a.h) + (~a.step & 1) * all + own;
  u.c = reinterpret_cast<V*>(a.c) + own;
  u.update = reinterpret_cast<V*>(a.update) + own, u.spare = reinterpret_cast<V*>(a.spare) + own;
  const bool first = a.step == 0 && a.half == 0 && i == 0 && u.direction == 0 && lane() == 0;
  const int length = length_of(a, u.sample, first);
  const bool last_half = a.cell != Cell::kGru || a.half == 1;
  if (a.step >= length) {
    if (lane() != 0 || !last_half) return;
    set_step(a, &u, a.step);
    if (a.y != nullptr) store_at<V>(a, a.y, u.y_row * a.hidden + i, V(0));
    if (a.step > 0) return;
    if (a.y_h != nullptr) store_at<V>(a, a.y_h, state + i, V(0));
    if (a.y_c != nullptr) store_at<V>(a, a.y_c, state + i, V(0));
    return;
  }
  set_step(a, &u, reversed(a, u.direction) ? length - 1 - a.step : a.step);
  if (!last_half) return gru_gates(a, u, i);
  compute_unit(a, u, i);
  if (a.step < length - 1 || lane() != 0) return;
  if (a.y_h != nullptr) store_at<V>(a, a.y_h, state + i, u.next[i]);
  if (a.y_c != nullptr) store_at<V>(a, a.y_c, state + i, u.c[i]);
}

// Writes the state before the first step.
template <class V>
SINTER_DEVICE void begin_steps(const RecurrentArguments& a) {
  const int64_t all = int64_t{a.directions} * a.batch * a.hidden;
  for (int64_t n = global_thread(); n < all; n += global_threads()) {
    const int64_t i = n % a.hidden, unit = n / a.hidden;
    const int64_t from =
        state_row(a, static_cast<int>(unit / a.batch), static_cast<int>(unit % a.batch)) * a.hidden + i;
    reinterpret_cast<V*>(a.h)[n] = a.h0 != nullptr ? load_at<V>(a, a.h0, from) : V(0);
    if (a.cell == Cell::kLstm)
      reinterpret_cast<V*>(a.c)[n] = a.c0 != nullptr ? load_at<V>(a, a.c0, from) : V(0);
  }
}

}  // namespace

SINTER_KERNEL(recurrent_sequence_floats, RecurrentArguments) { run_sequence<float>(a); }
SINTER_KERNEL(recurrent_sequence_doubles, RecurrentArguments) { run_sequence<double>(a); }
SINTER_KERNEL(recurrent_step_floats, RecurrentArguments) { run_step<float>(a); }
SINTER_KERNEL(recurrent_step_doubles, RecurrentArguments) { run_step<double>(a); }
SINTER_KERNEL(recurrent_begin_floats, RecurrentArguments) { begin_steps<float>(a); }
SINTER_KERNEL(recurrent_begin_doubles, RecurrentArguments) { begin_steps<double>(a); }

}  // namespace sinter::cuda
