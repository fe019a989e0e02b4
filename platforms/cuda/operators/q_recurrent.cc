// QLstm and QGru: a product of all steps' x and W, then all steps in one launch.
#include <cstring>

#include "platforms/cuda/operators/q_products.h"
#include "platforms/cuda/operators/window_rows.h"
#include "runtime/core/op_enums.h"
#include "runtime/core/q_recurrent_operands.h"

namespace sinter::cuda {
namespace {

using enum recurrent::QOperand;

struct Rows {
  int64_t columns = 0, depth = 0;
  int64_t pitch() const { return (depth + 15) / 16 * 16; }
};
Rows rows_of(const TensorView& weights) { return {weights.dims[0] * weights.dims[1], weights.dims[2]}; }

template <size_t kInput>
void pack_rows(const OpCall& call, std::span<std::byte> to) {
  const Rows r = rows_of(call.in(kInput));
  std::memset(to.data(), 0, to.size());
  for (int64_t i = 0; i < r.columns && r.depth > 0; ++i)
    std::memcpy(to.data() + i * r.pitch(), call.in(kInput).data + i * r.depth, static_cast<size_t>(r.depth));
}

// Packs W or R as rows of a multiple of 16 bytes.
template <size_t kInput>
Status bring_rows(Lowering& l, std::byte** data) {
  const Rows r = rows_of(l.call().in(kInput));
  int64_t bytes = 0;
  SINTER_RETURN_UNLESS(
      r.depth < INT32_MAX - 16 && checked_mul(r.columns, r.pitch(), &bytes) && bytes <= INT32_MAX,
      unsupported("weights of 2^31 bytes or more"));
  if (r.depth == r.pitch() && l.is_constant(kInput)) return *data = l.in(kInput).data, ok_status();
  if (l.is_constant(kInput))
    return *data = l.packed(static_cast<size_t>(bytes), pack_rows<kInput>), ok_status();
  *data = l.workspace(static_cast<size_t>(bytes));
  if (bytes == 0) return ok_status();
  QPackArguments a;
  a.to = *data, a.from = l.in(kInput).data;
  a.taps.channels = a.taps.taps1 = a.taps.taps2 = Divider(r.depth > 0 ? r.depth : 1);
  a.columns = static_cast<uint32_t>(r.columns), a.depth = a.filter = static_cast<uint32_t>(r.depth);
  a.pitch = Divider(r.pitch());
  return l.launch<Kernel::k_q_pack>({.blocks = {blocks_for(bytes, threads_of(Kernel::k_q_pack))}}, a);
}

template <class A>
Status lower_recurrent(Lowering& l) {
  constexpr bool kLstm = A::kOp == Op::kQLstm;
  const auto& attrs = l.attrs<A>();
  const TensorView &x = l.in(kX), &w = l.call().in(kW);
  const int64_t hidden = attrs.hidden_size, directions = w.dims[0], rows = w.dims[1], input = w.dims[2];
  const bool batch_first = attrs.layout == 1;
  const int64_t steps = x.dims[batch_first ? 1 : 0], batch = x.dims[batch_first ? 0 : 1];
  const Rows hidden_rows = rows_of(l.call().in(kR));
  SINTER_RETURN_UNLESS(
      hidden < INT32_MAX / 16 && q_recurrent_shared(kLstm, hidden, hidden_rows.pitch()) <= kMostShared,
      unsupported("a block's shared memory does not hold the state"));
  int64_t x_rows = 0, inflow = 0;
  SINTER_RETURN_UNLESS(checked_mul(steps, batch, &x_rows) && x_rows <= INT32_MAX &&
                           checked_mul(directions, batch, &inflow) && inflow <= INT32_MAX &&
                           checked_mul(x_rows, directions * rows, &inflow) && inflow <= INT64_MAX / 4,
                       unsupported("2^31 steps or more"));
  if (batch == 0) return ok_status();

  QProductArguments p;
  QRecurrentArguments a;
  std::byte *packed_w = nullptr, *packed_r = nullptr;
  SINTER_RETURN_IF_ERROR(bring_rows<kW>(l, &packed_w));
  SINTER_RETURN_IF_ERROR(bring_rows<kR>(l, &packed_r));
  p.y = l.workspace(static_cast<size_t>(inflow) * sizeof(float));
  p.x = x.data, p.w = packed_w;
  p.multipliers = l.in(kXMultipliers).template as<float>(), p.multiplier_step = 1;
  p.x_zero = static_cast<int32_t>(attrs.x_zero), p.wraps = 1;
  p.rows = static_cast<uint32_t>(x_rows), p.columns = static_cast<uint32_t>(directions * rows);
  p.depth = p.x_depth = static_cast<uint32_t>(input), p.unit = unit_of({input});
  p.pitch = static_cast<uint32_t>(rows_of(w).pitch());
  p.window = matrix_rows(input, input);
  p.y_step = directions * rows;
  p.result.width = sizeof(float);
  SINTER_RETURN_IF_ERROR(launch_products(l, p, x.dtype, DType::kInt8, true));

  a.inflow = reinterpret_cast<const float*>(p.y), a.r = packed_r;
  a.h_multipliers = l.in(kHMultipliers).template as<float>(), a.bias = l.in(kBias).template as<float>();
  a.tables = l.in(kTables).template as<int16_t>();
  a.table_step =
      l.in(kTables).dims[0] == 1 ? 0 : static_cast<int32_t>(l.in(kTables).dims[1] * l.in(kTables).dims[2]);
  if (l.has_input(kLengths)) a.lengths = l.in(kLengths).template as<int32_t>(), a.fault = l.fault();
  if (l.has_input(kInitialH)) a.h0 = l.in(kInitialH).template as<float>();
  if (kLstm && l.has_input(kInitialC)) a.c0 = l.in(kInitialC).template as<float>();
  if (l.has_output(0)) a.y = l.out(0).data;
  if (l.has_output(1)) a.y_h = l.out(1).template as<float>();
  if (kLstm && l.has_output(2)) a.y_c = l.out(2).template as<float>();
  a.steps = static_cast<int32_t>(steps), a.batch = static_cast<int32_t>(batch),
  a.hidden = static_cast<int32_t>(hidden);
  a.directions = static_cast<int32_t>(directions), a.pitch = static_cast<int32_t>(hidden_rows.pitch());
  a.batch_first = batch_first;
  a.first_is_reverse = attrs.direction == static_cast<int64_t>(RnnDirection::kReverse);
  if constexpr (!kLstm) a.linear_before_reset = static_cast<int32_t>(attrs.linear_before_reset);
  a.lanes = 1;
  while (a.lanes < 32 && a.lanes * 16 < a.pitch) a.lanes *= 2;
  a.multiplier = static_cast<float>(attrs.multiplier);
  a.result = integer_result(attrs, static_cast<DType>(attrs.to));
  constexpr Kernel kKernel = kLstm ? Kernel::k_q_lstm : Kernel::k_q_gru;
  return l.launch<kKernel>(
      {.blocks = {static_cast<uint32_t>(directions * batch)},
       .shared_bytes = static_cast<uint32_t>(q_recurrent_shared(kLstm, hidden, hidden_rows.pitch()))},
      a);
}

}  // namespace

Status lower_QLstm(Lowering& l) { return lower_recurrent<QLstmAttrs>(l); }
Status lower_QGru(Lowering& l) { return lower_recurrent<QGruAttrs>(l); }

}  // namespace sinter::cuda
