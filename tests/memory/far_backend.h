// A device for tests, with memory that the host cannot touch: shows what sessions guarantee for a GPU.
//
// Its addresses are a range where every access faults; the bytes are elsewhere. A thread does the work, in
// order and while the host goes on, with the reference kernels, which see translated addresses. What must not
// happen (a host address where one of the device is due, or the reverse; bytes outside of blocks that were
// given out) is refused and counted. After open() nothing is allocated: jobs go through a ring of fixed size.
// Host and worker meet through atomic numbers alone, so that a session's run can be watched as a whole; the
// host spins while it waits.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backend/backend.h"

namespace sinter::test {

// When the worker does what was started.
enum class Work {
  kAtOnce,
  kHeld,  // nothing before finish(): who does not wait finds nothing done
};

class FarBackend final : public Backend, public DeviceMemory, public DeviceQueue {
 public:
  explicit FarBackend(const char* name = "far", size_t capacity = size_t{1} << 24);
  ~FarBackend();
  FarBackend(const FarBackend&) = delete;
  FarBackend& operator=(const FarBackend&) = delete;

  // Copies are always taken. Empty: every op of the reference kernels.
  std::vector<Op> accepts;
  Work work = Work::kAtOnce;
  size_t own = 0;                // bytes of its memory that it takes for itself
  size_t capacity;               // allocate() gives no more than this in all
  bool keeps_constants = false;  // claims that its steps read constants of the host in runs
  int ignore_finish =
      0;  // the so-manieth finish() from now on does not wait, as if the session had none there
  Status refusal = ok_status();  // what measure() answers instead, if it is an error

  // What has happened. Only to be read while nothing is under way.
  struct Counts {
    int64_t uploads = 0, downloads = 0, bytes_up = 0, bytes_down = 0;  // steps and state
    int64_t steps = 0;                                                 // kernels, transfers not counted
    int64_t copies = 0, zeros = 0;                                     // on the device
    int64_t finishes = 0, groups = 0, largest_group = 0;
    int64_t allocations = 0, opened = 0, closed = 0, prepared = 0, released = 0;
    int64_t wrong = 0;  // uses of addresses that were refused
    bool operator==(const Counts&) const = default;
  };
  const Counts& counts() const { return counts_; }
  void forget_counts() { counts_ = {}; }
  size_t allocated() const;  // bytes that are given out now
  bool is_far(const void* p) const;
  // The bytes behind an address of the device, for tests that check internals.
  std::byte* behind(const std::byte* p) const { return storage_ + (p - range_); }
  bool stepwise() const { return stepwise_; }

  // Backend.
  const char* name() const override { return name_.c_str(); }
  Status open(BumpArena& prepared) override;
  void close() override { ++counts_.closed; }
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  void release(PreparedStep&) override { ++counts_.released; }
  DeviceMemory* memory() override { return this; }
  Status open_queue(const QueueMemory& memory, DeviceQueue** queue) override;

  // DeviceMemory.
  Status allocate(size_t bytes, size_t alignment, std::byte** block) override;
  void free(std::byte* block) override;

  // DeviceQueue: one for all sessions, of which there is one at a time.
  Status finish() override;
  Status end_group() override;
  void set_stepwise(bool on) override { stepwise_ = on; }
  Status upload(std::byte* to_device, const std::byte* from_host, size_t bytes) override;
  Status download(std::byte* to_host, const std::byte* from_device, size_t bytes) override;
  Status copy(std::byte* to, const std::byte* from, size_t bytes) override;
  Status zero(std::byte* at, size_t bytes) override;

 private:
  struct Step;
  struct Job {
    Step* step = nullptr;  // or
    std::byte* to = nullptr;
    const std::byte* from = nullptr;  // null: zeros
    size_t bytes = 0;
  };
  struct Block {
    std::byte* at;
    size_t bytes;
  };
  static constexpr size_t kRing = 1024, kReserved = size_t{1} << 26;

  static Status run_step(void* state, const OpCall& call, RunContext& context);
  void start(const Job& job);
  void wait_until(uint64_t done);
  Status finish_quietly();
  bool is_stored(const TensorView& v) const { return v.data >= storage_ && v.data < storage_ + kReserved; }
  void work_through();
  bool within_block(const std::byte* p, size_t bytes) const;
  Status wrong(const char* why);
  bool takes(Op op) const;

  std::string name_;
  std::byte* range_ = nullptr;
  std::byte* storage_ = nullptr;
  std::vector<Block> blocks_;
  Counts counts_;
  int64_t group_ = 0;
  bool stepwise_ = false;

  Job ring_[kRing];
  std::atomic<uint64_t> started_{0}, done_{0}, released_{0};
  std::atomic<bool> stop_{false};
  Status failure_;  // the worker's until it has published done_
  std::thread worker_;
};

}  // namespace sinter::test
