#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kScatterNdKernel = {Op::kScatterNd,
                                 [](OpCall&) { return unsupported("ScatterNd is not implemented yet"); },
                                 nullptr, nullptr};

}  // namespace sinter
