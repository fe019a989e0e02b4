#include "platforms/simd/simd_backend.h"

#include "platforms/simd/packed.h"
#include "platforms/simd/simd_kernels.h"

namespace sinter {
namespace {

// Whether the step keeps its weights packed; prepared and workspace are set if so.
bool keeps_packed(const OpCall& call, int threads, StepNeeds* needs) {
  if (call.inputs.size() < 2 || !call.in(1).constant) return false;
  size_t packed = 0, workspace = 0;
  if (call.op == Op::kQConv || call.op == Op::kQFullyConnected) {
    if (!simd::q_product_packed(call, threads, &packed, &workspace)) return false;
    *needs = {packed, workspace, call.has_input(4) ? 0b11110u : 0b1110u};
    return true;
  }
  if (call.op == Op::kQDepthwiseConv) {
    if (!simd::q_depthwise_packed(call, threads, &packed, &workspace)) return false;
    *needs = {packed, workspace, 0b1110u};
    return true;
  }
  if (call.op == Op::kConv) {
    if (!simd::conv_packed(call, threads, &packed, &workspace)) return false;
  } else if (call.op != Op::kFullyConnected || !simd::connected_packed(call, &packed)) {
    return false;
  }
  *needs = {align_up(packed, kBufferAlignment), workspace, 0b10};
  return true;
}

const Kernel* kernel_of(const OpCall& call) {
  const int row = op_index(call.op);
  return row >= 0 ? simd_kernels()[static_cast<size_t>(row)] : nullptr;
}

Status run_kernel(void* state, const OpCall& call, RunContext& context) {
  return static_cast<const Kernel*>(state)->run(call, context);
}

}  // namespace

Status SimdBackend::measure(const OpCall& call, int threads, StepNeeds* needs) {
  *needs = {};
  SINTER_CHECK(call.in_host_memory(), unsupported("the operands are in a device's memory"));
  const Kernel* kernel = kernel_of(call);
  SINTER_CHECK(kernel != nullptr, unsupported("the simd backend has no kernel for this operation"));
  SINTER_RETURN_IF_ERROR(kernel->accept(call));
  if (!keeps_packed(call, threads, needs) && kernel->workspace != nullptr)
    SINTER_RETURN_IF_ERROR(kernel->workspace(call, threads, &needs->workspace));
  needs->call = CallUse::kKept;  // these kernels are quick
  return ok_status();
}

Status SimdBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* step) {
  StepNeeds needs;
  if (!keeps_packed(call, 1, &needs)) {
    const Kernel* kernel = kernel_of(call);
    SINTER_CHECK(kernel != nullptr, unsupported("the simd backend has no kernel for this operation"));
    step->run = run_kernel;
    step->state = const_cast<Kernel*>(kernel);
    return ok_status();
  }
  void* packed = with.prepared.allocate(needs.prepared, kBufferAlignment);
  SINTER_CHECK(packed != nullptr,
               error(Code::kOutOfMemory, "%a bytes of packed weights do not fit into prepared memory",
                     static_cast<int64_t>(needs.prepared)));
  SINTER_CHECK(call.in(1).data != nullptr, error(Code::kInternal, "constant weights without data"));
  step->state = packed;
  if (call.op == Op::kConv) {
    simd::pack_conv(call, static_cast<float*>(packed), with.threads);
    step->run = simd::run_packed_conv;
  } else if (call.op == Op::kFullyConnected) {
    simd::pack_connected(call, static_cast<float*>(packed), with.threads);
    step->run = simd::run_packed_connected;
  } else if (call.op == Op::kQDepthwiseConv) {
    simd::pack_q_depthwise(call, packed);
    step->run = simd::run_packed_q_depthwise;
  } else {
    simd::pack_q_product(call, packed, with.threads);
    step->run = simd::run_packed_q_product;
  }
  return ok_status();
}

}  // namespace sinter
