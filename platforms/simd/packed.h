// Constant weights that are packed once: what the packing is, the packing, and the run with it.
//
// A packing function returns false if this call does not pack its weights. `workspace` is what a run needs
// besides. The backend adds the instruction set to the parameters.
#pragma once

#include "runtime/backend/backend.h"

namespace sinter::simd {

// The first parameter of a packing.
enum PackingKind : int64_t {
  kFloatPanels = 1,
  kIntegerPanels,
  kIntegerPairs,
  kIntegerDepthwise,
  kWinogradPanels,
  kIntegerWinogradPanels,
  kLstmPanels,
  kInteger16Panels,
  kIntegerNarrow,
  kFloatNarrow
};

// Workspace of Conv on any instruction set; whether few output channels are packed depends on it.
Status conv_bound(const OpCall& call, int threads, size_t* workspace);
bool conv_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace);
void pack_conv(const OpCall& call, std::byte* packed, ThreadPool* threads);
Status run_packed_conv(void* packed, const OpCall& call, RunContext& context);

// Conv by Winograd's algorithm, where its attribute permits it. The workspace is the same on every
// instruction set.
bool winograd_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace);
void pack_winograd(const OpCall& call, std::byte* packed, ThreadPool* threads);
Status run_winograd(void* packed, const OpCall& call, RunContext& context);

bool connected_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace);
void pack_connected(const OpCall& call, std::byte* packed, ThreadPool* threads);
Status run_packed_connected(void* packed, const OpCall& call, RunContext& context);

// Lstm of float32; biases are packed with the weights.
bool lstm_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace);
void pack_lstm(const OpCall& call, std::byte* packed, ThreadPool* threads);
Status run_packed_lstm(void* packed, const OpCall& call, RunContext& context);

// QConv and QFullyConnected; the weights' companions are packed with them.
bool q_product_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace);
void pack_q_product(const OpCall& call, std::byte* packed, ThreadPool* threads);
Status run_packed_q_product(void* packed, const OpCall& call, RunContext& context);

bool q_depthwise_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace);
void pack_q_depthwise(const OpCall& call, std::byte* packed, ThreadPool* threads);
Status run_packed_q_depthwise(void* packed, const OpCall& call, RunContext& context);

}  // namespace sinter::simd
