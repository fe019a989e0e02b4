#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kDftKernel = {Op::kDft, [](OpCall&) { return unsupported("Dft is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
