// SharedArena: memory in which sessions that never run at once keep the values of a run, one after the other.
//
//   size_t most = 0;
//   for (model of models) most = std::max(most, Session::requirements(model, options)->shareable);
//   alignas(sinter::kBufferAlignment) static std::byte values[most];
//   sinter::SharedArena arena(values);
//   options.arena = &arena;  // of every session: its own memory is `shareable` bytes smaller
//
// A run of one session overwrites the inputs and outputs of the others: first write all inputs of a session,
// then run it, then read its outputs. Creating a session overwrites them, too. State and packed weights are
// in each session's own memory, and so are buffers that the application binds.
#pragma once

#include "sinter/shared_memory.h"

namespace sinter {

class SharedArena : public SharedMemory {
 public:
  explicit SharedArena(std::span<std::byte> memory) : SharedMemory(memory) {}
};

}  // namespace sinter
