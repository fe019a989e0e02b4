// QConv, QFullyConnected and QDepthwiseConv of int16 by int8 weights, with the bits of the reference kernels.
#pragma once

#include "platforms/simd/window.h"
#include "runtime/backend/backend.h"

namespace sinter::simd {

Status accept_q16_product(const OpCall& call);
Status q16_product_workspace(const OpCall& call, int threads, size_t* bytes);
Status run_q16_product(const OpCall& call, RunContext& context);

Status accept_q16_depthwise(const OpCall& call);
Status q16_depthwise_workspace(const OpCall& call, int threads, size_t* bytes);
Status run_q16_depthwise(const OpCall& call, RunContext& context);

}  // namespace sinter::simd
