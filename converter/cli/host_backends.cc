#include "converter/cli/host_backends.h"

#include "platforms/simd/simd_kernels.h"

namespace sinter::convert {

std::vector<Backend*> linked_backends() {
  static SimdBackend simd;
  return {&simd};
}

}  // namespace sinter::convert
