// A primitive of the library with its operands, ready to run.
#pragma once

#include "platforms/onednn/description.h"
#include "platforms/onednn/planning/workspace.h"
#include "runtime/backend/backend.h"
#include "third_party/onednn/support.h"

namespace sinter::onednn {

// Runs the library's tasks on `context`, a ThreadPool or null.
void run_on_threads(void* context, int count, void (*task)(void* closure, int index), void* closure);

inline constexpr int kMaxOperands = 8;  // x, weights, bias, y, scratch memory, multipliers, zero points

// A step stays in place, because the stream refers to `threads`.
struct Step {
  sinter_onednn_threads threads{run_on_threads, nullptr, kParts, {}};
  Stream stream;
  Primitive primitive;
  Memory memories[kMaxOperands];
  dnnl_exec_arg_t operands[kMaxOperands] = {};
  int count = 0;
  std::byte* run_memory = nullptr;  // kRunMemory bytes, in the workspace
  int32_t x_zero = 0, y_zero = 0;
  float multiplier = 0;  // for an operation that has it as an attribute
};
inline constexpr size_t kStepBytes = align_up(sizeof(Step), kBufferAlignment);

// `call` has final addresses. kRunMemory and d.scratch bytes of workspace are used.
Status fill_step(const OpCall& call, const Problem& p, const Description& d, const Preparation& with,
                 Step* step);

// The PreparedStep::run of a Step, on the threads for which it was filled.
Status run_step(void* step, const OpCall&, RunContext&);

// Packs constant weights into `to`, all of whose bytes are written.
Status pack_weights(dnnl_memory_desc_t from, const std::byte* weights, dnnl_memory_desc_t packed,
                    std::span<std::byte> to, ThreadPool* threads);

}  // namespace sinter::onednn
