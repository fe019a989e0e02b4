#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kTrigKernel = {Op::kTrig, [](OpCall&) { return unsupported("Trig is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter
