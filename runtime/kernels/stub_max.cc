#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kMaxKernel = {Op::kMax, [](OpCall&) { return unsupported("Max is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
