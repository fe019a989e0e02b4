// How a session, or packed weights, are created: one walk over an entry program and what it contains, done
// twice.
//
//   create.cc          the two passes of a session       prepare.cc   prepared values
//   packed_weights.cc  the two passes of packed weights  packed.cc    which constants are packed where
//   walk.cc            the walk over steps               choose.cc    a backend for each step
//   walk_control.cc    If, Loop and their bodies         step_call.cc what run() makes of the result
//   devices.cc         memory of devices                 bindings.cc  the caller's buffers
//   fuse.cc            steps computed together            lengths.cc   lengths that the caller gives
//   left_out.cc        constants that the file lacks      packed_only.cc  which ones a file can lack
#pragma once

#include "runtime/session/packed.h"
#include "runtime/session/session_state.h"
#include "sinter/packed_weights.h"

namespace sinter::detail {

// A program while its steps are created: the entry, or a subprogram inside its owner's workspaces.
struct Frame {
  const fb::Program* program = nullptr;
  const fb::ProgramPlan* plan = nullptr;
  uint32_t index = 0;
  const Frame* parent = nullptr;
  const fb::Step* owner = nullptr;
  uint32_t owner_index = 0;  // its number in the parent
  ControlShape shape;
  std::byte* regions[kMaxRegions] = {};  // where those of the plan begin
  uint8_t kinds[kMaxRegions] = {};       // of their memory; 0: the host's
  // Per prepare step: the permanent address of its value, null if it has none; and, during a walk, which have
  // one.
  std::byte** prepared = nullptr;
  uint64_t* kept = nullptr;
  uint32_t cursor = 0;  // where the search for an equal packing begins (packed.cc)
  StepList* steps = nullptr;
  RunStep* first = nullptr;  // the last step that runs by itself, or with steps fused with it
};

// For which devices a run waits, and where, so that host memory that a transfer reads or writes is touched
// only when that is done. A set of devices is a number with a bit for each.
//
// Walked along the steps in their order: everything that a device has started and not been waited for since
// is in `started`, in `transfers` if a transfer is among it. A step on the host waits for all transfers; so
// does a transfer, but for those of its own device, which come before it in any case. A control step is one
// on the host, and a body ends with a wait for its transfers, so that none is in progress where the next trip
// begins.
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

// The prepared values that walking tracks; those of further prepare steps stay in any case.
inline constexpr uint32_t kTracked = 4096;

// How one prepared value is computed: its chain of prepare steps, and the places in scratch memory of what
// they need.
struct PrepareChain {
  uint32_t first = 0, last = 0;  // prepare steps
  uint64_t needed = 0;           // bit i: step first + i is one of the chain
  size_t value[kMaxPrepareChain] = {}, workspace[kMaxPrepareChain] = {},
         workspace_bytes[kMaxPrepareChain] = {};
  size_t bytes = 0;
};

// Room for the call of one step that is not an If or Loop, on the stack while it is created.
struct StepRoom {
  TensorView views[kMaxOperands];
  AttrStorage attributes;
};

// Which constants of a model packings replace (packed_only.cc).
struct Survey {
  enum Mark : uint64_t { kUnread, kReplaced, kKept };
  const PackedState& packed;
  std::span<uint64_t> marks;  // of each constant
};

// Creates a session, or packed weights, in two passes over the same code: the first measures, the second
// takes memory and prepares.
class Creator {
 public:
  // `pointers`: those of the machine that is measured for.
  Creator(const Model& model, const SessionOptions& options, Pointers pointers = Pointers::kHere)
      : model_(model), options_(options), pointers_(pointers) {}
  // Asks every step's backends; fills `needs`.
  Status measure(Requirements* needs);
  // On failure `*out` may be set: destroy it.
  Status create(std::span<std::byte> memory, SessionState** out);
  // The same for packed weights (packed_weights.cc).
  Status measure_packed(Requirements* needs);
  Status create_packed(std::span<std::byte> memory, const PackedState** out);

  // Marks every constant, for sessions of all entries that find `packed` (packed_only.cc).
  static Status survey(const Model& model, const PackedWeights& packed, SessionOptions options,
                       Survey& survey);

  static const PackedInFile kPackedInFile;

 private:
  // Where the packed constants of a step come from.
  enum class Packed : uint8_t {
    kNone,     // it has none
    kHere,     // this step packs them
    kEarlier,  // an earlier step of the session has
    kShared,   // they are in SessionOptions::packed_weights or in the model's file
  };
  struct Choice {
    uint8_t slot = 0;  // in slots_
    uint8_t pool = RunStep::kOneThread;
    int8_t device = -1;  // of devices_, whose memory the step and its packed constants are in
    CallUse call = CallUse::kLaidOut;
    Packed from = Packed::kNone;
    uint32_t packed = 0;                             // inputs that a run does not read
    uint32_t packing_inputs = 0;                     // of these, the ones that are in packed_bytes
    uint32_t earlier_program = 0, earlier_step = 0;  // kEarlier
    const std::byte* shared = nullptr;               // kShared
    size_t packed_bytes = 0, prepared = 0, device_prepared = 0, staging = 0, scratch = 0;
  };
  // Where the first pass notes a choice for the second: in place of the step to be.
  static_assert(sizeof(Choice) <= sizeof(RunStep) && alignof(Choice) <= alignof(RunStep));
  struct Slot {
    Backend* backend = nullptr;
    bool open = false, used = false;
    uint8_t index = 0;  // in SessionState::backends
    size_t bytes = 0;   // that the backend takes for itself
  };
  struct Device {
    uint8_t kind = 0;  // of memory, in the profile
    uint8_t slot = 0;
    size_t arena = 0;                               // bytes of its regions
    size_t state = 0;                               // of these: of regions that hold state
    size_t own = 0, own_host = 0, own_staging = 0;  // bytes that the queue takes for itself
    BumpArena prepared, staging;                    // that steps take
    std::byte* block = nullptr;
  };
  // Where a step is computed: by the backend of devices_[device], or on the host (-1).
  struct StepPlace {
    int device = -1;
    bool transfer = false;
  };

  Status resolve();
  Status resolve_profile();
  void enter(uint32_t entry);
  // Bindings (bindings.cc).
  Status resolve_bindings();
  Status resolve_binding(const Binding& binding);
  size_t bound_bytes(size_t k) const;
  Status resolve_device_binding(const Binding& binding, uint32_t value, uint8_t* kind) const;
  bool host_uses(uint32_t value, uint32_t device) const;
  uint8_t memory_of(const Frame& frame, const fb::Placement& p) const;
  Frame entry_frame() const;
  bool packs_every_entry() const { return packs_only_ && options_.entry == kEveryEntry; }
  Status check_blocks() const;
  Status check_memory(std::span<const std::byte> memory, const char* what) const;
  Status take_regions(std::span<std::byte> memory, std::span<std::byte> own);
  // Of memory for values, which is scratch until the first run.
  size_t scratch_bytes() const {
    return options_.arena != nullptr || options_.state != nullptr ? arena_bytes_ - state_bytes_
                                                                  : arena_bytes_;
  }
  // Of the host's regions: those that are in the session's own memory.
  size_t own_region_bytes() const {
    return (options_.arena != nullptr ? 0 : arena_bytes_ - state_bytes_) +
           (options_.state != nullptr ? 0 : state_bytes_);
  }
  Status check_shared(std::span<std::byte> shared, size_t bytes, std::span<std::byte> memory,
                      const char* what, const char* short_of) const;
  Status resolve_devices();
  bool uses_device(uint8_t kind) const;
  void find_kinds();
  Status resolve_devices_of_entry();
  bool holds_state(uint32_t region) const;
  Status measure_pass(Requirements* needs);
  Status check_shared_state() const;

  // The walk; what differs between the passes is whether the arenas have memory.
  bool building() const { return !control_.measuring(); }
  size_t used_slots() const;
  // Devices (devices.cc).
  StepPlace place_of(const Frame& frame, const fb::Step& step, const fb::StepPlan& plan) const;
  int planned_memory(const Frame& frame, uint32_t value) const;
  uint32_t devices_of(const Frame& frame, const fb::Step& step, const fb::StepPlan& plan) const;
  DeviceQueue* queue_of(const TensorView& view) const;
  Status missing(uint8_t kind, const char* why) const;
  uint32_t states_on(uint32_t device, bool updates) const;
  uint32_t with_states(bool updates) const;
  uint32_t extra_steps(const Frame& frame) const;
  void add_extra(uint32_t devices, Status (*run)(void*, const OpCall&, RunContext&), Frame& frame, size_t* at,
                 RunStep** next);
  Status end_group(int* group, int next);
  Status choose_on(const Device& device, const OpCall& call, const fb::StepPlan& plan, Choice* choice,
                   Packing* packing);
  Status require(const Device& device, DeviceRequirements* needs) const;
  Status take_devices(const Requirements& needs);
  Status measure_queue(Device& device);
  Status brought_block(const DeviceRequirements& need, const Device& device,
                       std::span<std::byte>* block) const;
  Status open_queue(uint32_t device, BumpArena& prepared);
  void describe_given(const Frame& frame, GivenAxis* axes) const;
  CopyItem* describe_states(const Frame& frame, int device, bool updates, CopyItem* items) const;
  Status walk_entry();
  Status walk(Frame& frame);
  // Prepared values (prepare.cc). A value that some step's kernel reads in every run stays in prepared
  // memory; one that is only packed is in scratch memory while that step is prepared.
  Status walk_prepare(Frame& frame, uint64_t* kept);
  size_t prepared_bytes(const Frame& frame, uint32_t index) const;
  Status measure_prepare(const Frame& frame, uint32_t index, size_t* workspace);
  Status plan_chain(const Frame& frame, uint32_t index, PrepareChain* chain);
  // Constants that the file lacks (left_out.cc). `without`: bit i for an input whose data nothing reads.
  Status check_present(const Frame& frame, const fb::Step& step, uint32_t without) const;
  Status run_chain(const Frame& frame, const PrepareChain& chain, std::byte* scratch, std::byte* target);
  Status keep(Frame& frame, uint32_t index, const PrepareChain& chain, std::byte* scratch);
  // The preparation of a step's operands that are prepared values.
  struct Bring {
    uint32_t packs = 0;   // those of these inputs into scratch memory
    uint32_t passes = 0;  // those of these inputs not at all
    size_t own = 0;       // bytes of prepared memory that the step takes next
    size_t scratch = 0;   // bytes that it needs besides while it is prepared
  };
  static Bring bring_of(const Choice& choice);
  struct Brought {
    std::byte* inputs[kMaxOperands] = {};  // null: not brought
    std::byte* scratch = nullptr;          // for the step
    void give(const OpCall& call) const {
      for (size_t i = 0; i < call.inputs.size(); ++i)
        if (inputs[i] != nullptr) call.inputs[i].data = inputs[i];
    }
  };
  Status bring_operands(Frame& frame, const fb::Step& step, const Bring& bring, Brought* brought);
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
  // A step that is not an If or Loop, in either pass. `at`: where its RunStep is in the control structures.
  Status measure_step_at(Frame& frame, uint32_t s, StepPlace place, size_t at);
  Status build_step_at(Frame& frame, uint32_t s, StepPlace place, size_t at, RunStep* run);
  Status choose_step(const Frame& frame, uint32_t s, StepPlace place, Choice* choice, Packing* packing);
  // Leaves a step to the backend's run of the one right before it, if that takes it (fuse.cc).
  void fuse(Frame& frame, RunStep* next) const;
  Status walk_control(Frame& frame, uint32_t s, RunStep* run);
  Status walk_if(Frame& frame, uint32_t s, RunStep* run);
  Status walk_loop(Frame& frame, uint32_t s, RunStep* run);
  Status walk_body(Frame& owner, uint32_t s, uint32_t program, Frame& frame, StepList& measured);
  Frame body_of(const Frame& owner, uint32_t s, uint32_t program) const;

  // Fills the operands of a step and decodes its attributes.
  OpCall make_call(const Frame& frame, const fb::Step& step, TensorView* views, void* attributes) const;
  OpCall make_call(const Frame& frame, const fb::Step& step, StepRoom* room) const {
    return make_call(frame, step, room->views, &room->attributes);
  }
  uint32_t outer_of(const Frame& frame, uint32_t value) const;
  Operand operand_of(const Frame& frame, uint32_t value) const;
  TensorView view_of(const Frame& frame, uint32_t value) const;
  TensorView view_of(const Frame& frame, int32_t value) const;  // -1: absent
  uint32_t offset_of(const void* part) const;
  std::byte* address(const Frame& frame, const fb::Placement& placement) const;
  std::byte* workspace_of(const Frame& frame, const fb::StepPlan& plan) const;
  CopyItem copy_item(const TensorView& from, const TensorView& to) const;

  // Packed constants (packed.cc).
  struct Search;
  int64_t constant_of(const Frame& frame, int32_t value) const;
  // For keys. Only PackedWeights and files need numbers that entries share, so that programs without them do
  // not link what finds these.
  int64_t number_of(const Frame& frame, int32_t value) const {
    return shared_number_ != nullptr ? shared_number_(*this, frame, value) : constant_of(frame, value);
  }
  static int64_t shared_number_of(const Creator& self, const Frame& frame, int32_t value);
  bool key_of(const Frame& frame, const fb::Step& step, const Choice& choice, const Packing& packing,
              PackedKey* key) const;
  const std::byte* find_in_file(const PackedKey& key, const Choice& choice) const;
  void forget_packed();
  Status find_packed(Frame& frame, uint32_t s, const Packing& packing, Choice* choice);
  Status find_earlier(Frame& frame, uint32_t s, Search* search);
  Status search_entries(Search* search);
  Status search_steps(const Frame& frame, uint32_t begin, uint32_t end, Search* search);
  Status search_step(const Frame& frame, uint32_t s, Search* search);
  Status compare_step(const Frame& frame, const fb::Step& step, const fb::StepPlan& plan, Search* search);
  void note_packed(const Frame& frame, uint32_t s, std::byte* data, PackedAt* at);
  Status choose_at(StepPlace place, const OpCall& call, const fb::StepPlan& plan, Choice* choice,
                   Packing* packing, Status* refusal);
  BumpArena& packed_arena(const Choice& choice) {
    return choice.device >= 0 ? devices_[choice.device].prepared : prepared_;
  }
  Status pack(const Choice& choice, const OpCall& call, std::span<std::byte> bytes, std::byte* scratch,
              ThreadPool* threads) const;
  std::byte* packed_earlier(const Choice& choice) const;
  Status take_packed(const Frame& frame, uint32_t s, const Choice& choice, std::span<const std::byte>* packed,
                     std::span<std::byte>* fresh);
  // Packed weights (packed_weights.cc).
  Status open_packing_queues(const Requirements& needs);
  void close_packing_queues();
  Status walk_packings();
  Status pack_program(Frame& frame);
  bool packs_apart(const Frame& frame, const fb::Step& step, const Packing& packing) const;
  Status pack_step(Frame& frame, uint32_t s, StepPlace place);
  // Which constants a file can lack (packed_only.cc).
  Status survey_program(const Frame& frame, Survey& survey);
  Status find_replaced(const Frame& frame, uint32_t s, const Survey& survey, uint32_t* replaced);
  void mark_operand(const Frame& frame, int32_t value, Survey::Mark mark, Survey& survey) const;

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
  Status prepare_step(const Frame& frame, const fb::Step& step, const Choice& choice, int device,
                      const Brought& brought, std::span<const std::byte> packed, std::span<std::byte> fresh,
                      RunStep* run);
  void close_all();

  const Model& model_;
  const SessionOptions& options_;
  const Pointers pointers_;
  uint32_t profile_index_ = 0;
  const fb::Profile* profile_ = nullptr;
  // The entry program and its plan.
  uint32_t program_index_ = 0;
  const fb::Program* program_ = nullptr;
  const fb::ProgramPlan* plan_ = nullptr;
  KernelBackend local_reference_{"reference", {}};
  Slot slots_[kMaxBackends + 1];  // profile's backends in order (or the one requested), then the reference
  size_t slot_count_ = 0;
  bool override_ = false;                  // slots_[0 .. slot_count_ - 2] are offered every step
  uint32_t bound_[kMaxBindings];           // the value of each of options_.bindings
  uint8_t bound_kind_[kMaxBindings] = {};  // of memory
  size_t bound_count_ = 0;

  StructureArena control_;
  BumpArena prepared_;
  std::byte* prepared_end_ = nullptr;
  uint8_t kinds_[kMaxRegions] = {};  // of the regions' memory; 0: the host's
  Device devices_[kMaxDevices];
  DeviceQueue* queues_[kMaxDevices] = {};  // while building
  uint32_t device_count_ = 0;
  size_t arena_bytes_ = 0;    // the host's regions', which are free for scratch until the first run
  size_t state_bytes_ = 0;    // of these: of regions that hold state
  size_t prepared_peak_ = 0;  // of prepared memory, where it has to hold scratch as well
  size_t packed_bytes_ = 0;   // of packed constants in prepared memory
  bool packs_only_ = false;   // creates packed weights, not a session
  PackedState::Number* shared_number_ = nullptr;  // of PackedWeights and of the file; null: constant_of()
  Status (Creator::*search_before_)(Search*) = nullptr;  // in earlier entries, while packing every entry
  uint32_t entry_ = 0;  // the one that is walked; while packing every entry: the latest
  PackedEntry* entries_ = nullptr;
  uint32_t packed_count_ = 0;
  // A bit for constants that a step has packed: set for these and, where there are more constants than bits,
  // for some others.
  static constexpr size_t kPackedBits = 4096;
  uint64_t has_packed_[kPackedBits / 64] = {};
  static constexpr size_t kPackedLists = 64;
  PackedAt* packed_at_[kPackedLists] = {};  // while building, by step
  std::byte* regions_[kMaxRegions] = {};
  std::byte* scratch_ = nullptr;
  std::span<std::byte> memory_;  // given to create()
  uint32_t most_operands_ = 0;
  uint32_t fallbacks_ = 0;
  SessionState* session_ = nullptr;
};

}  // namespace sinter::detail
