#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kSiluKernel = {Op::kSilu, [](OpCall&) { return unsupported("Silu is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
