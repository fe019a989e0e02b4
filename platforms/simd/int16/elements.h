// The int16 rows of the integer operations on dense operands, with the bits of the reference kernels.
#pragma once

#include "platforms/simd/int8/int8.h"
#include "platforms/simd/window.h"

namespace sinter::simd {

Status run_q16_add(const OpCall& call, RunContext& context);
Status run_q16_mul(const OpCall& call, RunContext& context);
Status run_q16_prelu(const OpCall& call, RunContext& context);
Status run_q16_avg_pool(const OpCall& call, RunContext& context);
Status run_q16_mean(const OpCall& call, RunContext& context, const ReducePlan& plan);

}  // namespace sinter::simd
