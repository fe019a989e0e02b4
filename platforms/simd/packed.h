// Constant weights that are packed once: how many bytes, the packing, and the run with them.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter::simd {

// Workspace of Conv on any instruction set; whether few output channels are packed depends on it.
Status conv_bound(const OpCall& call, int threads, size_t* workspace);
// False if this call does not pack its weights. `workspace`: what is still needed in a run.
bool conv_packed(const OpCall& call, int threads, size_t* packed, size_t* workspace);
void pack_conv(const OpCall& call, float* packed, ThreadPool* threads);
Status run_packed_conv(void* packed, const OpCall& call, RunContext& context);

// Needs no workspace in a run.
bool connected_packed(const OpCall& call, size_t* packed);
void pack_connected(const OpCall& call, float* packed, ThreadPool* threads);
Status run_packed_connected(void* packed, const OpCall& call, RunContext& context);

// QConv and QFullyConnected; the weights' companions are packed with them.
bool q_product_packed(const OpCall& call, int threads, size_t* packed, size_t* workspace);
void pack_q_product(const OpCall& call, void* packed, ThreadPool* threads);
Status run_packed_q_product(void* packed, const OpCall& call, RunContext& context);

bool q_depthwise_packed(const OpCall& call, int threads, size_t* packed, size_t* workspace);
void pack_q_depthwise(const OpCall& call, void* packed);
Status run_packed_q_depthwise(void* packed, const OpCall& call, RunContext& context);

}  // namespace sinter::simd
