// The state of a session. Everything is in the caller's memory: control structures, then the planned regions,
// then prepared memory.
//
// Control structures are small: a step holds what is not decided before creation (functions, addresses) and
// refers to the model's FlatBuffer for the rest. A kernel gets the operands and attributes of its step as an
// OpCall, laid out on run()'s stack just before (step_call.cc).
#pragma once

#include <atomic>

#include "runtime/model/model_state.h"
#include "runtime/model/structure_arena.h"
#include "sinter/session.h"

namespace sinter::detail {

// The flag of sessions that are given none.
inline constexpr std::atomic<bool> kNeverCancelled{false};
inline constexpr Status kCancelled = error(Code::kCancelled, "the run was cancelled");

inline constexpr size_t kMaxBackends = 16;  // of a profile, and given by the application
// Creation has computed a size that differs from that of requirements().
inline constexpr Status kDisagree = error(Code::kInternal, "measuring and creating disagree");

// An operand: the address of its data, and the position of its dims and strides in the model's FlatBuffer
// (bytes from the start; strides 0: dense).
struct Operand {
  std::byte* data = nullptr;
  uint32_t dims = 0, strides = 0;
  DType dtype = DType::kNone;
  uint8_t rank = 0;
  bool constant = false;
  uint8_t memory = 0;  // as TensorView's
};

// Attributes of at most this many bytes stay decoded; larger ones have lists, and are decoded for every run.
inline constexpr size_t kKeptAttrBytes = 64;

// The call that a kernel gets, if it is kept (CallUse::kKept).
struct KeptCall {
  OpCall call;
  RunContext context;
};

// A step as run() uses it.
struct RunStep {
  Status (*run)(void* state, const OpCall& call, RunContext& context) = nullptr;
  void* state = nullptr;
  union {  // inputs, then outputs
    Operand* operands = nullptr;
    KeptCall* kept;
  };
  std::byte* workspace = nullptr;
  size_t workspace_bytes = 0;
  uint32_t step = 0;
  union {
    uint32_t table = 0;  // the step in the FlatBuffer, whose attributes are decoded for every run
    const void* kept;    // the attributes, if they are no larger than kKeptAttrBytes
  } attributes;
  uint32_t inputs = 0, outputs = 0;
  uint32_t fused = 0;  // this many of the steps behind it are part of its run
  Op op = Op::kCopy;
  uint8_t backend = kNoBackend;  // in SessionState::backends
  CallUse call = CallUse::kLaidOut;
  uint8_t pool = kOneThread;  // in SessionState::pools
  bool keeps_attributes = false;

  static constexpr uint8_t kOneThread = 255;

  static constexpr uint8_t kNoBackend = 255;       // control steps, and what follows
  static constexpr uint32_t kNoStep = UINT32_MAX;  // run() waits for a device, or has it update states
};

// A part of the caller's threads, for steps whose workspace suffices for no more.
class PartOfPool final : public ThreadPool {
 public:
  PartOfPool() = default;
  PartOfPool(ThreadPool* all, int count) : all_(all), count_(count) {}
  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override {
    all_->parallel_for(task, context, count, grain);
  }
  int thread_count() const override { return count_; }

 private:
  ThreadPool* all_ = nullptr;
  int count_ = 1;
};

// The steps of a program that run.
struct StepList {
  RunStep* steps = nullptr;
  uint32_t count = 0;
  uint32_t program = 0;
  StepList* next = nullptr;  // all lists of a session, for destroy()
};

// The operands and attributes of one call at a time, on the stack of Session::run. Steps of more operands
// take the session's.
inline constexpr uint32_t kStackOperands = 8;
struct CallRoom {
  AttrStorage attributes;
  alignas(TensorView) std::byte operands[kStackOperands * sizeof(TensorView)];
};

// Bytes copied from one place to another; nothing if the places are the same.
struct CopyItem {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  size_t bytes = 0;
  DeviceQueue* queue = nullptr;  // both places are on its device; null: in host memory
};

// The address of the used length of an output's axis (int64).
struct OutputLength {
  const std::byte* used = nullptr;
  uint32_t output = 0;
  int32_t axis = 0;
};

// A bounded axis of an input, with its length as the caller has given it for this input.
struct GivenAxis {
  AxisRange range;
  int64_t now = 0;
  std::byte* at = nullptr;  // where the run reads the length (int64)
  uint32_t input = 0;
  uint32_t first = 0;  // the first axis of the same length, in the list of these
};

// A backend whose memory the session uses (devices.cc).
struct DeviceState {
  Backend* backend = nullptr;
  DeviceQueue* queue = nullptr;  // null: not open
  std::byte* block = nullptr;
  std::byte* staging = nullptr;
  bool owned = false;                 // the block: taken from the backend, not provided by the caller
  std::span<const CopyItem> initial;  // states; from null: zeros
  std::span<const CopyItem> updates;  // of states, when a run ends
  Status late;                        // of reset(), returned by the next run
};

struct SessionState {
  Model model;
  StepList main;
  Operand* ports = nullptr;  // inputs, then outputs, with public dims; then the states that have names
  uint32_t inputs = 0, outputs = 0, named_states = 0;
  OutputLength* lengths = nullptr;
  GivenAxis* given = nullptr;        // by input
  CopyItem* copies = nullptr;        // state, on reset (from null: zeros), then when a run ends
  uint32_t states = 0, updates = 0;  // in host memory
  uint32_t length_count = 0, given_count = 0;
  uint32_t backend_count = 0;
  Backend** backends = nullptr;  // those that compute a step
  const StepObserver* observer = nullptr;
  const std::atomic<bool>* cancel = &kNeverCancelled;
  ThreadPool* threads = nullptr;
  SharedArena* arena = nullptr;
  SharedState* shared_state = nullptr;
  size_t bytes = 0;             // of the session's own memory, whose first structure this is
  PartOfPool* parts = nullptr;  // a half of the threads, a quarter, ..., down to two
  DeviceState* devices = nullptr;
  uint32_t device_count = 0;
  uint32_t fallbacks = 0;
  uint32_t entry = 0, profile = 0;
  bool host_takes_part = false;  // some step computes on the host, or reads or writes its memory
  TensorView* views = nullptr;   // for steps of more than kStackOperands operands
  CallRoom* room = nullptr;      // while running
  KernelBackend reference{"reference", {}};

  // Returns whether the caller has asked the run to end.
  bool cancelled() const { return cancel->load(std::memory_order_relaxed); }
  // Returns the threads that a step may use: all of them, halved `pool` times.
  ThreadPool* threads_of(uint8_t pool) const {
    return pool == RunStep::kOneThread ? nullptr : pool == 0 ? threads : &parts[pool - 1];
  }
};

// An operand as kernels see it. `model`: where the FlatBuffer starts.
TensorView view_of(const Operand& operand, const std::byte* model);
const std::byte* flatbuffer_start(const Model& model);

// Runs a list of steps, and calls the observer if there is one.
Status run_steps(SessionState& session, const StepList& list);
// Writes the lengths that the caller has given to where the run reads them. Fails if two inputs of one length
// were given different ones.
Status place_lengths(const SessionState& session);
// Waits for every device; the first error of them.
Status finish_devices(SessionState& session);
// Waits for the devices whose memory is this backend's.
Status finish_devices_of(SessionState& session, const Backend& backend);
// Starts setting states on devices to their initial values.
void reset_devices(SessionState& session);
// RunStep::run of steps that the plan has none for; the state is a DeviceState.
Status run_wait(void* state, const OpCall& call, RunContext& context);
Status run_updates(void* state, const OpCall& call, RunContext& context);
// Copies so that sources in host memory may overlap their own target, not others.
Status copy_all(std::span<const CopyItem> items);

// The state of an If or Loop step. run_if and run_loop are RunStep::run.
struct IfState {
  SessionState* session = nullptr;
  const std::byte* condition = nullptr;
  const StepList* steps[2] = {};  // then, else
  std::span<CopyItem> results[2];
};
struct LoopState {
  SessionState* session = nullptr;
  const std::byte* trip_count = nullptr;  // int64 or null
  const std::byte* condition = nullptr;   // bool or null
  int64_t max_trips = 0;
  const StepList* steps = nullptr;
  std::byte* iteration = nullptr;  // parameter
  std::byte* condition_parameter = nullptr;
  const std::byte* condition_result = nullptr;
  std::span<CopyItem> initial;  // operands to parameters
  std::span<CopyItem> carry;    // results to parameters
  std::span<CopyItem> finals;   // parameters to outputs
  std::span<CopyItem> scanned;  // results to slot 0 of outputs
  std::byte* trips = nullptr;   // int64 or null
};
Status run_if(void* state, const OpCall& call, RunContext& context);
Status run_loop(void* state, const OpCall& call, RunContext& context);

SINTER_ON_32(Operand, 16, 4);
SINTER_ON_32(KeptCall, 40, 4);
SINTER_ON_32(RunStep, 48, 4);
SINTER_ON_32(PartOfPool, 12, 4);
SINTER_ON_32(StepList, 16, 4);
SINTER_ON_32(CopyItem, 16, 4);
SINTER_ON_32(OutputLength, 12, 4);
SINTER_ON_32(GivenAxis, 48, 8);
SINTER_ON_32(DeviceState, 72, 8);
SINTER_ON_32(SessionState, 148, 4);
SINTER_ON_32(IfState, 32, 4);
SINTER_ON_32(LoopState, 80, 8);

}  // namespace sinter::detail
