#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kHardSwishKernel = {Op::kHardSwish,
                                 [](OpCall&) { return unsupported("HardSwish is not implemented yet"); },
                                 nullptr, nullptr};

}  // namespace sinter
