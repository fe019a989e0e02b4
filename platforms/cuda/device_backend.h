// The device side of the platform, for a driver that is given: the machine's (cuda_backend.h) or the
// emulator's (platforms/cuda_emulated).
#pragma once

#include "platforms/cuda/driver/device.h"
#include "runtime/backend/backend.h"

namespace sinter::cuda {

// It serves any number of sessions, each on a queue of its own.
class DeviceBackend : public Backend, public DeviceMemory {
 public:
  constexpr explicit DeviceBackend(const Provider& provider) : device_(provider) {}

  Status open(BumpArena& prepared) override;
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status pack_on_device(const OpCall& call, std::span<std::byte> packed, DeviceQueue& queue,
                        std::span<std::byte> scratch) override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  bool fuse(const PreparedStep& first, const PreparedStep& next) override;
  void release(PreparedStep& step) override;
  // The kernel of the step's first launch.
  const char* kernel_name(const PreparedStep& step) const override;
  DeviceMemory* memory() override { return this; }
  Status open_queue(const QueueMemory& memory, DeviceQueue** queue) override;
  void close_queue(DeviceQueue* queue) override;

  Status allocate(size_t bytes, size_t alignment, std::byte** block) override;
  void free(std::byte* block) override;
  Status allocate_staging(size_t bytes, std::byte** block) override;
  void free_staging(std::byte* block) override;

  // Returns the device, for tests and for messages about a machine. Its facts are valid once it is open.
  Device& device() { return device_; }

 private:
  Device device_;
};

}  // namespace sinter::cuda
