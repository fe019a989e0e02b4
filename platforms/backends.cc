#include "sinter/backends.h"

#include "platforms/simd/simd_kernels.h"
#ifdef SINTER_WITH_XNNPACK
#include "platforms/xnnpack/xnnpack_backend.h"
#endif

namespace sinter {
namespace {

constinit SimdBackend simd_backend;
#ifdef SINTER_WITH_XNNPACK
constinit XnnpackBackend xnnpack_backend;
constinit Backend* const backends[] = {&xnnpack_backend, &simd_backend};
#else
constinit Backend* const backends[] = {&simd_backend};
#endif

}  // namespace

std::span<Backend* const> all_backends() { return backends; }

}  // namespace sinter
