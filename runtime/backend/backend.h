// Backend: the interface between a platform and a session. Kernel tables (reference, simd), libraries
// (XNNPACK) and devices with device memory (a GPU) implement it.
//
// Creating a session asks each step's planned backend, in order:
//   measure(call)  -> accept with exact bytes, or refuse with a reason (kUnsupported: the next backend is
//                     asked; the last is always the reference kernels)
//   pack(call)     -> converts constant operands to the form that the kernel reads, once for all steps and
//                     sessions that read the same
//   prepare(call)  -> binds the step's final addresses and its packed constants
// and run() calls the function pointer that prepare gave: no look-up, no virtual call, no allocation.
#pragma once

#include "runtime/backend/kernel.h"
#include "runtime/core/bump_arena.h"

namespace sinter {

// The parts of its call that run() reads.
enum class CallUse : uint8_t {
  kLaidOut,  // everything, built anew for every run (some tens of nanoseconds): takes least memory
  kKept,     // everything, kept as it is: about 150 bytes an operand
  kUnused,   // nothing: operands and attributes may be missing
};

// The packed form of a step's constants, and its parameters. Steps for which one backend has the same
// packing (bytes, inputs, parameters), and whose inputs of `inputs` are the same constants, share the bytes.
inline constexpr size_t kPackingParameters = 12;
struct Packing {
  size_t bytes = 0;     // a multiple of kBufferAlignment; 0: nothing is packed
  uint32_t inputs = 0;  // bit i: the bytes depend on the data of input i, a constant
  // All else that the bytes depend on. The first one distinguishes the backend's kinds of packing.
  int64_t parameters[kPackingParameters] = {};
};

// The needs of a step. They are exact: prepare takes no more than `prepared`, run no more than `workspace`.
struct StepNeeds {
  size_t prepared = 0;   // handles, tables: lives as long as the session; kBufferAlignment-aligned
  size_t workspace = 0;  // scratch during run, shared between steps; in the memory of the step's operands
  // Bit i: run() does not read input i, a constant, because prepare() takes its bytes. A value
  // that the session has made for this step only (a widened weight) need not stay then, and the operand has
  // no data in a run. Steps in a backend's own memory take all their constants in this way.
  uint32_t packed = 0;
  CallUse call = CallUse::kLaidOut;
  size_t device_prepared = 0;  // like `prepared`, in the backend's own memory
  size_t staging = 0;          // like `prepared`, in the queue's staging memory
  Packing packing = {};        // lives as long as the session, or as the PackedWeights that it is part of; in
                               // device memory for a step that runs there
  size_t scratch = 0;          // for prepare alone; host memory
};

class DeviceQueue;

// The inputs of preparing a step.
struct Preparation {
  BumpArena& prepared;         // StepNeeds::prepared bytes
  BumpArena& device_prepared;  // StepNeeds::device_prepared bytes; gives addresses of the device (nothing may
                               // be constructed there)
  std::span<std::byte> workspace;  // the workspace that run() will get
  ThreadPool* threads = nullptr;
  int32_t step = -1;  // its number, for errors that are found after run() has returned (Status::at_step)
  std::span<const std::byte> packed = {};  // StepNeeds::packing, as pack() made it; other steps and sessions
                                           // read it as well, on any thread
  std::span<std::byte> scratch = {};       // StepNeeds::scratch bytes
  DeviceQueue* queue = nullptr;            // for steps in device memory, with `staging`
  BumpArena* staging = nullptr;            // StepNeeds::staging bytes
  uint32_t program = 0;                    // the program of the step
};

// A step ready to run. `state` is in prepared memory.
struct PreparedStep {
  Status (*run)(void* state, const OpCall& call, RunContext& context) = nullptr;
  void* state = nullptr;
};

// The memory of a device, whose addresses the host cannot use. It can be used as long as the backend exists,
// open or not. Sessions allocate when they are created, never in a run.
class DeviceMemory {
 public:
  // Allocates a block. Fails with kOutOfMemory if less memory is left.
  virtual Status allocate(size_t bytes, size_t alignment, std::byte** block) = 0;
  virtual void free(std::byte* block) = 0;
  // Allocates staging memory: host memory from and to which the device copies while the host does other work.
  virtual Status allocate_staging(size_t, std::byte**) {
    return error(Code::kInternal, "the backend does not have staging memory");
  }
  virtual void free_staging(std::byte*) {}

 protected:
  ~DeviceMemory() = default;
};

// The work of one session on a device. Transfers and steps are done in the order in which they were started;
// the calls that start them may return before. Host memory that a transfer reads or writes belongs to the
// device until finish(). One caller at a time.
class DeviceQueue {
 public:
  virtual Status upload(std::byte* to_device, const std::byte* from_host, size_t bytes) = 0;
  virtual Status download(std::byte* to_host, const std::byte* from_device, size_t bytes) = 0;
  virtual Status copy(std::byte* to, const std::byte* from, size_t bytes) = 0;  // on the device, disjoint
  virtual Status zero(std::byte* at, size_t bytes) = 0;
  // Waits until all started work is done. Returns and clears the first error since the last call; steps after
  // a failed one may be skipped or compute anything within their operands.
  virtual Status finish() = 0;
  // Called while a session is created. The steps prepared since the last call, or the first, are started by
  // every run one right behind the other, in this order, with no wait or host access in between. A backend
  // may start them as one. The steps of a body are started in every trip, and a trip ends with finish() if it
  // has transfers.
  virtual Status end_group() { return ok_status(); }
  // For callers with a stream of the device's library, such as a CUstream: work that is started from now on
  // begins when all work that is in the stream now is done.
  virtual Status begin_after(void*) { return kNoStreams; }
  // Work that the caller puts into the stream from now on begins when all started work is done.
  virtual Status end_before(void*) { return kNoStreams; }
  // With true, each step's results are read before the next step is started (an observer).
  virtual void set_stepwise(bool) {}

 protected:
  static constexpr Status kNoStreams = unsupported("the backend does not take streams of its callers");
  ~DeviceQueue() = default;
};

// The memory of a queue, measured or taken like a backend's own.
struct QueueMemory {
  BumpArena& prepared;         // host memory
  BumpArena& device_prepared;  // device memory
  BumpArena& staging;
};

// A platform's kernels and, for a device, its memory. A step belongs to a backend with device memory if all
// its placed operands and its workspace are in that memory (TensorView::memory), or if it is a transfer: a
// Copy between dense host memory and that memory. PreparedStep::run starts the work in the queue that the
// step was prepared for. The session waits, by DeviceQueue::finish(), before anything else uses host memory
// that a transfer reads or writes, and before a run returns.
class Backend {
 public:
  // Returns the name that profiles and `--backend` use: "reference", "simd", "xnnpack".
  virtual const char* name() const = 0;
  // Called first (except for memory()), once per session, and whenever weights are packed without a session;
  // `prepared` measures or gives the backend's private host memory. close() undoes it. pack() works where it
  // only measures.
  virtual Status open(BumpArena& prepared) = 0;
  virtual void close() = 0;
  // `call` has final dtypes, dims, strides and, for constant operands, data, unless the session has still to
  // make them (prepared values: they have data when the step is prepared). Constants are host memory. Other
  // data may be null. A call changes nothing, and may be repeated for several thread counts.
  virtual Status measure(const OpCall& call, int threads, StepNeeds* needs) = 0;
  // Fills the `packed` bytes of a call that measure() accepted with a packing. Only the operands of
  // Packing::inputs have data. It is called before the first prepare() that is given these bytes.
  virtual Status pack(const OpCall&, std::span<std::byte>, ThreadPool*) {
    return error(Code::kInternal, "the backend does not pack constants");
  }
  // Returns a number for everything besides the packings that decides the layouts that pack() makes: where it
  // is the same on two machines, equal packings of equal constants serve both, and may be stored in a file
  // (`sinter pack`). 0: they are valid within this process. The backend must be open.
  virtual uint64_t packed_layouts() const { return 0; }
  // Does the work of pack() for a step in device memory: `packed` is there, and filled when the call returns.
  // `scratch` has StepNeeds::scratch bytes of the host.
  virtual Status pack_on_device(const OpCall&, std::span<std::byte> packed, DeviceQueue&,
                                std::span<std::byte> scratch) {
    (void)packed, (void)scratch;
    return error(Code::kInternal, "the backend does not pack constants");
  }
  // Makes a step ready to run. `call` has final addresses for every operand; everything that it refers to
  // except the operands' data is invalid after prepare, and so is the data of `packed` operands. Operands of
  // Packing::inputs may have no data, because they were packed before.
  virtual Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) = 0;
  // Returns, while a session is created, whether runs of `first` compute `next` as well, piece by piece,
  // while their results are in a cache. This backend prepared both; `next` is the step right behind `first`
  // and the steps fused with it before. If so, runs of `first` get RunContext::fused where their calls are
  // kept (CallUse::kKept), and `next` is not run. An observed session still runs each step by itself, so
  // results are the same and in the places of the plan.
  virtual bool fuse(const PreparedStep& first, const PreparedStep& next) {
    (void)first, (void)next;
    return false;
  }
  // Returns the kernel that computes the step, as profiles print it; null: there is one for each operation.
  virtual const char* kernel_name(const PreparedStep&) const { return nullptr; }
  // Frees everything that prepare made outside prepared memory.
  virtual void release(PreparedStep& step) = 0;

  // Returns the instruction set that the kernels take on this machine ("none": there is none that they can
  // use); null: the backend does not choose one.
  virtual const char* instruction_set() const { return nullptr; }
  // Limits the instruction sets of kernels in sessions that are created from now on; null: no limit. Returns
  // false and changes nothing if this machine or build does not have the named one.
  virtual bool limit_instruction_set(const char*) { return false; }

  // Returns null if the backend computes in host memory.
  virtual DeviceMemory* memory() { return nullptr; }
  // Opens a queue for a session with values in that memory, after open(). `*queue` is null while measuring.
  virtual Status open_queue(const QueueMemory&, DeviceQueue** queue) {
    *queue = nullptr;
    return error(Code::kInternal, "the backend does not have device memory");
  }
  virtual void close_queue(DeviceQueue*) {}

 protected:
  ~Backend() = default;
};

// A backend made from a kernel table, which needs only workspace. `call` is passed to the kernel unchanged.
class KernelBackend final : public Backend {
 public:
  constexpr KernelBackend(const char* name, KernelTable kernels) : name_(name), kernels_(kernels) {}
  const char* name() const override { return name_; }
  KernelTable kernels() const { return kernels_; }
  Status open(BumpArena&) override { return ok_status(); }
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  void release(PreparedStep&) override {}

 private:
  const char* name_;
  KernelTable kernels_;
};

}  // namespace sinter
