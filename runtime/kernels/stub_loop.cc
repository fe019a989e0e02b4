#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kLoopKernel = {Op::kLoop, [](OpCall&) { return unsupported("Loop is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
