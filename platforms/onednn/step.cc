#include "platforms/onednn/step.h"

#include <algorithm>

namespace sinter::onednn {
namespace {

Status add_operand(int name, dnnl_memory_desc_t desc, const void* at, Step* step) {
  dnnl_engine_t engine = nullptr;
  SINTER_RETURN_IF_ERROR(engine_of_process(&engine));
  Memory& memory = step->memories[step->count];
  SINTER_RETURN_IF_ERROR(outcome(dnnl_memory_create(memory.out(), desc, engine, const_cast<void*>(at))));
  step->operands[step->count++] = {name, memory.get()};
  return ok_status();
}

Status open_stream(Step* step) {
  dnnl_engine_t engine = nullptr;
  SINTER_RETURN_IF_ERROR(engine_of_process(&engine));
  return outcome(sinter_onednn_stream_create(step->stream.out(), engine, &step->threads));
}

// Adds the operands that a product of integers reads besides x, weights and bias.
Status add_numbers(const OpCall& call, const Problem& p, Step* step) {
  MemoryDesc multipliers, number;
  SINTER_RETURN_IF_ERROR(describe_multipliers(p, &multipliers));
  SINTER_RETURN_IF_ERROR(describe_number(&number));
  step->x_zero = p.x_zero, step->y_zero = p.y_zero;
  const void* at = &step->multiplier;
  if (call.op == Op::kQMatMul)
    step->multiplier = static_cast<float>(call.attrs<QMatMulAttrs>().multiplier);
  else
    at = call.in(3).data;
  SINTER_RETURN_IF_ERROR(
      add_operand(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, multipliers.get(), at, step));
  constexpr int kZero = DNNL_ARG_ATTR_ZERO_POINTS;
  if (p.x_zero != 0)
    SINTER_RETURN_IF_ERROR(add_operand(kZero | DNNL_ARG_SRC, number.get(), &step->x_zero, step));
  if (p.y_zero != 0)
    SINTER_RETURN_IF_ERROR(add_operand(kZero | DNNL_ARG_DST, number.get(), &step->y_zero, step));
  return ok_status();
}

}  // namespace

void run_on_threads(void* context, int count, void (*task)(void* closure, int index), void* closure) {
  parallel_for(static_cast<ThreadPool*>(context), count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) task(closure, static_cast<int>(i));
  });
}

Status fill_step(const OpCall& call, const Problem& p, const Description& d, const Preparation& with,
                 Step* step) {
  step->threads.context = with.threads;
  SINTER_RETURN_IF_ERROR(open_stream(step));
  SINTER_RETURN_IF_ERROR(outcome(dnnl_primitive_create(step->primitive.out(), d.primitive.get())));
  const auto add = [&](int name, dnnl_query_t what, const void* at, int index = 0) {
    return add_operand(name, d.operand(what, index), at, step);
  };
  SINTER_RETURN_IF_ERROR(add(DNNL_ARG_SRC, dnnl_query_src_md, call.in(0).data));
  SINTER_RETURN_IF_ERROR(add(DNNL_ARG_WEIGHTS, dnnl_query_weights_md, with.packed.data()));
  if (p.bias) SINTER_RETURN_IF_ERROR(add(DNNL_ARG_BIAS, dnnl_query_weights_md, call.in(2).data, 1));
  SINTER_RETURN_IF_ERROR(add(DNNL_ARG_DST, dnnl_query_dst_md, call.out(0).data));
  if (p.integer) SINTER_RETURN_IF_ERROR(add_numbers(call, p, step));
  step->run_memory = with.workspace.data();
  if (d.scratch == 0) return ok_status();
  return add(DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md, with.workspace.data() + kRunMemory);
}

Status run_step(void* state, const OpCall&, RunContext&) {
  auto& step = *static_cast<Step*>(state);
  sinter_onednn_enter(step.run_memory, kRunMemory);
  const dnnl_status_t status =
      dnnl_primitive_execute(step.primitive.get(), step.stream.get(), step.count, step.operands);
  const size_t kept = sinter_onednn_leave();
  SINTER_RETURN_UNLESS(status == dnnl_success,
                       error(Code::kInternal, "oneDNN could not run a prepared primitive (status %a)",
                             static_cast<int64_t>(status)));
  SINTER_RETURN_UNLESS(kept == 0, error(Code::kInternal, "oneDNN keeps %a blocks of a run's memory",
                                        static_cast<int64_t>(kept)));
  return ok_status();
}

Status pack_weights(dnnl_memory_desc_t from, const std::byte* weights, dnnl_memory_desc_t packed,
                    std::span<std::byte> to, ThreadPool* threads) {
  dnnl_engine_t engine = nullptr;
  SINTER_RETURN_IF_ERROR(engine_of_process(&engine));
  std::fill(to.begin(), to.end(), std::byte{0});  // the library leaves the padding as it is
  PrimitiveDesc desc;
  Step step;
  step.threads.context = threads;
  SINTER_RETURN_IF_ERROR(open_stream(&step));
  SINTER_RETURN_IF_ERROR(
      outcome(dnnl_reorder_primitive_desc_create(desc.out(), from, engine, packed, engine, nullptr)));
  SINTER_RETURN_IF_ERROR(outcome(dnnl_primitive_create(step.primitive.out(), desc.get())));
  SINTER_RETURN_IF_ERROR(add_operand(DNNL_ARG_FROM, from, weights, &step));
  SINTER_RETURN_IF_ERROR(add_operand(DNNL_ARG_TO, packed, to.data(), &step));
  return outcome(dnnl_primitive_execute(step.primitive.get(), step.stream.get(), step.count, step.operands));
}

}  // namespace sinter::onednn
