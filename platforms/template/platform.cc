#include "platforms/template/platform.h"

namespace sinter {
namespace {

// It serves every machine, because the kernels are plain C++.
bool serves(const Target&) { return true; }

// A platform with several operators has one row for each.
bool has_kernel(const Target&, Op op) { return op == Op::kNeg; }

Status accept(const Target& target, const OpCall& call, int, size_t* workspace) {
  *workspace = 0;
  SINTER_RETURN_UNLESS(has_kernel(target, call.op),
                       unsupported("the template has no kernel for this operation"));
  SINTER_RETURN_UNLESS(call.in(0).dtype == DType::kFloat32 && call.in(0).dense() && call.out(0).dense(),
                       unsupported("the template takes dense float32 operands"));
  return ok_status();
}

}  // namespace

const Platform template_platform = {
    .name = "template", .serves = serves, .has_kernel = has_kernel, .accept = accept};

}  // namespace sinter
