// Backend: what a platform gives to a session. Kernel tables (reference, simd) and libraries (XNNPACK) look
// alike here.
//
// Creating a session asks each step's planned backend, in order:
//   measure(call)  -> accept with exact bytes, or refuse with a reason (kUnsupported: the next backend is
//   asked;
//                     the last is always the reference kernels)
//   prepare(call)  -> binds the step's final addresses, packs constant operands into prepared memory
// and run() calls the function pointer that prepare gave: no look-up, no virtual call, no allocation.
#pragma once

#include "runtime/backend/kernel.h"
#include "runtime/core/bump_arena.h"

namespace sinter {

// What run() reads of its call.
enum class CallUse : uint8_t {
  kLaidOut,  // everything, laid out anew for every run (some tens of nanoseconds): takes the least memory
  kKept,     // everything, kept as it is: about 150 bytes an operand
  kUnused,   // nothing: operands and attributes may be missing
};

// What a step asks for. Exact: prepare takes no more than `prepared`, run no more than `workspace`.
struct StepNeeds {
  size_t prepared =
      0;  // packed weights, handles, tables: lives as long as the session; kBufferAlignment-aligned
  size_t workspace = 0;  // scratch during run, shared between steps
  // Bit i: run() does not read input i, a constant, because prepare() takes what it needs of it. What the
  // session has made for this step only (a widened weight) need not stay then, and the operand has no data in
  // a run.
  uint32_t packed = 0;
  CallUse call = CallUse::kLaidOut;
};

// A step ready to run. `state` lies in prepared memory.
struct PreparedStep {
  Status (*run)(void* state, const OpCall& call, RunContext& context) = nullptr;
  void* state = nullptr;
};

class Backend {
 public:
  // As profiles and `--backend` write it: "reference", "simd", "xnnpack".
  virtual const char* name() const = 0;
  // Called once per session before anything else; `prepared` measures or gives memory for what the backend
  // needs for itself. Undone by close().
  virtual Status open(BumpArena& prepared) = 0;
  virtual void close() = 0;
  // `call` has final dtypes, dims, strides and, for constant operands, data, unless the session has still to
  // make them (prepared values: they have data when the step is prepared). Other data may be null. Must not
  // change anything; may be called for several thread counts.
  virtual Status measure(const OpCall& call, int threads, StepNeeds* needs) = 0;
  // `call` has final addresses for every operand; what it refers to is gone when prepare returns, but for the
  // operands' data. Takes prepared memory from `prepared` (at most what measure said). `workspace` is what
  // run() will be given.
  virtual Status prepare(const OpCall& call, BumpArena& prepared, std::span<std::byte> workspace,
                         ThreadPool* threads, PreparedStep* step) = 0;
  // Frees what prepare made outside prepared memory, if anything.
  virtual void release(PreparedStep& step) = 0;

 protected:
  ~Backend() = default;
};

// A backend made of a kernel table: needs nothing but workspace. `call` is passed to the kernel as it is.
class KernelBackend final : public Backend {
 public:
  constexpr KernelBackend(const char* name, KernelTable kernels) : name_(name), kernels_(kernels) {}
  const char* name() const override { return name_; }
  KernelTable kernels() const { return kernels_; }
  Status open(BumpArena&) override { return ok_status(); }
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status prepare(const OpCall& call, BumpArena& prepared, std::span<std::byte> workspace, ThreadPool* threads,
                 PreparedStep* step) override;
  void release(PreparedStep&) override {}

 private:
  const char* name_;
  KernelTable kernels_;
};

}  // namespace sinter
