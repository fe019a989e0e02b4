#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kExpKernel = {Op::kExp, [](OpCall&) { return unsupported("Exp is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
