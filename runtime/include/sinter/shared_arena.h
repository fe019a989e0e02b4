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

#include <atomic>
#include <cstddef>
#include <span>

namespace sinter {

class SharedArena {
 public:
  // `memory` is aligned to kBufferAlignment and outlives the arena, which outlives its sessions.
  explicit SharedArena(std::span<std::byte> memory) : memory_(memory) {}
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  std::span<std::byte> memory() const { return memory_; }

  // For sessions: a run takes the arena, and fails where another one has it.
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }

 private:
  std::span<std::byte> memory_;
  std::atomic<bool> taken_{false};
};

}  // namespace sinter
