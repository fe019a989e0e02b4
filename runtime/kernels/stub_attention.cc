#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kAttentionKernel = {Op::kAttention,
                                 [](OpCall&) { return unsupported("Attention is not implemented yet"); },
                                 nullptr, nullptr};

}  // namespace sinter
