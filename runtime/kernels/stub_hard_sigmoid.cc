#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kHardSigmoidKernel = {Op::kHardSigmoid,
                                   [](OpCall&) { return unsupported("HardSigmoid is not implemented yet"); },
                                   nullptr, nullptr};

}  // namespace sinter
