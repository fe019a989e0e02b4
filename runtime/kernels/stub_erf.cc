#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kErfKernel = {Op::kErf, [](OpCall&) { return unsupported("Erf is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
