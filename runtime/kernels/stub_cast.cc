#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kCastKernel = {Op::kCast, [](OpCall&) { return unsupported("Cast is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
