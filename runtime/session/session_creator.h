// Creates a session. Its phases:
//
//   resolve   entry.cc, bindings.cc, devices.cc  what the options name
//   measure   create.cc                          a walk with arenas that only measure: all sizes
//   place     create.cc, devices.cc              memory for regions, backends and devices
//   prepare   create.cc                          the same walk with memory: the session is ready
//
// The caller's memory has, in this order, control structures (SessionState, the steps of each program, their
// operands and attributes, the list of backends), the regions of the plan that are not shared, and prepared
// memory (backends, queues, widened and packed constants, each step's data).
//
// walk.cc has the walk over the programs, create_step.cc what it does for a step, create_control.cc for an If
// or Loop, and ports.cc what describes the session to its caller.
#pragma once

#include "runtime/session/packings.h"
#include "runtime/session/prepare.h"

namespace sinter::detail {

class SessionCreator {
 public:
  // `pointers` is the size of the pointers of the machine that the session is measured for.
  SessionCreator(const Model& model, const SessionOptions& options, Pointers pointers = Pointers::kHere)
      : entry_(model, options), memory_(pointers) {}
  // Asks every step's backends; fills `needs`.
  Status measure(Requirements* needs);
  // If creation fails, `*out` may be set, and has to be destroyed.
  Status create(std::span<std::byte> memory, SessionState** out);

 private:
  bool building() const { return memory_.building(); }

  // Measuring and placing.
  Status measure_memory(Requirements* needs);
  Status check_shared_state() const;
  Status check_shared(std::span<std::byte> shared, size_t bytes, std::span<std::byte> memory,
                      const char* what, const char* short_of) const;
  Status take_regions(std::span<std::byte> memory, std::span<std::byte> own);
  Status place(const Requirements& needs, SessionState** out);

  // The walk, in both passes.
  Status take_structures();
  Status walk_entry();
  Status walk(Frame& frame);
  Choice* note(size_t at) const;
  // Measures a step that is not an If or Loop. The first pass leaves the choice for the second in `*noted`,
  // which is null if the caller gave no memory.
  Status measure_step(Frame& frame, uint32_t s, Choice* noted);
  Status choose_step(const Frame& frame, uint32_t s, Choice* choice, Packing* packing);
  Status build_step(Frame& frame, uint32_t s, Choice choice, RunStep* run);
  Status prepare_step(const Frame& frame, const fb::Step& step, const Choice& choice, const Brought& brought,
                      std::span<const std::byte> packed, std::span<std::byte> fresh, RunStep* run);
  // Takes the memory of a step besides RunStep, and, where there is memory, sets the fields of `*run` that
  // the plan gives: places of operands, workspace, threads.
  Status lay_out(const Frame& frame, uint32_t s, CallUse use, uint8_t pool, RunStep* run);
  // Lets the step before `*next` compute it as well, if one backend has both and accepts that
  // (Backend::fuse).
  void fuse(Frame& frame, RunStep* next) const;
  Status walk_control(Frame& frame, uint32_t s, RunStep* run);
  Status walk_if(Frame& frame, uint32_t s, RunStep* run);
  Status walk_loop(Frame& frame, uint32_t s, RunStep* run);
  Status walk_body(const Frame& owner, uint32_t s, uint32_t program, Frame& body, StepList& measured);
  CopyItem copy_item(const TensorView& from, const TensorView& to) const;
  // The session's ports.
  Status walk_ports(const Frame& frame);
  void describe_ports(const Frame& frame) const;
  void describe_given(const Frame& frame, GivenAxis* axes) const;
  CopyItem* describe_states(const Frame& frame, uint8_t memory, bool updates, CopyItem* items) const;

  Entry entry_;
  CreationMemory memory_;
  Chooser chooser_{entry_};
  Devices devices_{entry_, chooser_};
  PreparedValues prepared_values_{entry_, memory_};
  Packings packings_{entry_, chooser_, devices_, memory_};
  std::span<std::byte> given_;                // to create()
  size_t value_bytes_ = 0, state_bytes_ = 0;  // of the host's regions that hold values of a run, or state
  uint32_t most_operands_ = 0;
  SessionState* session_ = nullptr;
};

}  // namespace sinter::detail
