#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kCacheUpdateKernel = {Op::kCacheUpdate,
                                   [](OpCall&) { return unsupported("CacheUpdate is not implemented yet"); },
                                   nullptr, nullptr};

}  // namespace sinter
