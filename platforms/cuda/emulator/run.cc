#include "platforms/cuda/emulator/run.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "platforms/cuda/emulator/block.h"
#include "platforms/cuda/emulator/shared_memory.h"

#if defined(__SANITIZE_ADDRESS__)
#define SINTER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SINTER_ASAN 1
#endif
#endif
#ifdef SINTER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace sinter::cuda::emulator {

thread_local const Position* here = nullptr;

namespace {

namespace fibers = boost::context::detail;

constexpr int kWarpThreads = 32;
constexpr int kMostThreads = 1024;
#ifdef SINTER_ASAN
constexpr size_t kStackBytes = size_t{1} << 18;
#else
constexpr size_t kStackBytes = size_t{1} << 16;
#endif

enum class State : uint8_t { kReady, kAtBarrier, kInWarp, kDone };

// A copy that goes on while its thread does.
struct Copy {
  int to = 0, bytes = 0, batch = 0;
  const void* source = nullptr;
};
constexpr int kMostCopies = 64;  // of a thread at a time

struct Fiber {
  Position position;
  fibers::fcontext_t context = nullptr;
  State state = State::kReady;
  int exchange = 0;  // which of the two buffers the next exchange uses
  int batch = 0;     // of copies, not yet committed
  int copy_count = 0;
  Copy copies[kMostCopies];
};

struct Warp {
  alignas(16) std::byte values[2][kWarpThreads * kExchangeBytes] = {};
  uint32_t epoch = 0;  // how often its threads have met
};

// The stacks of all fibers of a host thread.
class Stacks {
 public:
  Stacks() {
    at_ = static_cast<std::byte*>(mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (at_ == MAP_FAILED) std::abort();
  }
  ~Stacks() { munmap(at_, kMostThreads * kStackBytes); }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  std::byte* bottom(int fiber) const { return at_ + static_cast<size_t>(fiber) * kStackBytes; }
  std::byte* top(int fiber) const { return bottom(fiber) + kStackBytes; }

 private:
  std::byte* at_ = nullptr;
};

// What runs on this host thread.
class Running {
 public:
  const char* run(const Grid& grid, void (*kernel)(const void*), const void* arguments);

  void wait(State state);
  Fiber& fiber() { return fibers_[static_cast<size_t>(current_)]; }
  Warp& warp() { return warps_[static_cast<size_t>(current_ / kWarpThreads)]; }
  bool cooperates() const { return grid_.cooperates; }
  void breach(const char* text);
  void note(const char* text);
  Accessor accessor() {
    return {static_cast<uint16_t>(current_), static_cast<uint16_t>(current_ / kWarpThreads), epoch_,
            grid_.cooperates ? warp().epoch : 0};
  }
  SharedMemory& shared() { return shared_; }
  bool failed() const { return failed_; }

 private:
  static void enter(fibers::transfer_t from);
  void run_block_apart();
  void run_block_together();
  void start_fibers();
  void resume(int fiber);
  bool run_warp(int warp);

  Stacks stacks_;
  std::vector<Fiber> fibers_ = std::vector<Fiber>(kMostThreads);
  std::vector<Warp> warps_ = std::vector<Warp>(kMostThreads / kWarpThreads);
  SharedMemory shared_;
  Grid grid_;
  void (*kernel_)(const void*) = nullptr;
  const void* arguments_ = nullptr;
  fibers::fcontext_t scheduler_ = nullptr;
  int current_ = 0;
  uint32_t epoch_ = 0;  // how often the block's threads have met
  bool failed_ = false;
  char text_[256] = {};
#ifdef SINTER_ASAN
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
#endif
};

Running& running() {
  static thread_local Running all;
  return all;
}

void Running::note(const char* text) {
  if (failed_) return;
  failed_ = true;
  const Position& p = fiber().position;
  std::snprintf(text_, sizeof(text_), "%s (thread %d of block %u, %u, %u)", text, p.thread, p.block[0],
                p.block[1], p.block[2]);
}

// Ends this fiber: its kernel cannot go on.
void Running::breach(const char* text) {
  note(text);
  wait(State::kDone);
  std::abort();  // a fiber that is done is not resumed
}

void Running::enter(fibers::transfer_t from) {
  Running& r = *static_cast<Running*>(from.data);
#ifdef SINTER_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &r.scheduler_stack_, &r.scheduler_stack_bytes_);
#endif
  r.scheduler_ = from.fctx;
  r.kernel_(r.arguments_);
  if (r.fiber().copy_count > 0) r.note("a kernel ends with copies that it did not wait for");
  r.wait(State::kDone);
}

// Of the running fiber: goes back to the scheduler.
void Running::wait(State state) {
  fiber().state = state;
#ifdef SINTER_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(state == State::kDone ? nullptr : &fake, scheduler_stack_,
                                 scheduler_stack_bytes_);
#endif
  const fibers::transfer_t back = fibers::jump_fcontext(scheduler_, this);
#ifdef SINTER_ASAN
  __sanitizer_finish_switch_fiber(fake, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
  scheduler_ = back.fctx;
}

void Running::resume(int index) {
  current_ = index;
  here = &fiber().position;
#ifdef SINTER_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stacks_.bottom(index), kStackBytes);
#endif
  const fibers::transfer_t back = fibers::jump_fcontext(fiber().context, this);
#ifdef SINTER_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  fibers_[static_cast<size_t>(index)].context = back.fctx;
}

// Until all threads of the warp are at a barrier or done; false: some are and some are not.
bool Running::run_warp(int warp) {
  const int first = warp * kWarpThreads, end = std::min(first + kWarpThreads, grid_.threads);
  for (;;) {
    int in_warp = 0;
    for (int t = first; t < end && !failed_; ++t) {
      if (fibers_[static_cast<size_t>(t)].state == State::kReady) resume(t);
      in_warp += fibers_[static_cast<size_t>(t)].state == State::kInWarp;
    }
    if (failed_ || in_warp == 0) return true;
    current_ = first;
    if (in_warp != end - first)
      return note("threads of one warp are apart where all must exchange values"), false;
    for (int t = first; t < end; ++t) fibers_[static_cast<size_t>(t)].state = State::kReady;
    ++warps_[static_cast<size_t>(warp)].epoch;
  }
}

void Running::start_fibers() {
  for (int t = 0; t < grid_.threads; ++t) {
    Fiber& f = fibers_[static_cast<size_t>(t)];
    f.context = fibers::make_fcontext(stacks_.top(t), kStackBytes, enter);
    f.state = State::kReady;
    f.exchange = f.batch = f.copy_count = 0;
  }
}

void Running::run_block_together() {
  start_fibers();
  const int warps = (grid_.threads + kWarpThreads - 1) / kWarpThreads;
  for (bool done = false; !done && !failed_;) {
    // The last warp first every other time, so that a result that depends on the order is found.
    for (int i = 0; i < warps && !failed_; ++i) run_warp(epoch_ % 2 == 0 ? i : warps - 1 - i);
    if (failed_) break;
    int at_barrier = 0;
    for (int t = 0; t < grid_.threads; ++t)
      at_barrier += fibers_[static_cast<size_t>(t)].state == State::kAtBarrier;
    if (at_barrier != 0 && at_barrier != grid_.threads) {
      current_ = 0;
      return note("some threads of a block wait at a barrier that others have passed by");
    }
    done = at_barrier == 0;
    ++epoch_;
    for (int t = 0; t < grid_.threads && !done; ++t) fibers_[static_cast<size_t>(t)].state = State::kReady;
  }
}

void Running::run_block_apart() {
  ++epoch_;
  for (int t = 0; t < grid_.threads && !failed_; ++t) {
    current_ = t;
    here = &fiber().position;
    kernel_(arguments_);
  }
}

const char* Running::run(const Grid& grid, void (*kernel)(const void*), const void* arguments) {
  grid_ = grid;
  kernel_ = kernel;
  arguments_ = arguments;
  failed_ = false;
  for (int t = 0; t < grid.threads; ++t) {
    Position& p = fibers_[static_cast<size_t>(t)].position;
    p.thread = t, p.threads = grid.threads;
    for (int i = 0; i < 3; ++i) p.blocks[i] = grid.blocks[i];
  }
  for (uint32_t z = 0; z < grid.blocks[2] && !failed_; ++z)
    for (uint32_t y = 0; y < grid.blocks[1] && !failed_; ++y)
      for (uint32_t x = 0; x < grid.blocks[0] && !failed_; ++x) {
        for (int t = 0; t < grid.threads; ++t) {
          Position& p = fibers_[static_cast<size_t>(t)].position;
          p.block[0] = x, p.block[1] = y, p.block[2] = z;
        }
        shared_.begin(grid.shared_bytes);
        if (grid.cooperates)
          run_block_together();
        else
          run_block_apart();
      }
  here = nullptr;
  return failed_ ? text_ : nullptr;
}

// A breach where there is no fiber to leave: noted, and the kernel goes on.
void fail(const char* text) {
  if (running().cooperates())
    running().breach(text);
  else
    running().note(text);
}

void finish(const Copy& copy) {
  std::byte bytes[16] = {};
  std::memcpy(bytes, copy.source, static_cast<size_t>(copy.bytes));
  std::memcpy(write_shared(copy.to, 16, 16), bytes, 16);
}

}  // namespace

const char* run_grid(const Grid& grid, void (*kernel)(const void* arguments), const void* arguments) {
  return running().run(grid, kernel, arguments);
}

void barrier() {
  if (!running().cooperates()) return fail("a barrier in a kernel whose threads are apart (kernels.def)");
  running().wait(State::kAtBarrier);
}

void warp_barrier() {
  if (!running().cooperates()) return fail("a barrier in a kernel whose threads are apart (kernels.def)");
  running().wait(State::kInWarp);
}

const std::byte* exchange(const void* mine, size_t bytes) {
  Running& r = running();
  Fiber& f = r.fiber();
  std::byte* values = r.warp().values[f.exchange];
  f.exchange ^= 1;
  if (!r.cooperates()) return fail("an exchange in a kernel whose threads are apart (kernels.def)"), values;
  std::memcpy(values + static_cast<size_t>(f.position.thread % kWarpThreads) * kExchangeBytes, mine, bytes);
  r.wait(State::kInWarp);
  return values;
}

const std::byte* read_shared(int at, size_t bytes, size_t alignment) {
  Running& r = running();
  const char* fault = r.shared().read(r.accessor(), at, bytes, alignment);
  if (fault != nullptr) fail(fault);
  return r.shared().data(at, bytes);
}

std::byte* write_shared(int at, size_t bytes, size_t alignment) {
  Running& r = running();
  const char* fault = r.shared().write(r.accessor(), at, bytes, alignment);
  if (fault != nullptr) fail(fault);
  return r.shared().data(at, bytes);
}

void claim_shared(int at, int bytes) {
  Running& r = running();
  if (at < 0 || at % 16 != 0 || bytes < 0 ||
      static_cast<size_t>(at) + static_cast<size_t>(bytes) > r.shared().bytes())
    fail("shared memory beyond what the launch has");
}

void copy_async(int to, const void* from, int bytes) {
  Fiber& f = running().fiber();
  if (bytes < 0 || bytes > 16 || to % 16 != 0 || (bytes > 0 && reinterpret_cast<uintptr_t>(from) % 16 != 0))
    return fail("a copy that is not of up to 16 aligned bytes");
  if (f.copy_count == kMostCopies) return fail("more copies under way than the emulator keeps");
  f.copies[f.copy_count++] = {to, bytes, f.batch, from};
}

void commit_copies() { ++running().fiber().batch; }

void wait_for_copies(int under_way) {
  Fiber& f = running().fiber();
  int done = 0;
  while (done < f.copy_count && f.copies[done].batch < f.batch - under_way) finish(f.copies[done++]);
  for (int i = done; i < f.copy_count; ++i) f.copies[i - done] = f.copies[i];
  f.copy_count -= done;
}

void be_ready() { (void)running(); }

}  // namespace sinter::cuda::emulator
