// The first device of a driver: its context, its facts, its loaded kernels. All sessions share it.
#pragma once

#include <sched.h>

#include <atomic>

#include "platforms/cuda/driver/library.h"
#include "platforms/cuda/lowering.h"

namespace sinter::cuda {

// A lock that is held while sessions are created on several threads.
class CreationLock {
 public:
  void lock() {
    while (held_.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_;
};
class CreationGuard {
 public:
  explicit CreationGuard(CreationLock& lock) : lock_(lock) { lock_.lock(); }
  ~CreationGuard() { lock_.unlock(); }
  CreationGuard(const CreationGuard&) = delete;
  CreationGuard& operator=(const CreationGuard&) = delete;

 private:
  CreationLock& lock_;
};

class Device {
 public:
  constexpr explicit Device(const Provider& provider) : provider_(provider) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Must be called first. The first call opens the driver; the driver, the context and the kernels that
  // sessions have used stay open until the program ends. Fails with kUnsupported and the reason if there is
  // no device.
  Status open();

  const EntryPoints& api() const { return *api_; }
  ContextHandle context() const { return context_; }
  const DeviceFacts& facts() const { return facts_; }
  const char* name() const { return name_; }
  // Loads the kernel's unit when the first kernel of that unit is requested.
  Status function(Kernel kernel, FunctionHandle* function);
  // Returns whether a launch of this kernel, which function() gave, may begin while the one before it ends.
  bool may_overlap(Kernel kernel) const { return waits_[static_cast<int>(kernel)]; }
  // Returns the error of a call that the driver refused; `what` is the purpose of the call.
  Status failure(DriverResult result, const char* what) const;

 private:
  Status open_first();
  Status refused(DriverResult result, const char* what) const;
  Status load(Unit unit);

  const Provider& provider_;
  CreationLock lock_;  // for the members below
  bool opened_ = false;
  Status refusal_;  // that of the first call, if it failed
  const EntryPoints* api_ = nullptr;
  const void* const* images_ = nullptr;
  ContextHandle context_ = nullptr;
  DeviceFacts facts_;
  bool overlaps_launches_ = false;  // true if its driver does
  char name_[64] = {};
  ModuleHandle modules_[kUnitCount] = {};
  FunctionHandle functions_[kKernelCount] = {};
  bool waits_[kKernelCount] = {};  // whether each waits for the launch before
};

// Makes the device's context the calling thread's as long as it lives.
class InContext {
 public:
  explicit InContext(const Device& device) : device_(device) {
    (void)device.api().push_context(device.context());
  }
  ~InContext() {
    ContextHandle ours = nullptr;
    (void)device_.api().pop_context(&ours);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const Device& device_;
};

}  // namespace sinter::cuda
