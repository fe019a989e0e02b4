// The kernel interface: the description of a step for the code that computes it.
//
// A kernel's life: infer (converter and verifier) -> workspace -> run, any number of times. Kernels never
// allocate. The verifier infers again and compares (verify_program.cc), so that a file's types and shapes are
// those of the op.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/core/op.h"
#include "runtime/core/parallel.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace sinter {

// A step: op, attributes (the op's struct) and operands. An absent optional operand has dtype kNone.
struct OpCall {
  Op op = Op::kCopy;
  const void* attributes = nullptr;
  std::span<TensorView> inputs;
  std::span<TensorView> outputs;

  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attributes);
  }
  const TensorView& in(size_t i) const { return inputs[i]; }
  const TensorView& out(size_t i) const { return outputs[i]; }
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i].present(); }
  // Returns whether the host can read and write every operand.
  bool in_host_memory() const {
    for (const TensorView& v : inputs)
      if (v.memory != 0) return false;
    for (const TensorView& v : outputs)
      if (v.memory != 0) return false;
    return true;
  }
};

// The resources of a run besides its operands. The workspace is aligned to kBufferAlignment.
struct RunContext {
  std::span<std::byte> workspace;
  ThreadPool* threads = nullptr;
  bool fused = false;  // the run computes the steps fused with this one as well (Backend::fuse)
};

// The functions of one op. `infer` and `run` are never null in the reference table (control ops run in the
// session: their `run` is null).
struct Kernel {
  Op op = Op::kCopy;
  // Sets, by the inputs' types and dims and the attributes, dtype, rank, dims and dense strides of every
  // output that call.outputs has. While inferring, an output that the caller does not want has `absent`
  // semantics: it is given as dtype kNone with rank 255 and must be left alone. It checks all requirements of
  // the op: rank, dtypes, broadcastability, ranges. It must not read input data. It accepts every float type
  // where it accepts float32 (the converter decides in what precision they compute).
  Status (*infer)(OpCall& call) = nullptr;
  // Writes the bytes of workspace for exactly this call and thread_count threads; null: none.
  Status (*workspace)(const OpCall& call, int thread_count, size_t* bytes) = nullptr;
  // Computes the call, whose operands are verified. Fails with kUnsupported for dtypes that the kernel does
  // not compute in (narrow floats).
  Status (*run)(const OpCall& call, RunContext& context) = nullptr;
  // Returns whether this kernel computes this call (dtypes, layouts, attributes); null: everything that infer
  // accepts in float32, float64 and the integer types. Kernels outside the reference table have accept and
  // leave infer null.
  Status (*accept)(const OpCall& call) = nullptr;
  // Writes, for kernels that go through their output in order, the minimum number of bytes by which input 0
  // must begin behind output 0 where the two overlap and input 0 is not read afterwards. On one thread no
  // element that is still to be read is then overwritten. Null or kUnsupported: they may not overlap.
  Status (*lead)(const OpCall& call, size_t* bytes) = nullptr;
};

// Marks an output that the caller of infer does not need.
inline constexpr uint8_t kUnwantedRank = 255;
inline bool wanted(const OpCall& call, size_t i) {
  return i < call.outputs.size() && call.outputs[i].rank != kUnwantedRank;
}
// Sets output i's dtype and dense shape, if it is used.
inline void set_output(OpCall& call, size_t i, DType dtype, std::span<const int64_t> dims) {
  if (!wanted(call, i)) return;
  call.outputs[i].dtype = dtype;
  call.outputs[i].set_shape(dims);
}

// Kernels of one kind (reference, simd, ...), one entry per row of ops.def in its order; null where it has
// none.
using KernelTable = std::span<const Kernel* const>;

}  // namespace sinter
