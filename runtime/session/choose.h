// Measuring: the backend that computes a step, and what it takes.
#pragma once

#include "runtime/session/entry.h"

namespace sinter::detail {

// The result of asking backends for a step, and the source of its packed constants (packings.h).
struct Choice {
  enum class Packed : uint8_t {
    kNone,     // the step has none
    kHere,     // this step packs them
    kEarlier,  // an earlier step of the session has packed them
    kShared,   // they are in SessionOptions::packed_weights or in the model's file
  };
  uint8_t slot = 0;  // in Entry::backends
  uint8_t pool = RunStep::kOneThread;
  uint8_t memory = 0;  // that of the step and its packed constants
  CallUse call = CallUse::kLaidOut;
  Packed from = Packed::kNone;
  uint32_t packed = 0;                             // inputs that a run does not read
  uint32_t packing_inputs = 0;                     // of these, the ones that are in packed_bytes
  uint32_t earlier_program = 0, earlier_step = 0;  // kEarlier
  const std::byte* shared = nullptr;               // kShared
  size_t packed_bytes = 0, prepared = 0, device_prepared = 0, staging = 0, scratch = 0;

  void accept(size_t backend, const StepNeeds& needs) {
    slot = static_cast<uint8_t>(backend);
    call = needs.call;
    packed = needs.packed;
    prepared = needs.prepared, device_prepared = needs.device_prepared;
    staging = needs.staging, scratch = needs.scratch;
  }
};
// The first pass leaves the choice for the second in place of the step to be.
static_assert(sizeof(Choice) <= sizeof(RunStep) && alignof(Choice) <= alignof(RunStep));

class Chooser {
 public:
  explicit Chooser(const Entry& entry) : entry_(entry) {}

  // Opens a backend without memory, and notes the bytes that it takes for itself.
  Status open(size_t slot);
  // Opens a backend that the session uses, whichever steps it is chosen for.
  Status use(size_t slot) { return slots_[slot].used = true, open(slot); }
  void close_all();
  // Counts the backends that the session uses, measures the memory that they take, and opens them in it.
  size_t used() const;
  void measure_used(BumpArena& prepared) const;
  Status open_used(BumpArena& prepared, SessionState& session);
  uint8_t index(const Choice& choice) const {
    return slots_[choice.slot].index;
  }  // in SessionState::backends

  // Finds the first candidate that takes the step, and how it packs constants; the reference kernels come
  // last.
  // `*refusal`: the first one's reason, if it does not take the step.
  Status choose(const Frame& frame, uint32_t s, const OpCall& call, Choice* choice, Packing* packing,
                Status* refusal);
  // Counts and reports the step if another backend computes it than expected.
  Status note_fallback(const Frame& frame, uint32_t s, const Choice& choice, const Status& refusal);

  uint32_t fallbacks = 0;

 private:
  struct Slot {
    bool open = false, used = false;
    uint8_t index = 0;
    size_t bytes = 0;
  };

  // No other backend can take a step in a device's memory (devices.cc).
  Status choose_on_device(const Entry::Device& device, const OpCall& call, const fb::StepPlan& plan,
                          Choice* choice, Packing* packing);
  Status try_backend(size_t slot, const OpCall& call, const fb::StepPlan& plan, Choice* choice,
                     Packing* packing, bool last);
  Status measure_step(Backend& backend, const OpCall& call, const fb::StepPlan& plan, StepNeeds* needs,
                      uint8_t* pool) const;

  const Entry& entry_;
  Slot slots_[kMaxBackends + 1];
};

// The size of a session's thread pool.
inline int thread_count(const SessionOptions& options) {
  return options.threads != nullptr ? options.threads->thread_count() : 1;
}

}  // namespace sinter::detail
