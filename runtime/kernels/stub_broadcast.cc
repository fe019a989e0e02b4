#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kBroadcastKernel = {Op::kBroadcast,
                                 [](OpCall&) { return unsupported("Broadcast is not implemented yet"); },
                                 nullptr, nullptr};

}  // namespace sinter
