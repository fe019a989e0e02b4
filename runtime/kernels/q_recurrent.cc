// QLstm and QGru. A thread's unit of work is one sample in one direction.
#include "runtime/kernels/q_recurrent.h"

#include "runtime/kernels/reference.h"

namespace sinter::recurrent {
namespace {

Status check_shape(const OpCall& call, size_t i, DType dtype, std::initializer_list<int64_t> dims) {
  if (!call.has_input(i)) return ok_status();
  SINTER_RETURN_IF_ERROR(check_dtype(call, i, call.in(i).dtype == dtype));
  const auto shape = call.in(i).shape();
  SINTER_RETURN_UNLESS(std::equal(shape.begin(), shape.end(), dims.begin(), dims.end()),
                       invalid("it does not have the shape that X, W and hidden_size require").of_input(i));
  return ok_status();
}

// The sums of a step for one unit, and the functions that make its result.
struct QUnit {
  const int8_t *w, *r;
  const float *x_multipliers, *h_multipliers, *x_bias, *h_bias;
  const int16_t* tables;
  int64_t input, hidden;
  int32_t x_zero;
  const std::byte* x;  // of this step, int8 or int16
  bool wide;
  int32_t *gates, *cell;
  int32_t *state, *spare;

  // In a file that violates the bound, sums wrap.
  static int32_t wrapped(uint32_t sum) { return static_cast<int32_t>(sum); }
  template <class T>
  uint32_t dot_x(const int8_t* row) const {
    const T* v = reinterpret_cast<const T*>(x);
    uint32_t sum = 0;
    for (int64_t i = 0; i < input; ++i) sum += static_cast<uint32_t>((v[i] - x_zero) * row[i]);
    return sum;
  }
  float from_x(int64_t row) const {
    const int8_t* weights = w + row * input;
    return inflow(wrapped(wide ? dot_x<int16_t>(weights) : dot_x<int8_t>(weights)), x_multipliers[row],
                  x_bias[row]);
  }
  float from_h(int64_t row, const int32_t* values) const {
    const int8_t* weights = r + row * hidden;
    uint32_t sum = 0;
    for (int64_t i = 0; i < hidden; ++i) sum += static_cast<uint32_t>(values[i] * weights[i]);
    return inflow(wrapped(sum), h_multipliers[row], h_bias[row]);
  }
  int32_t activate(int table, int32_t gate) const {
    return activation(tables + table * (kTableIntervals + 1), gate);
  }
};

void lstm_step(QUnit& u) {
  const int64_t h = u.hidden;
  for (int64_t row = 0; row < 4 * h; ++row) u.gates[row] = gate_of(u.from_x(row) + u.from_h(row, u.state));
  for (int64_t i = 0; i < h; ++i) {
    const int32_t in = u.activate(0, u.gates[i]), out = u.activate(0, u.gates[h + i]),
                  forget = u.activate(0, u.gates[2 * h + i]), candidate = u.activate(1, u.gates[3 * h + i]);
    u.cell[i] = next_cell(forget, u.cell[i], in, candidate);
    u.state[i] = lstm_hidden(out, u.activate(2, cell_gate(u.cell[i])));
  }
}

void gru_step(QUnit& u, bool linear_before_reset) {
  const int64_t h = u.hidden;
  for (int64_t row = 0; row < 2 * h; ++row)
    u.gates[row] = u.activate(0, gate_of(u.from_x(row) + u.from_h(row, u.state)));
  const int32_t* reset = u.gates + h;
  for (int64_t i = 0; i < h; ++i) u.spare[i] = reset_hidden(reset[i], u.state[i]);
  for (int64_t i = 0; i < h; ++i) {
    const int64_t row = 2 * h + i;
    const float recurrent = linear_before_reset
                                ? u.from_h(row, u.state) * (static_cast<float>(reset[i]) * 0x1p-15f)
                                : u.from_h(row, u.spare);
    u.gates[row] = u.activate(1, gate_of(u.from_x(row) + recurrent));
  }
  for (int64_t i = 0; i < h; ++i) u.state[i] = gru_hidden(u.gates[i], u.gates[2 * h + i], u.state[i]);
}

int64_t unit_numbers(const Layout& l) { return (l.gates + 3) * l.hidden; }

template <class A>
Status infer_call(OpCall& call) {
  const QSettings s = q_settings(call.attrs<A>());
  Layout l;
  if constexpr (A::kOp == Op::kQGru)
    SINTER_RETURN_IF_ERROR(check_code(call.attrs<A>().linear_before_reset, 2));
  SINTER_RETURN_IF_ERROR(resolve(call, s, &l));
  return give_results(call, l, static_cast<DType>(s.to), DType::kFloat32);
}

template <class A>
Status q_recurrent_workspace(const OpCall& call, int threads, size_t* bytes) {
  Layout l;
  SINTER_RETURN_IF_ERROR(resolve(call, q_settings(call.attrs<A>()), &l));
  int64_t n = 0;
  SINTER_RETURN_UNLESS(
      checked_mul<int64_t>(unit_numbers(l), sizeof(int32_t), &n) &&
          checked_add<int64_t>(n, kBufferAlignment, &n) &&
          checked_mul<size_t>(align_up(static_cast<size_t>(n) - kBufferAlignment, kBufferAlignment),
                              static_cast<size_t>(std::max(threads, 1)), bytes),
      too_much_workspace());
  return ok_status();
}

template <class A>
Status run(const OpCall& call, RunContext& context) {
  const QSettings s = q_settings(call.attrs<A>());
  Layout l;
  SINTER_RETURN_IF_ERROR(resolve(call, s, &l));
  SINTER_RETURN_IF_ERROR(check_lengths(call, l, kLengths));
  const QRecurrentResult result = s.result();
  const int64_t rows = l.gates * l.hidden, units = l.directions * l.batch;
  const size_t each = align_up(static_cast<size_t>(unit_numbers(l)) * sizeof(int32_t), kBufferAlignment);
  SINTER_RETURN_UNLESS(context.workspace.size() >= each,
                       error(Code::kInternal, "the workspace is too small"));
  const int64_t threads = threads_of(context.threads);
  const int64_t slots =
      std::min(units, std::clamp<int64_t>(threads, 1, static_cast<int64_t>(context.workspace.size() / each)));
  const auto* lengths = call.has_input(kLengths) ? call.in(kLengths).as<int32_t>() : nullptr;
  const auto* h0 = call.has_input(kInitialH) ? call.in(kInitialH).as<float>() : nullptr;
  const auto* c0 = s.cell && call.has_input(kInitialC) ? call.in(kInitialC).as<float>() : nullptr;
  std::byte* y = call.has_output(0) ? call.out(0).data : nullptr;
  const size_t x_width = byte_width(call.in(kX).dtype);

  const auto run_unit = [&](int64_t d, int64_t b, int32_t* scratch) {
    QUnit u;
    u.w = call.in(kW).as<int8_t>() + d * rows * l.input;
    u.r = call.in(kR).as<int8_t>() + d * rows * l.hidden;
    u.x_multipliers = call.in(kXMultipliers).as<float>() + d * rows;
    u.h_multipliers = call.in(kHMultipliers).as<float>() + d * rows;
    u.x_bias = call.in(kBias).as<float>() + d * 2 * rows, u.h_bias = u.x_bias + rows;
    u.tables = call.in(kTables).as<int16_t>() +
               (call.in(kTables).dims[0] == 1 ? 0 : d) * s.tables * (kTableIntervals + 1);
    u.input = l.input, u.hidden = l.hidden, u.x_zero = static_cast<int32_t>(s.x_zero);
    u.wide = call.in(kX).dtype == DType::kInt16;
    u.gates = scratch, u.cell = u.gates + rows, u.state = u.cell + l.hidden, u.spare = u.state + l.hidden;
    const int64_t length = lengths != nullptr ? lengths[b] : l.steps, state = l.state_row(d, b) * l.hidden;
    for (int64_t i = 0; i < l.hidden; ++i) {
      u.state[i] = h0 != nullptr && length > 0 ? hidden_of(h0[state + i]) : 0;
      u.cell[i] = c0 != nullptr && length > 0 ? cell_of(c0[state + i]) : 0;
    }
    for (int64_t n = 0; n < l.steps; ++n) {
      // Steps behind the sequence's end give zeros.
      const int64_t t = l.reverse(d) && n < length ? length - 1 - n : n;
      if (n < length) {
        u.x = call.in(kX).data + l.x_row(t, b) * l.input * static_cast<int64_t>(x_width);
        if constexpr (A::kOp == Op::kQLstm)
          lstm_step(u);
        else
          gru_step(u, call.attrs<A>().linear_before_reset != 0);
      }
      for (int64_t i = 0; y != nullptr && i < l.hidden; ++i)
        result.store(y, l.y_row(t, d, b) * l.hidden + i, n < length ? u.state[i] : 0);
    }
    for (int64_t i = 0; i < l.hidden; ++i) {
      if (call.has_output(1))
        call.out(1).as<float>()[state + i] = static_cast<float>(u.state[i]) / kHiddenOne;
      if (s.cell && call.has_output(2))
        call.out(2).as<float>()[state + i] = static_cast<float>(u.cell[i]) / kCellOne;
    }
  };
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    auto* scratch = reinterpret_cast<int32_t*>(context.workspace.data() + slot * static_cast<int64_t>(each));
    for (int64_t unit = begin; unit < end; ++unit) run_unit(unit / l.batch, unit % l.batch, scratch);
  });
  return ok_status();
}

}  // namespace

Status resolve(const OpCall& call, const QSettings& s, Layout* l) {
  const TensorView &x = call.in(kX), &w = call.in(kW), &r = call.in(kR), &tables = call.in(kTables);
  SINTER_RETURN_IF_ERROR(check_narrow(call, kX));
  SINTER_RETURN_IF_ERROR(check_zero_point(x.dtype, s.x_zero));
  const auto to = static_cast<DType>(s.to);
  SINTER_RETURN_UNLESS(s.to == static_cast<int64_t>(DType::kFloat32) ||
                           s.to == static_cast<int64_t>(DType::kInt8) ||
                           s.to == static_cast<int64_t>(DType::kInt16),
                       invalid("element type number %a is not int8, int16 or float32", s.to));
  SINTER_RETURN_IF_ERROR(check_int8_multiplier(s.multiplier));
  if (to != DType::kFloat32) {
    SINTER_RETURN_IF_ERROR(check_zero_point(to, s.y_zero));
    SINTER_RETURN_IF_ERROR(check_result_bounds(to, s.q_min, s.q_max));
  }
  SINTER_RETURN_UNLESS(x.rank == 3 && w.rank == 3 && r.rank == 3 && tables.rank == 3,
                       invalid("X, W, R and the tables must have three axes each"));
  SINTER_RETURN_IF_ERROR(set_sizes(call, s, l));
  const int64_t d = l->directions, h = l->hidden, rows = s.gates * h;
  const int64_t first = l->batch_first ? l->batch : d, second = l->batch_first ? d : l->batch;
  SINTER_RETURN_IF_ERROR(check_shape(call, kW, DType::kInt8, {d, rows, l->input}));
  SINTER_RETURN_IF_ERROR(check_shape(call, kR, DType::kInt8, {d, rows, h}));
  for (const size_t i : {kXMultipliers, kHMultipliers})
    SINTER_RETURN_IF_ERROR(check_shape(call, i, DType::kFloat32, {d, rows}));
  SINTER_RETURN_IF_ERROR(check_shape(call, kBias, DType::kFloat32, {d, 2 * rows}));
  SINTER_RETURN_IF_ERROR(check_shape(call, kTables, DType::kInt16,
                                     {tables.dims[0] == 1 ? 1 : d, s.tables, kTableIntervals + 1}));
  SINTER_RETURN_IF_ERROR(check_shape(call, kLengths, DType::kInt32, {l->batch}));
  SINTER_RETURN_IF_ERROR(check_shape(call, kInitialH, DType::kFloat32, {first, second, h}));
  return s.cell ? check_shape(call, kInitialC, DType::kFloat32, {first, second, h}) : ok_status();
}

}  // namespace sinter::recurrent

namespace sinter {

const Kernel kQLstmKernel =
    reference_kernel({Op::kQLstm, recurrent::infer_call<QLstmAttrs>,
                      recurrent::q_recurrent_workspace<QLstmAttrs>, recurrent::run<QLstmAttrs>});
const Kernel kQGruKernel =
    reference_kernel({Op::kQGru, recurrent::infer_call<QGruAttrs>,
                      recurrent::q_recurrent_workspace<QGruAttrs>, recurrent::run<QGruAttrs>});

}  // namespace sinter
