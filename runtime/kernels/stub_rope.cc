#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kRopeKernel = {Op::kRope, [](OpCall&) { return unsupported("Rope is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
