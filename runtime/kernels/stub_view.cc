#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kViewKernel = {Op::kView, [](OpCall&) { return unsupported("View is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
