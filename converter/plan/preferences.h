// Which of two backends that would both take a step is the faster one. Data, read from measurements; never
// timed while converting.
#pragma once

#include <string_view>

#include "runtime/backend/kernel.h"

namespace sinter::convert {

// Whether the step is better run by the Highway kernels (`simd`) than by XNNPACK.
bool prefers_simd(const OpCall& call, std::string_view target);

}  // namespace sinter::convert
