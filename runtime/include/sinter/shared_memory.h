// SharedMemory: memory of the caller that sessions use one at a time, as a SharedArena or a SharedState.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace sinter {

class SharedMemory {
 public:
  // `memory` is aligned to kBufferAlignment and outlives the object, which outlives its sessions.
  explicit SharedMemory(std::span<std::byte> memory) : memory_(memory) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::span<std::byte> memory() const { return memory_; }

  // Takes the memory for a run of a session, which fails where another one has it.
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }

 private:
  std::span<std::byte> memory_;
  std::atomic<bool> taken_{false};
};

}  // namespace sinter
