#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kAddKernel = {Op::kAdd, [](OpCall&) { return unsupported("Add is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
