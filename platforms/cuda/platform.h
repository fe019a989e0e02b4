// The planning side: the calls that the device takes.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform cuda_platform;

namespace cuda {

// The functions of the platform, which the emulator has under another name.
bool serves(const Target& target);
bool has_kernel(const Target& target, Op op);
Status accept(const Target& target, const OpCall& call, int threads, size_t* workspace);
bool computes_half(const Target& target, DType type);
bool fuses(const OpCall& first, const OpCall& next);

}  // namespace cuda
}  // namespace sinter
