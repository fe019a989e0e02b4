#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kAbsKernel = {Op::kAbs, [](OpCall&) { return unsupported("Abs is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
