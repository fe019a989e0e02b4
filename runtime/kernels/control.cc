// The rows of If and Loop. Only a session (or the converter, for shapes) can enter the subprograms that they
// own.
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_from_bodies(OpCall&) {
  return unsupported("results of If and Loop are inferred from their bodies");
}

}  // namespace

const Kernel kIfKernel = reference_kernel({Op::kIf, infer_from_bodies});
const Kernel kLoopKernel = reference_kernel({Op::kLoop, infer_from_bodies});

}  // namespace sinter
