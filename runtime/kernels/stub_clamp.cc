#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kClampKernel = {Op::kClamp, [](OpCall&) { return unsupported("Clamp is not implemented yet"); },
                             nullptr, nullptr};

}  // namespace sinter
