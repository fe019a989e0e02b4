#include "platforms/cuda_emulated/platform.h"

#include "platforms/cuda/platform.h"

namespace sinter {

constexpr Platform cuda_emulated_platform = {.name = "cuda-emulated",
                                             .serves = cuda::serves,
                                             .has_kernel = cuda::has_kernel,
                                             .accept = cuda::accept,
                                             .fuses = cuda::fuses,
                                             .computes_half = cuda::computes_half,
                                             .own_memory = true,
                                             .on_request = true};

}  // namespace sinter
