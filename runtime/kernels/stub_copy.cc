#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kCopyKernel = {Op::kCopy, [](OpCall&) { return unsupported("Copy is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
