#include "platforms/xnnpack/platform.h"

#include "platforms/xnnpack/capabilities.h"
#include "platforms/xnnpack/yields.h"

namespace sinter {
namespace {

bool serves(const Target& target) {
  return target.architecture == Architecture::kX86_64 || target.architecture == Architecture::kAarch64 ||
         target.architecture == Architecture::kArmv7;
}

bool computes_float16(const Target& target) { return target.architecture == Architecture::kAarch64; }

Status accept(const Target& target, const OpCall& call, int threads, size_t* workspace) {
  SINTER_CHECK(computes_float16(target) || !xnnpack::is_half(call),
               unsupported("float16 kernels are for 64-bit ARM"));
  SINTER_CHECK(target.architecture == Architecture::kX86_64 || !xnnpack::has_wide_weights(call),
               unsupported("the kernels for ARM take no weights of -128"));
  return xnnpack::accept(call, threads, workspace);
}

}  // namespace

const Platform xnnpack_platform = {.name = "xnnpack",
                                   .serves = serves,
                                   .accept = accept,
                                   .yields = xnnpack::yields,
                                   .computes_float16 = computes_float16};

}  // namespace sinter
