// A frame: a program of the model while its steps are created, which is the entry's, or a body of If or Loop
// inside its owner's workspaces. It gives operands and calls, with addresses where its regions have memory.
#pragma once

#include "runtime/session/session_state.h"

namespace sinter::detail {

struct Entry;

// A step's operands and attributes, on the stack while a step that is not an If or Loop is created.
struct StepRoom {
  TensorView views[kMaxOperands];
  AttrStorage attributes;
};

// The memory whose backend computes a step (0: the host's), by its kind in the profile.
struct StepPlace {
  uint8_t memory = 0;
  bool transfer = false;  // between that memory and the host's
};

// Sets of memories are numbers with a bit for each kind.
inline constexpr uint32_t kHostMemory = 1;
constexpr uint32_t memory_bit(uint8_t kind) { return uint32_t{1} << kind; }

// The number of prepared values that a walk tracks; those of further prepare steps stay in any case.
inline constexpr uint32_t kTracked = 4096;
// A bit for each tracked value, which is set if the session keeps the value.
struct TrackedValues {
  uint64_t kept[kTracked / 64] = {};
};

struct Frame {
  const Entry* entry = nullptr;
  const fb::Program* program = nullptr;
  const fb::ProgramPlan* plan = nullptr;
  uint32_t index = 0;  // of the program
  const Frame* parent = nullptr;
  uint32_t owner = 0;  // the If or Loop, a step of the parent
  ControlShape shape;
  std::byte* regions[kMaxRegions] = {};  // where the plan's regions begin; null: without memory
  uint8_t kinds[kMaxRegions] = {};       // of the regions' memory; 0: the host's
  // For each prepare step, the permanent address of its value (null: it has none), and, during a walk, a bit
  // for those that have one.
  std::byte** prepared = nullptr;
  uint64_t* kept = nullptr;
  uint32_t cursor = 0;  // where the search for an equal packing begins (packings.cc)
  StepList* steps = nullptr;
  RunStep* first = nullptr;  // the last step that runs by itself, or with steps fused with it

  uint32_t step_count() const { return length(program->steps()); }
  const fb::Step& step(uint32_t s) const { return *program->steps()->Get(s); }
  const fb::StepPlan& step_plan(uint32_t s) const { return *plan->steps()->Get(s); }
  const fb::Value& value(uint32_t v) const { return *program->values()->Get(v); }
  uint32_t first_prepared() const {  // the first of the prepared values, of which there are some
    return static_cast<uint32_t>(items(program->prepare()->Get(0)->outputs())[0]);
  }
  bool is_prepared(int32_t v) const {
    return v >= 0 && value(static_cast<uint32_t>(v)).kind() == fb::ValueKind::Prepared;
  }
  // Returns whether a state is placed in the region, which then has to persist between runs.
  bool holds_state(uint32_t region) const;
  // Returns the frame of a body of step `s`.
  Frame body(uint32_t s, uint32_t program) const;

  Operand operand_of(uint32_t v) const;
  TensorView view_of(uint32_t v) const;
  TensorView view_of(int32_t v) const;  // -1: absent
  std::byte* workspace_of(uint32_t s) const;
  uint32_t offset_of(const void* part) const;  // in the model's FlatBuffer
  // Returns the call of a step, whose operands and attributes are in the room that the caller gives.
  OpCall make_call(const fb::Step& step, TensorView* views, void* attributes) const;
  OpCall make_call(const fb::Step& step, StepRoom* room) const {
    return make_call(step, room->views, &room->attributes);
  }

  // Returns the number of the model's constant that the value is, or a negative one of the value and its
  // program.
  int64_t constant_of(int32_t v) const;
  // Refuses a step that reads a constant which the file lacks (left_out.cc). `without`: bit i for an input
  // whose data nothing reads.
  Status check_present(const fb::Step& step, uint32_t without) const;

  // Returns the memories of a step's operands and workspaces (devices.cc).
  uint32_t memories_of(uint32_t s) const;
  StepPlace place_of(uint32_t s) const;
  // Returns the devices that an If or Loop uses, for the steps of its bodies or for copies.
  uint32_t devices_within(uint32_t s) const;
  // Returns the devices on which the plan places states, or updates them.
  uint32_t devices_with_states(bool updates) const;

 private:
  // Returns the operand of the owner that the program captures as this value.
  uint32_t outer_of(uint32_t v) const;
  std::byte* address(const fb::Placement& placement) const;
  int planned_memory(uint32_t v) const;
};

// A run waits for devices so that host memory that a transfer reads or writes is touched only when that is
// done. These are the devices that it has not waited for yet.
//
// Along the steps in their order, everything that a device has started and not been waited for since is in
// `started`, and in `transfers` if a transfer is among it. A step on the host waits for all transfers; so
// does a transfer, but for those of its own device, which come before it in any case. A control step is one
// on the host, and a body ends with a wait for its transfers, so that none is in progress where the next trip
// begins.
struct Waits {
  uint32_t started = 0, transfers = 0;

  uint32_t before(StepPlace place) {
    const uint32_t self = memory_bit(place.memory) & ~kHostMemory;
    const uint32_t waited = self == 0 || place.transfer ? transfers & ~self : 0;
    started = (started & ~waited) | self;
    transfers = (transfers & ~waited) | (place.transfer ? self : 0);
    return waited;
  }
};

using RunExtra = Status(void* state, const OpCall& call, RunContext& context);

// Goes through what a run does for a program: `step(s, place)` for each of its steps that is not elided, in
// their order, and `extra(devices, run)` for a set of devices, perhaps none, for each of which the run also
// waits or updates states.
template <class Step, class Extra>
Status in_order(const Frame& frame, const Step& step, const Extra& extra) {
  Waits waits;
  for (uint32_t s = 0; s < frame.step_count(); ++s) {
    if (frame.step_plan(s).elided()) continue;
    const StepPlace place = frame.place_of(s);
    SINTER_RETURN_IF_ERROR(extra(waits.before(place), run_wait));
    waits.started |= frame.devices_within(s);
    SINTER_RETURN_IF_ERROR(step(s, place));
  }
  if (frame.parent != nullptr) return extra(waits.transfers, run_wait);
  SINTER_RETURN_IF_ERROR(extra(frame.devices_with_states(true), run_updates));
  // States that have been reset are awaited, too.
  return extra(waits.started | frame.devices_with_states(false), run_wait);
}

}  // namespace sinter::detail
