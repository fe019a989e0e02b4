// SharedMemory: memory of the caller that sessions use one at a time, as a SharedArena or a SharedState.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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
  bool take() { return taken_.exchange(1, std::memory_order_acquire) == 0; }
  void give_back() { taken_.store(0, std::memory_order_release); }

 private:
  std::span<std::byte> memory_;
  // Of 32 bits: RISC-V has no instruction that exchanges fewer, and its compiler calls libatomic for them.
  std::atomic<uint32_t> taken_{0};
};

}  // namespace sinter
