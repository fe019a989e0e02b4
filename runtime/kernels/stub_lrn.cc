#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kLrnKernel = {Op::kLrn, [](OpCall&) { return unsupported("Lrn is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
