// XNNPACK's planning side: builds on any host, without the library.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform xnnpack_platform;

namespace xnnpack {

// The calls that the library has kernels for on the target's architecture. The platform accepts less: float16
// for 64-bit ARM only, whose processors compute in it. `threads` and *workspace: as Platform::accept.
Status accept(const Target& target, const OpCall& call, int threads, size_t* workspace);

// Whether the call's first operand is float16.
bool is_half(const OpCall& call);

}  // namespace xnnpack
}  // namespace sinter
