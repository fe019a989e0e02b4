// SharedState: the state that sessions of one model have in common, so that one goes on where another one
// stopped: a session that reads a prompt of 128 tokens at once, and a session that adds one token to it.
//
//   alignas(sinter::kBufferAlignment) static std::byte kept[bytes];  // Requirements::state of any of them
//   sinter::SharedState state(kept);
//   options.state = &state;  // of every session: its own memory is `state` bytes smaller
//
// The sessions are of the shape sets of a model, in one profile, because a file has its states at the same
// places in all of them. Creating the first session sets the state to its initial values. Later ones find it
// as it is, and reset() of any session sets it back for all. The sessions never run at once.
#pragma once

#include <cstdint>

#include "sinter/shared_memory.h"

namespace sinter {

class SharedState : public SharedMemory {
 public:
  explicit SharedState(std::span<std::byte> memory) : SharedMemory(memory) {}

  // For sessions that have taken it. `model` is the identity of the model to which the state belongs.
  bool begun() const { return model_ != nullptr; }
  bool belongs_to(const void* model, uint32_t profile) const {
    return model_ == nullptr || (model_ == model && profile_ == profile);
  }
  void begin(const void* model, uint32_t profile) { model_ = model, profile_ = profile; }

 private:
  const void* model_ = nullptr;
  uint32_t profile_ = 0;
};

}  // namespace sinter
