// QLstm and QGru: a block computes all steps of one sample in one direction, with its state in shared memory.
//
// The inflow from x was computed by one product for all steps. Hidden values are kept as a high and a low
// signed byte, 256 * high + low, so that one instruction adds four products of bytes. A row of weights is
// read by as many lanes as it has pieces of 16 bytes, up to a warp.
#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/integer/q_recurrent.h"
#include "platforms/cuda/kernels/integer/requantize.h"

namespace sinter::cuda {
namespace {

constexpr int kEntries = 513;  // of a table
constexpr float kHiddenOne = 8192, kCellOne = 32768, kMostCell = 1 << 22;

SINTER_DEVICE int32_t gate_of(float v) { return round_clamped(v, -32768, 32767); }

struct Hidden {
  Shared<int8_t> high, low;

  SINTER_DEVICE void put(int i, int32_t v) const {
    const int32_t h = (v + 128) >> 8;
    high[i] = static_cast<int8_t>(h), low[i] = static_cast<int8_t>(v - 256 * h);
  }
  // Returns its product with lane-th pieces of a row of weights.
  SINTER_DEVICE uint32_t dot(const std::byte* row, int pitch, int first, int step) const {
    int32_t highs = 0, lows = 0;
    for (int k = first; k < pitch; k += step) {
      const auto w = *reinterpret_cast<const Words<16>*>(row + k);
      const auto h = high.load<Words<16>>(k), l = low.load<Words<16>>(k);
      SINTER_UNROLL
      for (int i = 0; i < 4; ++i) {
        highs = dot4(static_cast<int32_t>(h.w[i]), static_cast<int32_t>(w.w[i]), highs);
        lows = dot4(static_cast<int32_t>(l.w[i]), static_cast<int32_t>(w.w[i]), lows);
      }
    }
    return static_cast<uint32_t>(highs) * 256 + static_cast<uint32_t>(lows);
  }
};

template <int kGates>
struct Layer {
  static constexpr bool kLstm = kGates == 4;

  const QRecurrentArguments& a;
  int direction, sample;
  Shared<int32_t> gates, state, cell;
  Hidden now, reset;
  const float* inflow = nullptr;  // of this step

  SINTER_DEVICE int rows() const { return kGates * a.hidden; }
  SINTER_DEVICE int32_t activate(int table, int32_t gate) const {
    const int16_t* t = a.tables + direction * a.table_step + table * kEntries;
    const int32_t at = gate + 32768, i = at >> 7, f = at & 127;
    return (t[i] * (128 - f) + t[i + 1] * f + 64) >> 7;
  }
  SINTER_DEVICE float from_x(int row) const {
    return inflow[row] + a.bias[int64_t{direction} * 2 * rows() + row];
  }
  // Calls f(row, the inflow from the hidden values) for rows begin .. end - 1, by one lane each.
  template <class F>
  SINTER_DEVICE void for_rows(int begin, int end, Hidden values, F f) const {
    const int at_once = block_threads() / a.lanes, mine = thread_index() / a.lanes,
              part = thread_index() % a.lanes;
    for (int first = begin; first < end; first += at_once) {
      const int row = first + mine;
      uint32_t sum = 0;
      const int64_t place = int64_t{direction} * rows() + row;
      if (row < end) sum = values.dot(a.r + place * a.pitch, a.pitch, part * 16, a.lanes * 16);
      for (int mask = a.lanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
      if (row < end && part == 0)
        f(row, static_cast<float>(static_cast<int32_t>(sum)) * a.h_multipliers[place] +
                   a.bias[int64_t{direction} * 2 * rows() + rows() + row]);
    }
  }
  SINTER_DEVICE void lstm_step() const {
    const int h = a.hidden;
    for_rows(0, rows(), now, [&](int row, float from_h) { gates[row] = gate_of(from_x(row) + from_h); });
    barrier();
    for (int i = thread_index(); i < h; i += block_threads()) {
      const int32_t in = activate(0, gates[i]), out = activate(0, gates[h + i]),
                    forget = activate(0, gates[2 * h + i]), candidate = activate(1, gates[3 * h + i]);
      const float kept = static_cast<float>(forget) * static_cast<float>(static_cast<int32_t>(cell[i])),
                  added = static_cast<float>(in * candidate);
      const int32_t c = round_clamped((kept + added) * 0x1p-15f, -kMostCell, kMostCell);
      cell[i] = c;
      const int32_t eighth = (c + 4) >> 3;
      const int32_t gate = eighth < -32768 ? -32768 : eighth > 32767 ? 32767 : eighth;
      const int32_t v = (out * activate(2, gate) + (1 << 16)) >> 17;
      state[i] = v;
      now.put(i, v);
    }
  }
  SINTER_DEVICE void gru_step() const {
    const int h = a.hidden;
    const bool linear = a.linear_before_reset != 0;
    for_rows(0, 2 * h, now, [&](int row, float from_h) {
      const int32_t gate = activate(0, gate_of(from_x(row) + from_h));
      gates[row] = gate;
      if (!linear && row >= h) reset.put(row - h, (gate * state[row - h] + (1 << 14)) >> 15);
    });
    barrier();
    for_rows(2 * h, 3 * h, linear ? now : reset, [&](int row, float from_h) {
      if (linear) from_h *= static_cast<float>(static_cast<int32_t>(gates[row - h])) * 0x1p-15f;
      gates[row] = activate(1, gate_of(from_x(row) + from_h));
    });
    barrier();
    for (int i = thread_index(); i < h; i += block_threads()) {
      const int32_t update = gates[i], candidate = gates[2 * h + i];
      const int32_t mixed = update * state[i] + (((32768 - update) * candidate + 2) >> 2);
      const int32_t whole = (mixed + (1 << 14)) >> 15;
      const int32_t v = whole < -8192 ? -8192 : whole > 8192 ? 8192 : whole;
      state[i] = v;
      now.put(i, v);
    }
  }

  SINTER_DEVICE void run() {
    int length = a.steps;
    if (a.lengths != nullptr) {
      length = a.lengths[sample];
      if (length < 0 || length > a.steps) {
        if (thread_index() == 0) report_fault(a.fault, FaultCode::kLength, sample);
        length = length < 0 ? 0 : a.steps;
      }
    }
    const int64_t first = (a.batch_first != 0 ? int64_t{sample} * a.directions + direction
                                              : int64_t{direction} * a.batch + sample) *
                          a.hidden;
    for (int i = thread_index(); i < a.pitch; i += block_threads()) {
      int32_t v = 0, c = 0;
      if (i < a.hidden && length > 0) {
        if (a.h0 != nullptr) v = round_clamped(a.h0[first + i] * kHiddenOne, -kHiddenOne, kHiddenOne);
        if (kLstm && a.c0 != nullptr) c = round_clamped(a.c0[first + i] * kCellOne, -kMostCell, kMostCell);
      }
      now.put(i, v);
      if (!kLstm) reset.put(i, 0);
      if (i >= a.hidden) continue;
      state[i] = v;
      if (kLstm) cell[i] = c;
    }
    barrier();
    const bool reverse = a.first_is_reverse != 0 || direction == 1;
    for (int n = 0; n < a.steps; ++n) {
      const int t = reverse && n < length ? length - 1 - n : n;
      const int64_t x_row =
          a.batch_first != 0 ? int64_t{sample} * a.steps + t : int64_t{t} * a.batch + sample;
      const int64_t y_row = a.batch_first != 0 ? x_row * a.directions + direction
                                               : (int64_t{t} * a.directions + direction) * a.batch + sample;
      if (n < length) {
        inflow = a.inflow + (x_row * a.directions + direction) * rows();
        if constexpr (kLstm)
          lstm_step();
        else
          gru_step();
      }
      // A thread stores its own values.
      for (int i = thread_index(); a.y != nullptr && i < a.hidden; i += block_threads()) {
        const int32_t v = n < length ? static_cast<int32_t>(state[i]) : 0;
        store_result(a.result, a.y, y_row * a.hidden + i, static_cast<float>(v) * a.multiplier);
      }
      barrier();
    }
    for (int i = thread_index(); i < a.hidden; i += block_threads()) {
      if (a.y_h != nullptr)
        a.y_h[first + i] = static_cast<float>(static_cast<int32_t>(state[i])) * (1 / kHiddenOne);
      if (kLstm && a.y_c != nullptr)
        a.y_c[first + i] = static_cast<float>(static_cast<int32_t>(cell[i])) * (1 / kCellOne);
    }
  }
};

template <int kGates>
SINTER_DEVICE void recurrent(const QRecurrentArguments& a) {
  const bool lstm = kGates == 4;
  const int numbers = ((kGates + (lstm ? 2 : 1)) * a.hidden + 3) / 4 * 4;
  const Shared<int32_t> gates = shared_memory<int32_t>(0, numbers);
  const Shared<int8_t> bytes = shared_memory<int8_t>(numbers * 4, (lstm ? 2 : 4) * a.pitch);
  const Shared<int32_t> state = gates + kGates * a.hidden, cell = state + (lstm ? a.hidden : 0);
  const Shared<int8_t> others = bytes + (lstm ? 0 : 2 * a.pitch);
  Layer<kGates> layer{a,
                      static_cast<int>(block_x()) / a.batch,
                      static_cast<int>(block_x()) % a.batch,
                      gates,
                      state,
                      cell,
                      {bytes, bytes + a.pitch},
                      {others, others + a.pitch}};
  layer.run();
}

}  // namespace

SINTER_KERNEL(q_lstm, QRecurrentArguments) { recurrent<4>(a); }
SINTER_KERNEL(q_gru, QRecurrentArguments) { recurrent<3>(a); }

}  // namespace sinter::cuda
