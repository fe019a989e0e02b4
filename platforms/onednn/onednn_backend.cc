#include "platforms/onednn/onednn_backend.h"

#include "platforms/onednn/step.h"

namespace sinter {
namespace onednn {
namespace {

// The input that is packed.
constexpr uint32_t kWeights = 1 << 1;

const Status kDisagree = error(Code::kInternal, "measuring and preparing disagree");

Status describe_call(const OpCall& call, Problem* p, Description* d) {
  dnnl_engine_t engine = nullptr;
  SINTER_RETURN_IF_ERROR(engine_of_process(&engine));
  SINTER_RETURN_IF_ERROR(problem_of(call, p));
  return describe(*p, d);
}

}  // namespace
}  // namespace onednn

Status OnednnBackend::open(BumpArena&) {
  dnnl_engine_t engine = nullptr;
  return onednn::engine_of_process(&engine);
}

Status OnednnBackend::measure(const OpCall& call, int, StepNeeds* needs) {
  *needs = {};
  SINTER_RETURN_UNLESS(call.in_host_memory(), unsupported("the operands are in device memory"));
  onednn::Problem p;
  onednn::Description d;
  SINTER_RETURN_IF_ERROR(onednn::describe_call(call, &p, &d));
  SINTER_RETURN_IF_ERROR(onednn::check_constants(call, p));
  needs->prepared = onednn::kStepBytes;
  needs->workspace = onednn::kRunMemory + align_up(d.scratch, kBufferAlignment);
  needs->packed = onednn::kWeights;
  needs->packing = {align_up(d.packed, kBufferAlignment),
                    onednn::kWeights,
                    {p.convolution, p.depthwise, p.k_step, p.integer + 2 * p.bfloat16, p.x_zero != 0,
                     static_cast<int64_t>(d.layout[0]), static_cast<int64_t>(d.layout[1])}};
  needs->call = CallUse::kUnused;
  return ok_status();
}

Status OnednnBackend::pack(const OpCall& call, std::span<std::byte> packed, ThreadPool* threads) {
  onednn::Problem p;
  onednn::Description d;
  SINTER_RETURN_IF_ERROR(onednn::describe_call(call, &p, &d));
  SINTER_RETURN_UNLESS(align_up(d.packed, kBufferAlignment) == packed.size(), onednn::kDisagree);
  onednn::MemoryDesc weights;
  SINTER_RETURN_IF_ERROR(onednn::describe_weights(p, &weights));
  return onednn::pack_weights(weights.get(), call.in(1).data, d.operand(dnnl_query_weights_md), packed,
                              threads);
}

Status OnednnBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* out) {
  onednn::Problem p;
  onednn::Description d;
  SINTER_RETURN_IF_ERROR(onednn::describe_call(call, &p, &d));
  void* at = with.prepared.allocate(onednn::kStepBytes, kBufferAlignment);
  SINTER_RETURN_UNLESS(at != nullptr && onednn::kRunMemory + d.scratch <= with.workspace.size() &&
                           d.packed <= with.packed.size(),
                       onednn::kDisagree);
  *out = {onednn::run_step, new (at) onednn::Step()};
  const Status status = onednn::fill_step(call, p, d, with, static_cast<onednn::Step*>(out->state));
  if (!status.ok()) release(*out);
  return status;
}

void OnednnBackend::release(PreparedStep& step) {
  if (step.state != nullptr) static_cast<onednn::Step*>(step.state)->~Step();
  step = {};
}

}  // namespace sinter
