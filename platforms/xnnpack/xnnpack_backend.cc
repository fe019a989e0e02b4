#include "platforms/xnnpack/xnnpack_backend.h"

#include <cpuinfo.h>

#include <cstdlib>
#include <cstring>

#include "platforms/xnnpack/operators.h"

namespace sinter {
namespace {

// The library also has float16 operators that compute in float32, for processors of other kinds. They are not
// used: what they save is the conversion, and the reference kernels define those numbers.
bool computes_in_half() {
#if defined(__aarch64__)
  const char* cap = std::getenv("SINTER_CPU_CAP");
  return (cap == nullptr || std::strcmp(cap, "neon") != 0) && cpuinfo_initialize() &&
         cpuinfo_has_arm_neon_fp16_arith();
#else
  return false;
#endif
}

bool only_converts(Op op) { return op == Op::kCast || op == Op::kPad || op == Op::kTranspose; }

struct Step {
  xnn_operator_t op = nullptr;
  pthreadpool_t threads = nullptr;
};

Status run(void* state, const OpCall&, RunContext&) {
  const Step& step = *static_cast<const Step*>(state);
  SINTER_CHECK(xnn_run_operator(step.op, step.threads) == xnn_status_success,
               error(Code::kInternal, "XNNPACK could not run a prepared operator"));
  return ok_status();
}

// Inputs that the library copies into packed weights or keeps by value.
uint32_t packed_inputs(const OpCall& call) {
  switch (call.op) {
    case Op::kConv:
    case Op::kDepthwiseConv:
    case Op::kConvTranspose:
    case Op::kFullyConnected:
      return 0b110;
    case Op::kMatMul: {
      xnnpack::Product p;
      return xnnpack::product_of(call, &p).ok() && p.constant ? 0b10 : 0;
    }
    case Op::kPad:
      return 0b10;
    default:
      return 0;
  }
}

constexpr size_t kStepBytes = align_up(sizeof(Step), kBufferAlignment);

}  // namespace

Status XnnpackBackend::open(BumpArena&, BumpArena&) { return xnnpack::initialize(); }

Status XnnpackBackend::measure(const OpCall& call, int threads, StepNeeds* needs) {
  SINTER_CHECK(call.in_host_memory(), unsupported("the operands are in a device's memory"));
  SINTER_RETURN_IF_ERROR(xnnpack::accept(call, threads, &needs->workspace));
  SINTER_CHECK(!xnnpack::is_half(call) || only_converts(call.op) || computes_in_half(),
               unsupported("this processor has no float16 arithmetic"));
  xnnpack::Creation creation(nullptr);
  xnnpack::Built built;
  size_t extra = 0;
  SINTER_RETURN_IF_ERROR(xnnpack::build(call, nullptr, creation, &built, &extra));
  needs->prepared = kStepBytes + creation.bytes() + extra;
  needs->packed = packed_inputs(call);
  needs->call = CallUse::kUnused;
  return ok_status();
}

Status XnnpackBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* out) {
  void* at = with.prepared.allocate(kStepBytes, kBufferAlignment);
  SINTER_CHECK(at != nullptr, error(Code::kInternal, "measuring and preparing disagree"));
  Step* step = new (at) Step();
  step->threads = with.threads != nullptr ? static_cast<pthreadpool_t>(with.threads->native()) : nullptr;
  xnnpack::Built built;
  size_t extra = 0;
  {
    xnnpack::Creation creation(&with.prepared);
    SINTER_RETURN_IF_ERROR(xnnpack::build(call, step->threads, creation, &built, &extra));
  }
  SINTER_CHECK(built.workspace <= with.workspace.size(),
               error(Code::kInternal, "XNNPACK needs %a bytes of workspace, not %b",
                     static_cast<int64_t>(built.workspace), static_cast<int64_t>(with.workspace.size())));
  step->op = built.op;
  SINTER_RETURN_IF_ERROR(xnnpack::set_up(call, built.op, with.workspace.data()));
  *out = {run, step};
  return ok_status();
}

}  // namespace sinter
