// What a session is made of. Everything is in the caller's memory: control structures, then the planned
// regions, then prepared memory.
//
// Control structures are small: a step holds what is not decided before creation (functions, addresses) and
// refers to the model's FlatBuffer for the rest. A kernel gets the operands and attributes of its step as an
// OpCall, laid out on run()'s stack just before (step_call.cc).
#pragma once

#include "runtime/model/model_state.h"
#include "runtime/session/packed.h"
#include "sinter/packed_weights.h"

namespace sinter::detail {

inline constexpr size_t kMaxBackends = 16;  // of a profile, and given by the application
inline constexpr size_t kMaxRegions = 16;
inline constexpr size_t kMaxBindings = 64;
// Creation has come to another size than requirements() had.
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

// What a kernel gets, where it is kept (CallUse::kKept).
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
    struct {
      uint32_t ints, floats;  // the attributes' lists in the FlatBuffer (0: none)
    } lists = {};
    const void* kept;  // the attributes, if they are no larger than kKeptAttrBytes
  } attributes;
  uint32_t inputs = 0, outputs = 0;
  Op op = Op::kCopy;
  uint8_t backend = kNoBackend;  // in SessionState::backends
  CallUse call = CallUse::kLaidOut;
  uint8_t pool = kOneThread;  // in SessionState::pools
  bool keeps_attributes = false;

  static constexpr uint8_t kOneThread = 255;

  static constexpr uint8_t kNoBackend = 255;       // control steps, and what follows
  static constexpr uint32_t kNoStep = UINT32_MAX;  // run() waits for a device, or has it update states
};

// A part of the caller's threads, for steps that have workspace for no more. Libraries that take a
// pthreadpool_t would use all of its threads, and so get none.
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

// Room for one call at a time, on the stack of Session::run. Steps of more operands take the session's.
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
};

// The address of the used length of an output's axis (int64).
struct OutputExtent {
  const std::byte* used = nullptr;
  uint32_t output = 0;
  int32_t axis = 0;
};

// A backend whose memory the session uses (devices.cc).
struct DeviceState {
  Backend* backend = nullptr;
  std::byte* block = nullptr;
  bool open = false;
  bool owned = false;                 // taken from the backend, not brought by the caller
  std::span<const CopyItem> initial;  // states; from null: zeros
  std::span<const CopyItem> updates;  // of states, when a run ends
  Status late;                        // of reset(), returned by the next run
};

// A program while its steps are created: the entry, or a subprogram inside its owner's workspace.
struct Frame {
  const fb::Program* program = nullptr;
  const fb::ProgramPlan* plan = nullptr;
  uint32_t index = 0;
  const Frame* parent = nullptr;
  const fb::Step* owner = nullptr;
  uint32_t owner_index = 0;  // its number in the parent
  ControlShape shape;
  std::byte* base = nullptr;  // subprograms: the owner's workspace
  // Per prepare step: the permanent address of its value, null if it has none; and, during a walk, which have
  // one.
  std::byte** prepared = nullptr;
  uint64_t* kept = nullptr;
  uint32_t cursor = 0;  // where the search for an equal packing begins (packed.cc)
  StepList* steps = nullptr;
};

struct SessionState {
  Model model;
  StepList main;
  Operand* ports = nullptr;  // inputs, then outputs, with public dims
  uint32_t inputs = 0, outputs = 0;
  OutputExtent* extents = nullptr;
  CopyItem* copies = nullptr;        // state, on reset (from null: zeros), then when a run ends
  uint32_t states = 0, updates = 0;  // in host memory
  uint32_t extent_count = 0;
  uint32_t backend_count = 0;
  Backend** backends = nullptr;  // those that compute a step
  const StepObserver* observer = nullptr;
  ThreadPool* threads = nullptr;
  PartOfPool* parts = nullptr;  // a half of the threads, a quarter, ..., down to two
  DeviceState* devices = nullptr;
  uint32_t device_count = 0;
  uint32_t fallbacks = 0;
  TensorView* views = nullptr;  // for steps of more than kStackOperands operands
  CallRoom* room = nullptr;     // while running
  KernelBackend reference{"reference", {}};

  // That a step may use: all threads halved `pool` times.
  ThreadPool* threads_of(uint8_t pool) const {
    return pool == RunStep::kOneThread ? nullptr : pool == 0 ? threads : &parts[pool - 1];
  }
};

// An operand as kernels see it. `model`: where the FlatBuffer starts.
TensorView view_of(const Operand& operand, const std::byte* model);
const std::byte* flatbuffer_start(const Model& model);

// Runs a list of steps, and calls the observer if there is one.
Status run_steps(SessionState& session, const StepList& list);
// Waits for every device; the first error of them.
Status finish_devices(SessionState& session);
// Starts bringing states on devices to their initial values.
void reset_devices(SessionState& session);
// RunStep::run of steps that the plan has none for; the state is a DeviceState.
Status run_wait(void* state, const OpCall& call, RunContext& context);
Status run_updates(void* state, const OpCall& call, RunContext& context);
// Copies so that sources may overlap their own target, not others.
void copy_all(std::span<const CopyItem> items);

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

// For which devices a run waits, and where, so that host memory that a transfer reads or writes is touched
// only when that is done. A set of devices is a number with a bit for each.
//
// Walked along the steps in their order: everything that a device has started and not been waited for since
// is in `started`, in `transfers` if a transfer is among it. A step on the host waits for all transfers; so
// does a transfer, but for those of its own device, which come before it in any case.
struct Waits {
  uint32_t started = 0, transfers = 0;

  // `device`: -1 for the host.
  uint32_t before(int device, bool transfer) {
    const uint32_t self = device >= 0 ? uint32_t{1} << device : 0;
    const uint32_t waited = device < 0 || transfer ? transfers & ~self : 0;
    started = (started & ~waited) | self;
    transfers = (transfers & ~waited) | (transfer ? self : 0);
    return waited;
  }
};

// Prepared values whose fate is followed while walking; those of further prepare steps stay in any case.
inline constexpr uint32_t kFollowed = 4096;

// How one prepared value is computed: its chain of prepare steps, and the places in scratch memory of what
// they need.
struct PrepareChain {
  uint32_t first = 0, last = 0;  // prepare steps
  uint64_t needed = 0;           // bit i: step first + i is one of the chain
  size_t value[kMaxPrepareChain] = {}, workspace[kMaxPrepareChain] = {},
         workspace_bytes[kMaxPrepareChain] = {};
  size_t bytes = 0;
};

// Creates a session, or packed weights, in two passes over the same code: the first measures, the second
// takes memory and prepares.
class Creator {
 public:
  Creator(const Model& model, const SessionOptions& options) : model_(model), options_(options) {}
  // Asks every step's backends; fills `needs`.
  Status measure(Requirements* needs);
  // On failure `*out` may be set: destroy it.
  Status create(std::span<std::byte> memory, SessionState** out);
  // The same for packed weights (packed_weights.cc).
  Status measure_packed(size_t* bytes);
  Status create_packed(std::span<std::byte> memory, const PackedState** out);

 private:
  // Where the packed constants of a step come from.
  enum class Packed : uint8_t {
    kNone,     // it has none
    kHere,     // this step packs them
    kEarlier,  // an earlier step of the session has
    kShared,   // they are in SessionOptions::packed_weights
  };
  struct Choice {
    uint8_t slot = 0;  // in slots_
    uint8_t pool = RunStep::kOneThread;
    CallUse call = CallUse::kLaidOut;
    Packed from = Packed::kNone;
    uint32_t packed = 0;                             // inputs that a run does not read
    uint32_t packing_inputs = 0;                     // of these, the ones that are in packed_bytes
    uint32_t earlier_program = 0, earlier_step = 0;  // kEarlier
    const std::byte* shared = nullptr;               // kShared
    size_t packed_bytes = 0, prepared = 0, device_prepared = 0, scratch = 0;
  };
  // Where the first pass notes a choice for the second: in place of the step to be.
  static_assert(sizeof(Choice) <= sizeof(RunStep) && alignof(Choice) <= alignof(RunStep));
  struct Slot {
    Backend* backend = nullptr;
    bool open = false, used = false;
    uint8_t index = 0;  // in SessionState::backends
    size_t bytes = 0;   // that the backend takes for itself, and in its own memory
    size_t device_bytes = 0;
  };
  struct Device {
    uint8_t kind = 0;  // of memory, in the profile
    uint8_t slot = 0;
    size_t arena = 0, own = 0;  // bytes of its regions, and that the backend takes there for itself
    BumpArena prepared;
    std::byte* block = nullptr;
  };
  // Where a step is computed: by the backend of devices_[device], or on the host (-1).
  struct StepPlace {
    int device = -1;
    bool transfer = false;
  };
  struct Bound {
    uint32_t value = 0;
    std::byte* data = nullptr;
    size_t bytes = 0;  // of the value
    const char* name = "";
  };

  Status resolve();
  // Bindings (bindings.cc).
  Status resolve_bindings();
  Status resolve_binding(const Binding& binding);
  Status check_blocks() const;
  Status check_memory(std::span<const std::byte> memory) const;
  Status resolve_devices();
  Status measure_pass(Requirements* needs);

  // The walk; what differs between the passes is whether the arenas have memory.
  bool building() const { return !control_.measuring(); }
  size_t used_slots() const;
  // Devices (devices.cc).
  StepPlace place_of(const Frame& frame, const fb::Step& step, const fb::StepPlan& plan) const;
  Status missing(uint8_t kind, const char* why) const;
  uint32_t states_on(uint32_t device, bool updates) const;
  uint32_t with_states(bool updates) const;
  uint32_t extra_steps(const Frame& frame) const;
  void add_extra(uint32_t devices, Status (*run)(void*, const OpCall&, RunContext&), Frame& frame, size_t* at,
                 RunStep** next);
  Status end_group(int* group, int next);
  Status choose_on(const Device& device, const OpCall& call, const fb::StepPlan& plan, Choice* choice);
  Status require(const Device& device, DeviceRequirements* needs) const;
  Status take_devices(const Requirements& needs);
  CopyItem* describe_states(const Frame& frame, int device, bool updates, CopyItem* items) const;
  Status walk_entry();
  Status walk(Frame& frame);
  // Prepared values (prepare.cc). A value that some step's kernel reads in every run stays in prepared
  // memory; one that is only packed is in scratch memory while that step is prepared.
  Status walk_prepare(Frame& frame, uint64_t* kept);
  size_t prepared_bytes(const Frame& frame, uint32_t index) const;
  Status plan_chain(const Frame& frame, uint32_t index, PrepareChain* chain);
  Status run_chain(const Frame& frame, const PrepareChain& chain, std::byte* scratch, std::byte* target);
  Status keep(Frame& frame, uint32_t index, std::byte* scratch, size_t used);
  // How the operands of a step that are prepared values are brought.
  struct Bring {
    uint32_t packs = 0;   // those of these inputs into scratch memory
    uint32_t passes = 0;  // those of these inputs not at all
    size_t own = 0;       // bytes of prepared memory that the step takes next
    size_t scratch = 0;   // bytes that it needs besides while it is prepared
  };
  static Bring bring_of(const Choice& choice);
  Status bring_operands(Frame& frame, const fb::Step& step, const Bring& bring, std::span<TensorView> inputs,
                        std::byte** scratch_of_step);
  std::byte* scratch(size_t bytes) const;
  void need_scratch(size_t bytes, size_t own);
  Choice* note(size_t at) const;
  // The memory of a step besides RunStep.
  struct StepParts {
    Operand* operands = nullptr;
    KeptCall* kept = nullptr;
    TensorView* views = nullptr;
    void* attributes = nullptr;
  };
  Status take_parts(const fb::Step& step, CallUse use, StepParts* parts);
  void describe(const Frame& frame, uint32_t s, CallUse use, uint8_t pool, const StepParts& parts,
                RunStep* run) const;
  void describe_prepared(const Frame& frame, const fb::Step& step, RunStep* run) const;
  Status walk_step(Frame& frame, uint32_t s, StepPlace place, size_t at, RunStep* run);
  Status walk_control(Frame& frame, uint32_t s, RunStep* run);
  Status walk_if(Frame& frame, uint32_t s, std::byte* workspace, RunStep* run);
  Status walk_loop(Frame& frame, uint32_t s, std::byte* workspace, RunStep* run);
  Status walk_body(Frame& owner, uint32_t s, uint32_t program, std::byte* workspace, Frame& frame,
                   StepList& measured);
  Frame body_of(const Frame& owner, uint32_t s, uint32_t program) const;

  // Fills the operands of a step and decodes its attributes.
  OpCall make_call(const Frame& frame, const fb::Step& step, TensorView* views, void* attributes) const;
  Operand operand_of(const Frame& frame, uint32_t value) const;
  TensorView view_of(const Frame& frame, uint32_t value) const;
  TensorView view_of(const Frame& frame, int32_t value) const;  // -1: absent
  uint32_t offset_of(const void* list) const;
  std::byte* address(const Frame& frame, const fb::Placement& placement) const;
  std::byte* workspace_of(const Frame& frame, const fb::StepPlan& plan) const;
  CopyItem copy_item(const TensorView& from, const TensorView& to) const;

  // Packed constants (packed.cc).
  struct Search;
  int64_t constant_of(const Frame& frame, int32_t value) const;
  bool key_of(const Frame& frame, const fb::Step& step, const Choice& choice, const Packing& packing,
              PackedKey* key) const;
  void forget_packed();
  Status find_packed(Frame& frame, uint32_t s, const Packing& packing, Choice* choice);
  Status find_earlier(Frame& frame, uint32_t s, Search* search);
  Status search_steps(const Frame& frame, uint32_t begin, uint32_t end, Search* search);
  Status search_step(const Frame& frame, uint32_t s, Search* search);
  Status compare_step(const Frame& frame, const fb::Step& step, const fb::StepPlan& plan, Search* search);
  void note_packed(const Frame& frame, uint32_t s, std::byte* data, PackedAt* at);
  Status pack(const Choice& choice, const OpCall& call, std::span<std::byte> bytes,
              ThreadPool* threads) const;
  std::byte* packed_earlier(const Choice& choice) const;
  Status take_packed(const Frame& frame, uint32_t s, const OpCall& call, const Choice& choice,
                     std::span<const std::byte>* packed);
  // Packed weights (packed_weights.cc).
  Status measure_packings(size_t* control, size_t* bytes);
  Status walk_packings();
  Status pack_program(Frame& frame);
  bool packs_apart(const Frame& frame, const fb::Step& step, const PackedKey& key) const;
  Status pack_step(Frame& frame, uint32_t s);

  // Choices (choose.cc).
  int thread_count() const;
  Status measure_step(Backend& backend, const OpCall& call, const fb::StepPlan& plan, StepNeeds* needs,
                      uint8_t* pool) const;
  Status take_pools();
  Status open_slot(Slot& slot);
  Status choose(const OpCall& call, const fb::StepPlan& plan, Choice* choice, Packing* packing,
                Status* refusal);
  const char* expected_backend(const fb::StepPlan& plan) const;
  Status note_fallback(const Frame& frame, uint32_t s, const fb::StepPlan& plan, const Choice& choice,
                       const Status& refusal);
  Status try_backend(size_t slot, const OpCall& call, const fb::StepPlan& plan, Choice* choice,
                     Packing* packing, bool last);
  Status prepare_step(const OpCall& call, const Choice& choice, int device, std::span<const std::byte> packed,
                      std::byte* scratch, RunStep* run);
  void close_all();

  const Model& model_;
  const SessionOptions& options_;
  const fb::Profile* profile_ = nullptr;
  KernelBackend local_reference_{"reference", {}};
  Slot slots_[kMaxBackends + 1];  // profile's backends in order (or the one requested), then the reference
  size_t slot_count_ = 0;
  bool override_ = false;  // slots_[0 .. slot_count_ - 2] are offered every step
  Bound bound_[kMaxBindings];
  size_t bound_count_ = 0;

  BumpArena control_, prepared_;
  std::byte* prepared_end_ = nullptr;
  uint8_t kinds_[kMaxRegions] = {};  // of the regions' memory; 0: the host's
  Device devices_[kMaxDevices];
  uint32_t device_count_ = 0;
  size_t arena_bytes_ = 0;    // the host's regions', which are free for scratch until the first run
  size_t prepared_peak_ = 0;  // of prepared memory, where it has to hold scratch as well
  size_t packed_bytes_ = 0;   // of packed constants in prepared memory
  bool packs_only_ = false;   // creates packed weights, not a session
  PackedEntry* entries_ = nullptr;
  uint32_t packed_count_ = 0;
  // A bit for constants that a step has packed: set for these and, where there are more constants than bits,
  // for some others.
  static constexpr size_t kPackedBits = 4096;
  uint64_t has_packed_[kPackedBits / 64] = {};
  static constexpr size_t kPackedLists = 64;
  PackedAt* packed_at_[kPackedLists] = {};  // while building, by step
  std::byte* regions_[kMaxRegions] = {};
  std::span<std::byte> memory_;  // given to create()
  uint32_t most_operands_ = 0;
  uint32_t fallbacks_ = 0;
  SessionState* session_ = nullptr;
};

}  // namespace sinter::detail
