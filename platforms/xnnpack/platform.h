// XNNPACK's planning side: builds on any host, without the library.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform xnnpack_platform;

namespace xnnpack {

// Accepts calls that the library has kernels for on the architecture. The platform takes fewer: float16 for
// 64-bit ARM only, whose processors compute in it. Like Platform::accept.
Status accept(const Target& target, const OpCall& call, int threads, size_t* workspace);

// Returns whether the call's first operand is float16.
bool is_half(const OpCall& call);

}  // namespace xnnpack
}  // namespace sinter
