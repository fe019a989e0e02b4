// The platforms for which a target is planned.
#pragma once

#include <vector>

#include "runtime/backend/platform.h"

namespace sinter::convert {

// Returns the platforms with kernels for the target, best first; none: the reference kernels compute it all.
std::vector<const Platform*> platforms_serving(const Target& target);
// Returns these platforms without those that are planned on request only.
std::vector<const Platform*> platforms_for(const Target& target);

// Whether some of the platform's kernels compute in `type`, float16 or bfloat16, on a processor that can.
bool computes_half(const Platform& platform, const Target& target, DType type);

}  // namespace sinter::convert
