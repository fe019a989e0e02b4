#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kModKernel = {Op::kMod, [](OpCall&) { return unsupported("Mod is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter
