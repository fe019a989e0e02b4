#include "platforms/template_packed/platform.h"

#include "platforms/times/kernel_time.h"

namespace sinter {
namespace {

constexpr kernel_time::KernelTime kTimes[] = {
#include "platforms/template_packed/kernel_times.def"
};

bool serves(const Target&) { return true; }

bool has_kernel(const Target&, Op op) { return op == Op::kFullyConnected; }

Status accept(const Target& target, const OpCall& call, int, size_t* workspace) {
  *workspace = 0;
  SINTER_RETURN_UNLESS(has_kernel(target, call.op),
                       unsupported("the template has no kernel for this operation"));
  for (const TensorView& v : call.inputs)
    SINTER_RETURN_UNLESS(!v.present() || (v.dtype == DType::kFloat32 && v.dense()),
                         unsupported("the template takes dense float32 operands"));
  SINTER_RETURN_UNLESS(call.in(1).constant && call.out(0).dense(),
                       unsupported("the template takes constant weights and a dense result"));
  return ok_status();
}

}  // namespace

const Platform template_packed_platform = {.name = "template_packed",
                                           .serves = serves,
                                           .has_kernel = has_kernel,
                                           .accept = accept,
                                           .time = kernel_time::time_by<kTimes>,
                                           .on_request = true};

}  // namespace sinter
