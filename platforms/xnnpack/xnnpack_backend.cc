#include "platforms/xnnpack/xnnpack_backend.h"

#include <cpuinfo.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "platforms/xnnpack/build.h"
#include "platforms/xnnpack/parallel.h"
#include "platforms/xnnpack/planning/accept.h"
#include "platforms/xnnpack/platform.h"
#include "source_digest.h"

namespace sinter {
namespace xnnpack {
namespace {

// The library also has float16 operators that compute in float32, for processors of other kinds. They are not
// used: they save only the conversion, and the reference kernels define these numbers.
bool computes_in_half() {
#if defined(__aarch64__)
  const char* cap = std::getenv("SINTER_CPU_CAP");
  return (cap == nullptr || std::strcmp(cap, "neon") != 0) && cpuinfo_initialize() &&
         cpuinfo_has_arm_neon_fp16_arith();
#else
  return false;
#endif
}

struct Operator {
  Op op;
  Work work;
  Status (*build)(const Building& b);
  Status (*set_up)(const SettingUp& s);
  uint32_t (*packed)(const OpCall& call);
};

constexpr Operator kOperators[] = {
#define SINTER_XNNPACK(op, dtypes, work, accept, build, set_up, packed) \
  {Op::k##op, work, build_##build, set_up_##set_up, packed_##packed},
#include "platforms/xnnpack/operators.def"
#undef SINTER_XNNPACK
};

struct Step {
  xnn_operator_t op = nullptr;
  pthreadpool_t threads = nullptr;
};
constexpr size_t kStepBytes = align_up(sizeof(Step), kBufferAlignment);

Status run(void* state, const OpCall&, RunContext&) {
  const Step& step = *static_cast<const Step*>(state);
  SINTER_RETURN_UNLESS(xnn_run_operator(step.op, step.threads) == xnn_status_success,
                       error(Code::kInternal, "XNNPACK could not run a prepared operator"));
  return ok_status();
}

}  // namespace
}  // namespace xnnpack

Status XnnpackBackend::open(BumpArena&) { return xnnpack::initialize(); }

Status XnnpackBackend::measure(const OpCall& call, int threads, StepNeeds* needs) {
  SINTER_RETURN_UNLESS(call.in_host_memory(), unsupported("the operands are in device memory"));
  constexpr Target kHost{.architecture = kHostArchitecture};
  SINTER_RETURN_IF_ERROR(xnnpack::accept(kHost, call, threads, &needs->workspace));
  const xnnpack::Operator& row = *xnnpack::row_of(xnnpack::kOperators, call.op);
  SINTER_RETURN_UNLESS(!xnnpack::is_half(call) || row.work == xnnpack::kMoves || xnnpack::computes_in_half(),
                       unsupported("this processor has no float16 arithmetic"));
  xnnpack::Creation creation;
  xnnpack::Built built;
  SINTER_RETURN_IF_ERROR(row.build({call, nullptr, creation, &built}));
  needs->prepared = xnnpack::kStepBytes + creation.bytes() + built.extra - creation.weights();
  needs->packed = row.packed(call);
  needs->packing = {};
  if (creation.weights() > 0) {
    needs->packing.bytes = creation.weights();
    needs->packing.inputs = needs->packed;
    std::copy(std::begin(built.parameters), std::end(built.parameters), needs->packing.parameters);
  }
  needs->scratch = creation.always_packs() ? creation.weights() : 0;
  needs->call = CallUse::kUnused;
  return ok_status();
}

Status XnnpackBackend::pack(const OpCall& call, std::span<std::byte> packed, ThreadPool*) {
  const xnnpack::Operator* row = xnnpack::row_of(xnnpack::kOperators, call.op);
  SINTER_RETURN_UNLESS(row != nullptr, error(Code::kInternal, "measuring and packing disagree"));
  xnnpack::Creation creation(packed);
  xnnpack::Built built;
  const Status status = row->build({call, nullptr, creation, &built});
  if (creation.packed()) return ok_status();  // memory behind the weights may not fit a dry run
  return status.ok() ? error(Code::kInternal, "XNNPACK packs a different number of bytes than it measured")
                     : status;
}

uint64_t XnnpackBackend::packed_layouts() const {
  // An odd factor keeps different processors apart.
  return (kSourceDigest ^ xnn_kernel_identity() * 0x9E3779B97F4A7C15u) | 1;
}

Status XnnpackBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* out) {
  const xnnpack::Operator* row = xnnpack::row_of(xnnpack::kOperators, call.op);
  void* at = with.prepared.allocate(xnnpack::kStepBytes, kBufferAlignment);
  SINTER_RETURN_UNLESS(row != nullptr && at != nullptr,
                       error(Code::kInternal, "measuring and preparing disagree"));
  auto* step = new (at) xnnpack::Step();
  step->threads = xnnpack::as_pthreadpool(with.threads);
  xnnpack::Built built;
  {
    xnnpack::Creation creation(&with.prepared, with.packed, with.scratch);
    SINTER_RETURN_IF_ERROR(row->build({call, step->threads, creation, &built}));
  }
  SINTER_RETURN_UNLESS(
      built.workspace <= with.workspace.size(),
      error(Code::kInternal, "XNNPACK needs %a bytes of workspace, not %b",
            static_cast<int64_t>(built.workspace), static_cast<int64_t>(with.workspace.size())));
  step->op = built.op;
  SINTER_RETURN_IF_ERROR(row->set_up({call, built.op, with.workspace.data()}));
  *out = {xnnpack::run, step};
  return ok_status();
}

}  // namespace sinter
