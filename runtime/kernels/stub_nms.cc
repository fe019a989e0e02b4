#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kNmsKernel = {Op::kNms, [](OpCall&) { return unsupported("Nms is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
