#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kPadKernel = {Op::kPad, [](OpCall&) { return unsupported("Pad is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
