// A step's operands in the memory of a device, for backends that compute there.
#pragma once

#include <memory>
#include <vector>

#include "runtime/backend/backend.h"
#include "tests/op_harness/operand.h"

namespace sinter::test {

// The life of a step on a device: a queue, and a copy of each operand with the bytes around it, which come
// back when the step has run, so that every write is seen.
class OnDevice {
 public:
  // The backend must be open and have device memory.
  explicit OnDevice(Backend& backend);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  DeviceQueue& queue() { return *queue_; }
  // Returns a copy of the operand on the device.
  TensorView bring(const Operand& operand);
  // Brings all operands back, with the bytes around them.
  void take_back();
  // Returns memory for the step.
  std::span<std::byte> workspace(size_t bytes) { return {block(bytes), bytes}; }
  BumpArena& prepared(size_t bytes) { return prepared_ = BumpArena({block(bytes), bytes}); }
  BumpArena& staging(size_t bytes);

 private:
  struct Brought {
    std::span<std::byte> window;
    std::byte* there = nullptr;
  };
  std::byte* block(size_t bytes);

  Backend& backend_;
  DeviceQueue* queue_ = nullptr;
  std::vector<std::byte*> blocks_, staging_blocks_;
  std::vector<Brought> brought_;
  std::vector<std::byte> own_;
  BumpArena prepared_, staging_;
};

}  // namespace sinter::test
