#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kSubKernel = {Op::kSub, [](OpCall&) { return unsupported("Sub is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
