#include "converter/cli/host_backends.h"

#include "platforms/simd/simd_kernels.h"
#ifdef SINTER_WITH_XNNPACK
#include "platforms/xnnpack/xnnpack_backend.h"
#endif

namespace sinter::convert {

std::vector<Backend*> linked_backends() {
  static SimdBackend simd;
#ifdef SINTER_WITH_XNNPACK
  static XnnpackBackend xnnpack;
  return {&xnnpack, &simd};
#else
  return {&simd};
#endif
}

}  // namespace sinter::convert
