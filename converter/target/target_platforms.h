// Which platforms a target is planned for.
#pragma once

#include <vector>

#include "runtime/backend/platform.h"

namespace sinter::convert {

// Those that have kernels for it, best first; none: the reference kernels compute everything.
std::vector<const Platform*> platforms_serving(const Target& target);
// The same without those that are planned on request only.
std::vector<const Platform*> platforms_for(const Target& target);

// Whether some kernels of the target compute in float16, given a processor that does.
bool has_float16_kernels(const Target& target);
// ok: one of them takes this call on float16 values.
Status accept_in_float16(const Target& target, const OpCall& call, size_t* workspace);

}  // namespace sinter::convert
