#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kEluKernel = {Op::kElu, [](OpCall&) { return unsupported("Elu is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
