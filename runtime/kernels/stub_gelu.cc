#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kGeluKernel = {Op::kGelu, [](OpCall&) { return unsupported("Gelu is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
