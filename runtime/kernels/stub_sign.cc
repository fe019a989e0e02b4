#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kSignKernel = {Op::kSign, [](OpCall&) { return unsupported("Sign is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
