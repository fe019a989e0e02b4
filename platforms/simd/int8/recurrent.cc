// QLstm and QGru: every sample of every direction goes through its steps separately; each step multiplies
// int8 rows with int16 vectors, then computes the gates in vectors. Tables are read in pairs of neighbours,
// one gather for each element.
#define SINTER_SIMD_BYTE_DOTS
#include "platforms/simd/int8/gate_rows.h"
#include "platforms/simd/recurrent_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/recurrent.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/recurrent_rows-inl.h"

#ifndef SINTER_SIMD_Q_RECURRENT_ONCE
#define SINTER_SIMD_Q_RECURRENT_ONCE
namespace sinter::simd {

inline constexpr int64_t kTableEntries = 513;
inline constexpr int64_t kPairs = 512;  // of a table: entry i in the lower 16 bits, i + 1 in the upper ones

// One sample in one direction, one step. Arrays of hidden values are readable and writable up to the next
// multiple of 64.
struct QStep {
  GateRows x, h;           // all gates
  const int16_t* values;   // of x, less the zero point
  bool byte_values;        // x is int8
  const int32_t* pairs;    // [tables, kPairs]
  int16_t *state, *reset;  // hidden values; Gru: those behind the reset gate
  int32_t* cell;
  float *from_x, *from_h;  // of all gates
  int64_t hidden;
  bool linear_before_reset;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace {

using QW = D16;
using QI = D32;
using QF = DF;
using QB = hn::Rebind<int8_t, QW>;
using QN = hn::Rebind<int16_t, QI>;  // as many int16 as there are int32
using VI = V32;

// Whole vectors have their own branch, for loads and stores of parts are slow.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_part(D d, const T* p, size_t count) {
  return HWY_LIKELY(count == hn::Lanes(d)) ? hn::LoadU(d, p) : hn::LoadN(d, p, count);
}
template <class D, class T>
HWY_INLINE void store_part(hn::Vec<D> v, D d, T* p, size_t count) {
  if (HWY_LIKELY(count == hn::Lanes(d)))
    hn::StoreU(v, d, p);
  else
    hn::StoreN(v, d, p, count);
}

// rne(clamp(v, low, high)); NaN gives the lower bound.
HWY_INLINE VI rounded(VF v, float low, float high) {
  const QF d;
  return nearest(hn::Min(number_at_least(v, hn::Set(d, low)), hn::Set(d, high)));
}
HWY_INLINE VI gate(VF v) { return rounded(v, -32768, 32767); }
HWY_INLINE VI activation(const int32_t* pairs, VI gate) {
  const QI d;
  const VI at = hn::Add(gate, hn::Set(d, 32768)), f = hn::And(at, hn::Set(d, 127));
  const VI pair = hn::GatherIndex(d, pairs, hn::ShiftRight<7>(at));
  const VI low = hn::ShiftRight<16>(hn::ShiftLeft<16>(pair)), high = hn::ShiftRight<16>(pair);
  const VI sum = hn::Add(hn::Mul(low, hn::Sub(hn::Set(d, 128), f)), hn::Mul(high, f));
  return hn::ShiftRight<7>(hn::Add(sum, hn::Set(d, 64)));
}
HWY_INLINE VF sum_at(const float* a, const float* b, int64_t i, size_t count) {
  const QF d;
  return hn::Add(load_part(d, a + i, count), load_part(d, b + i, count));
}
HWY_INLINE VI bounded(VI v, int32_t low, int32_t high) {
  const QI d;
  return hn::Min(hn::Max(v, hn::Set(d, low)), hn::Set(d, high));
}
HWY_INLINE VI load16(const int16_t* p, size_t count) {
  return hn::PromoteTo(QI(), load_part(QN(), p, count));
}
HWY_INLINE void store16(VI v, int16_t* p, size_t count) { store_part(hn::DemoteTo(QN(), v), QN(), p, count); }

// The end of a step.
template <class T>
HWY_INLINE void store_as(const ProductResult& result, float multiplier, const int16_t* state, int64_t count,
                         int64_t at) {
  const hn::Rebind<T, QI> to;
  const auto lanes = static_cast<int64_t>(hn::Lanes(to));
  Finish<T> finish(result);
  finish.multiplier = hn::Set(QF(), multiplier);
  T* y = static_cast<T*>(result.y) + at;
  for (int64_t i = 0; i < count; i += lanes) {
    const auto part = static_cast<size_t>(std::min(lanes, count - i));
    store_part(finish(load16(state + i, part)), to, y + i, part);
  }
}

}  // namespace

void q_lstm_step(const QStep& s) {
  const QI d;
  const QF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t n = s.hidden;
  flow_in(s.x, s.values, s.byte_values, s.from_x);
  flow_in(s.h, s.state, true, s.from_h);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, n - i));
    const auto activated = [&](int64_t table, int64_t which) HWY_ATTR {
      return activation(s.pairs + table * kPairs, gate(sum_at(s.from_x, s.from_h, which * n + i, count)));
    };
    const VI in = activated(0, 0), out = activated(0, 1), forget = activated(0, 2),
             candidate = activated(1, 3);
    const VF kept = hn::Mul(hn::ConvertTo(f, forget), hn::ConvertTo(f, load_part(d, s.cell + i, count))),
             added = hn::ConvertTo(f, hn::Mul(in, candidate));
    const VI cell = rounded(hn::Mul(hn::Add(kept, added), hn::Set(f, 0x1p-15f)), -0x1p22f, 0x1p22f);
    store_part(cell, d, s.cell + i, count);
    const VI looked_up = bounded(hn::ShiftRight<3>(hn::Add(cell, hn::Set(d, 4))), -32768, 32767);
    const VI product = hn::Mul(out, activation(s.pairs + 2 * kPairs, looked_up));
    store16(hn::ShiftRight<17>(hn::Add(product, hn::Set(d, 1 << 16))), s.state + i, count);
  }
}

void q_gru_step(const QStep& s) {
  const QI d;
  const QF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t n = s.hidden;
  GateRows gates = s.h, fresh = s.h;
  gates.count = s.linear_before_reset ? 3 * n : 2 * n;
  flow_in(s.x, s.values, s.byte_values, s.from_x);
  flow_in(gates, s.state, true, s.from_h);
  const auto reset_at = [&](int64_t i, size_t count) HWY_ATTR {
    return activation(s.pairs, gate(sum_at(s.from_x, s.from_h, n + i, count)));
  };
  if (!s.linear_before_reset) {
    for (int64_t i = 0; i < n; i += lanes) {
      const auto count = static_cast<size_t>(std::min(lanes, n - i));
      const VI product = hn::Mul(reset_at(i, count), load16(s.state + i, count));
      store16(hn::ShiftRight<15>(hn::Add(product, hn::Set(d, 1 << 14))), s.reset + i, count);
    }
    fresh.weights += 2 * n * n, fresh.multipliers += 2 * n, fresh.bias += 2 * n, fresh.count = n;
    flow_in(fresh, s.reset, true, s.from_h + 2 * n);
  }
  for (int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, n - i));
    VF recurrent = load_part(f, s.from_h + 2 * n + i, count);
    if (s.linear_before_reset)
      recurrent = hn::Mul(recurrent, hn::Mul(hn::ConvertTo(f, reset_at(i, count)), hn::Set(f, 0x1p-15f)));
    const VI candidate =
        activation(s.pairs + kPairs, gate(hn::Add(load_part(f, s.from_x + 2 * n + i, count), recurrent)));
    const VI update = activation(s.pairs, gate(sum_at(s.from_x, s.from_h, i, count)));
    const VI fresh_part = hn::Mul(hn::Sub(hn::Set(d, 32768), update), candidate);
    const VI mixed = hn::Add(hn::Mul(update, load16(s.state + i, count)),
                             hn::ShiftRight<2>(hn::Add(fresh_part, hn::Set(d, 2))));
    store16(bounded(hn::ShiftRight<15>(hn::Add(mixed, hn::Set(d, 1 << 14))), -8192, 8192), s.state + i,
            count);
  }
}

// Entries `from` of `count` tables, each together with the next one.
void q_pair_tables(const int16_t* from, int64_t count, int32_t* pairs) {
  const QW d;
  for (int64_t t = 0; t < count; ++t, from += kTableEntries, pairs += kPairs)
    for (int64_t i = 0; i < kPairs; i += static_cast<int64_t>(hn::Lanes(d)))
      hn::StoreInterleaved2(hn::LoadU(d, from + i), hn::LoadU(d, from + i + 1), d,
                            reinterpret_cast<int16_t*>(pairs + i));
}

// x - x_zero of n numbers.
void q_widen(const int8_t* x, int64_t n, int32_t x_zero, int16_t* to) {
  const QW d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(d, static_cast<int16_t>(x_zero));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto part = static_cast<size_t>(std::min(lanes, n - i));
    store_part(hn::Sub(hn::PromoteTo(d, load_part(QB(), x + i, part)), zero), d, to + i, part);
  }
}

// y[at ..] from hidden values.
void q_store_y(const ProductResult& result, float multiplier, const int16_t* state, int64_t count,
               int64_t at) {
  switch (result.type) {
    case DType::kInt8:
      return store_as<int8_t>(result, multiplier, state, count, at);
    case DType::kInt16:
      return store_as<int16_t>(result, multiplier, state, count, at);
    default:
      return store_as<float>(result, multiplier, state, count, at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(q_lstm_step);
HWY_EXPORT(q_gru_step);
HWY_EXPORT(q_pair_tables);
HWY_EXPORT(q_widen);
HWY_EXPORT(q_store_y);

inline int32_t rounded_number(float v, float low, float high) {
  const float bounded = !(v > low) ? low : v < high ? v : high;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: rounds what is added to it
  return static_cast<int32_t>((bounded + kMagic) - kMagic);
}

template <class A>
RecurrentLayout q_layout(const OpCall& call) {
  return recurrent_layout<A>(call, A::kOp == Op::kQLstm ? 4 : 3);
}
template <class A>
constexpr int64_t table_count() {
  return A::kOp == Op::kQLstm ? 3 : 2;
}

// Bytes of the tables' pairs, and of each unit's arrays: x, two of hidden values, cells, what flows in twice.
template <class A>
bool workspace_parts(const RecurrentLayout& l, int64_t* pairs, int64_t* unit) {
  const auto up = [](int64_t n) {
    return static_cast<int64_t>(align_up(static_cast<size_t>(n), kBufferAlignment));
  };
  if (l.input > INT32_MAX || l.hidden > INT32_MAX / 64) return false;
  *pairs = up(l.directions * table_count<A>() * kPairs * 4);
  *unit = up(l.input * 2) + 2 * up(l.hidden * 2) + up(l.hidden * 4) + 2 * up(l.gate_rows() * 4);
  return *unit < INT32_MAX;
}

template <class A>
Status accept_recurrent(const OpCall& call) {
  int64_t pairs = 0, unit = 0;
  SINTER_RETURN_UNLESS(workspace_parts<A>(q_layout<A>(call), &pairs, &unit),
                       unsupported("too many hidden units for the simd kernel"));
  return accept_dense(call);
}

template <class A>
Status recurrent_workspace(const OpCall& call, int threads, size_t* bytes) {
  const RecurrentLayout l = q_layout<A>(call);
  int64_t pairs = 0, unit = 0, units = 0;
  const bool fits = workspace_parts<A>(l, &pairs, &unit) && checked_mul(l.directions, l.batch, &units);
  const int64_t slots = std::clamp<int64_t>(threads, 1, std::max<int64_t>(units, 1));
  SINTER_RETURN_UNLESS(
      fits && checked_mul(unit, slots, &unit) && checked_add(unit, pairs, &unit) && unit < INT64_MAX / 4,
      too_much_workspace());
  *bytes = static_cast<size_t>(unit);
  return ok_status();
}

template <class A>
Status run_recurrent(const OpCall& call, RunContext& context) {
  constexpr bool kLstm = A::kOp == Op::kQLstm;
  const auto& a = call.attrs<A>();
  const RecurrentLayout l = q_layout<A>(call);
  int64_t pair_bytes = 0, unit_bytes = 0;
  if (!workspace_parts<A>(l, &pair_bytes, &unit_bytes))
    return error(Code::kInternal, "the layer is too large");
  const auto* lengths = call.has_input(7) ? call.in(7).as<const int32_t>() : nullptr;
  SINTER_RETURN_IF_ERROR(check_lengths(lengths, l));
  const int64_t rows = l.gate_rows(), n = l.hidden, units = l.directions * l.batch;
  auto* pairs = reinterpret_cast<int32_t*>(context.workspace.data());
  const int64_t table_sets = call.in(6).dims[0];
  const auto pair_tables = HWY_DYNAMIC_POINTER(q_pair_tables);
  pair_tables(call.in(6).as<const int16_t>(), table_sets * table_count<A>(), pairs);
  const auto* h0 = call.has_input(8) ? call.in(8).as<const float>() : nullptr;
  const auto* c0 = kLstm && call.has_input(9) ? call.in(9).as<const float>() : nullptr;
  ProductResult result;
  if (call.has_output(0)) result = product_result(call, a);
  const bool wide = call.in(0).dtype == DType::kInt16;

  const auto run_unit = [&](int64_t d, int64_t b, std::byte* memory) {
    const auto take = [&memory](int64_t bytes) {
      std::byte* at = memory;
      memory += align_up(static_cast<size_t>(bytes), kBufferAlignment);
      return at;
    };
    QStep s;
    auto* values = reinterpret_cast<int16_t*>(take(l.input * 2));
    s.values = values, s.byte_values = !wide;
    s.state = reinterpret_cast<int16_t*>(take(n * 2));
    s.reset = reinterpret_cast<int16_t*>(take(n * 2));
    s.cell = reinterpret_cast<int32_t*>(take(n * 4));
    s.from_x = reinterpret_cast<float*>(take(rows * 4));
    s.from_h = reinterpret_cast<float*>(take(rows * 4));
    const float* bias = call.in(5).as<const float>() + d * 2 * rows;
    s.x = {call.in(1).as<const int8_t>() + d * rows * l.input, rows, l.input,
           call.in(3).as<const float>() + d * rows, bias};
    s.h = {call.in(2).as<const int8_t>() + d * rows * n, rows, n, call.in(4).as<const float>() + d * rows,
           bias + rows};
    s.pairs = pairs + (table_sets == 1 ? 0 : d) * table_count<A>() * kPairs;
    s.hidden = n;
    if constexpr (!kLstm) s.linear_before_reset = a.linear_before_reset != 0;
    const int64_t length = lengths != nullptr ? lengths[b] : l.steps, at = l.state_row(d, b) * n;
    for (int64_t i = 0; i < n; ++i) {
      const float h = h0 != nullptr && length > 0 ? h0[at + i] : 0.0f,
                  c = c0 != nullptr && length > 0 ? c0[at + i] : 0.0f;
      s.state[i] = static_cast<int16_t>(rounded_number(h * 8192.0f, -8192, 8192));
      s.cell[i] = rounded_number(c * 32768.0f, -0x1p22f, 0x1p22f);
    }
    const auto step = kLstm ? HWY_DYNAMIC_POINTER(q_lstm_step) : HWY_DYNAMIC_POINTER(q_gru_step);
    const auto widen = HWY_DYNAMIC_POINTER(q_widen);
    const auto store = HWY_DYNAMIC_POINTER(q_store_y);
    const auto store_y = [&](int64_t t) {
      if (result.y != nullptr)
        store(result, static_cast<float>(a.multiplier), s.state, n, l.y_row(t, d, b) * n);
    };
    const bool reverse = l.reverse(d);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t t = reverse ? length - 1 - k : k, x = l.x_row(t, b) * l.input;
      if (wide) {
        s.values = call.in(0).as<const int16_t>() + x;
      } else {
        widen(call.in(0).as<const int8_t>() + x, l.input, static_cast<int32_t>(a.x_zero), values);
      }
      step(s);
      store_y(t);
    }
    for (int64_t i = 0; i < n; ++i) {
      if (call.has_output(1)) call.out(1).as<float>()[at + i] = static_cast<float>(s.state[i]) / 8192.0f;
      if (kLstm && call.has_output(2))
        call.out(2).as<float>()[at + i] = static_cast<float>(s.cell[i]) / 32768.0f;
    }
    for (int64_t i = 0; i < n; ++i) s.state[i] = 0;  // behind the sequence's end
    for (int64_t t = length; t < l.steps; ++t) store_y(t);
  };
  const int64_t threads = threads_of(context.threads);
  const int64_t slots = std::clamp<int64_t>(threads, 1, std::max<int64_t>(units, 1));
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
      run_unit(unit / l.batch, unit % l.batch, context.workspace.data() + pair_bytes + slot * unit_bytes);
  });
  return ok_status();
}

}  // namespace

const Kernel kQLstmKernel = {Op::kQLstm, nullptr, recurrent_workspace<QLstmAttrs>, run_recurrent<QLstmAttrs>,
                             accept_recurrent<QLstmAttrs>};
const Kernel kQGruKernel = {Op::kQGru, nullptr, recurrent_workspace<QGruAttrs>, run_recurrent<QGruAttrs>,
                            accept_recurrent<QGruAttrs>};

}  // namespace sinter::simd
#endif  // HWY_ONCE
