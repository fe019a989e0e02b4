// Which platforms a target is planned for.
#pragma once

#include <vector>

#include "runtime/backend/platform.h"

namespace sinter::convert {

// Those that have kernels for it, best first; none: the reference kernels compute everything.
std::vector<const Platform*> platforms_serving(const Target& target);
// The same without those that are planned on request only.
std::vector<const Platform*> platforms_for(const Target& target);

// Whether some of its kernels compute in `type`, float16 or bfloat16, given a processor that does.
bool computes_half(const Platform& platform, const Target& target, DType type);

}  // namespace sinter::convert
