#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kGroupNormKernel = {Op::kGroupNorm,
                                 [](OpCall&) { return unsupported("GroupNorm is not implemented yet"); },
                                 nullptr, nullptr};

}  // namespace sinter
