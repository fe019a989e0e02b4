#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kTanhKernel = {Op::kTanh, [](OpCall&) { return unsupported("Tanh is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
