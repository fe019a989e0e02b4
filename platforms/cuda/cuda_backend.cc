#include "platforms/cuda/cuda_backend.h"

namespace sinter {

const char* CudaBackend::name() const { return "cuda"; }

}  // namespace sinter
