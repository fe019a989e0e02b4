#include "platforms/cuda/emulator/run.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "platforms/cuda/emulator/block.h"
#include "platforms/cuda/emulator/device_memory.h"
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

const Position* here = nullptr;
constinit Order order;

namespace {

namespace fibers = boost::context::detail;

constexpr int kWarpThreads = 32;
constexpr int kMostThreads = 1024;
#ifdef SINTER_ASAN
constexpr size_t kStackBytes = size_t{1} << 18;
#else
constexpr size_t kStackBytes = size_t{1} << 16;
#endif

enum class State : uint8_t { kReady, kAtBarrier, kAtWarpBarrier, kExchanges, kDone };

// A copy that goes on while its thread does.
struct Copy {
  int to = 0, bytes = 0, batch = 0;
  const void* source = nullptr;
};
constexpr int kMostCopies = 64;  // for each thread at a time

struct Fiber {
  Position position;
  fibers::fcontext_t context = nullptr;
  State state = State::kReady;
  int exchange = 0;  // the one of two buffers that the next exchange uses
  int batch = 0;     // copies that are not yet committed
  int copy_count = 0;
  Copy copies[kMostCopies];
};

struct Warp {
  alignas(16) std::byte values[2][kWarpThreads * kExchangeBytes] = {};
};

// The stacks of all fibers.
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

// The launch that runs.
class Running {
 public:
  const char* run(const Grid& grid, void (*kernel)(const void*), const void* arguments);

  void wait(State state);
  Fiber& fiber() { return fibers_[static_cast<size_t>(current_)]; }
  Warp& warp() { return warps_[static_cast<size_t>(current_ / kWarpThreads)]; }
  bool cooperates() const { return grid_.cooperates; }
  void note(const char* text);
  SharedMemory& shared() { return shared_; }

 private:
  static void enter(fibers::transfer_t from);
  void run_block_apart();
  void run_block_together();
  void start_fiber(int fiber);
  void resume(int fiber);
  bool run_warp(int warp);
  void go_to(int thread);
  int in_state(State state, int first, int end) const;

  Stacks stacks_;
  std::vector<Fiber> fibers_ = std::vector<Fiber>(kMostThreads);
  std::vector<Warp> warps_ = std::vector<Warp>(kMostThreads / kWarpThreads);
  SharedMemory shared_;
  Grid grid_;
  void (*kernel_)(const void*) = nullptr;
  const void* arguments_ = nullptr;
  fibers::fcontext_t scheduler_ = nullptr;
  int current_ = 0;
  uint32_t rounds_ = 0;  // rounds of all warps, from barrier to barrier
  bool failed_ = false;
  char text_[320] = {};
#ifdef SINTER_ASAN
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
#endif
};

// Returns the state of all launches, which is never destroyed.
Running& made() {
  static Running& all = *new Running();
  return all;
}
// The state of the launch that runs.
Running* current = nullptr;
Running& running() { return *current; }

void Running::note(const char* text) {
  if (failed_) return;
  failed_ = true;
  const Position& p = fiber().position;
  std::snprintf(text_, sizeof(text_), "%s (thread %d of block %u, %u, %u)", text, p.thread, p.block[0],
                p.block[1], p.block[2]);
}

// Runs on a fiber: a thread, or all threads of a block in turn if they do not cooperate.
void Running::enter(fibers::transfer_t from) {
  Running& r = *static_cast<Running*>(from.data);
#ifdef SINTER_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &r.scheduler_stack_, &r.scheduler_stack_bytes_);
#endif
  r.scheduler_ = from.fctx;
  for (int t = r.current_, end = r.cooperates() ? t + 1 : r.grid_.threads; t < end; ++t) {
    r.go_to(t);
    r.kernel_(r.arguments_);
    if (r.fiber().copy_count > 0) breach("a kernel ends with copies that it did not wait for");
  }
  r.wait(State::kDone);
}

// Goes back from the running fiber to the scheduler.
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

void Running::go_to(int thread) {
  current_ = thread;
  here = &fiber().position;
  order.run(thread);
}

void Running::resume(int index) {
  go_to(index);
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

int Running::in_state(State state, int first, int end) const {
  int count = 0;
  for (int t = first; t < end; ++t) count += fibers_[static_cast<size_t>(t)].state == state;
  return count;
}

// Runs until all threads of the warp are at a barrier or done; false if some are and some are not.
bool Running::run_warp(int warp) {
  const int first = warp * kWarpThreads, end = std::min(first + kWarpThreads, grid_.threads);
  for (;;) {
    for (int t = first; t < end && !failed_; ++t)
      if (fibers_[static_cast<size_t>(t)].state == State::kReady) resume(t);
    const int exchanging = in_state(State::kExchanges, first, end);
    const int waiting = in_state(State::kAtWarpBarrier, first, end);
    if (failed_ || exchanging + waiting == 0) return true;
    current_ = first;
    if (exchanging != end - first && waiting != end - first)
      return note("threads of one warp are apart where all must exchange values"), false;
    for (int t = first; t < end; ++t) fibers_[static_cast<size_t>(t)].state = State::kReady;
    if (waiting > 0) order.meet_warp(warp);
  }
}

void Running::start_fiber(int fiber) {
  Fiber& f = fibers_[static_cast<size_t>(fiber)];
  f.context = fibers::make_fcontext(stacks_.top(fiber), kStackBytes, enter);
  f.state = State::kReady;
}

void Running::run_block_together() {
  for (int t = 0; t < grid_.threads; ++t) start_fiber(t);
  const int warps = (grid_.threads + kWarpThreads - 1) / kWarpThreads;
  for (;;) {
    // The last warp runs first every other time, so that a result that depends on the order is found.
    for (int i = 0; i < warps && !failed_; ++i) run_warp(rounds_ % 2 == 0 ? i : warps - 1 - i);
    ++rounds_;
    const int at_barrier = in_state(State::kAtBarrier, 0, grid_.threads);
    if (failed_ || at_barrier == 0) return;
    if (at_barrier != grid_.threads) {
      current_ = 0;
      return note("some threads of a block wait at a barrier that others have passed by");
    }
    for (int t = 0; t < grid_.threads; ++t) fibers_[static_cast<size_t>(t)].state = State::kReady;
    order.meet();
  }
}

void Running::run_block_apart() {
  start_fiber(0);
  resume(0);
}

const char* Running::run(const Grid& grid, void (*kernel)(const void*), const void* arguments) {
  grid_ = grid;
  kernel_ = kernel;
  arguments_ = arguments;
  failed_ = false;
  order.begin_launch();
  for (int t = 0; t < grid.threads; ++t) {
    Fiber& f = fibers_[static_cast<size_t>(t)];
    f.exchange = f.batch = f.copy_count = 0;
    Position& p = f.position;
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
        order.begin_block();
        shared_.begin(grid.shared_bytes);
        if (grid.cooperates)
          run_block_together();
        else
          run_block_apart();
      }
  here = nullptr;
  end_launch_on_device();
  return failed_ ? text_ : nullptr;
}

void need_cooperation() {
  if (!running().cooperates())
    breach("a kernel whose threads are apart (kernels.def) waits for other threads");
}

void finish(const Copy& copy) {
  std::byte bytes[16] = {};
  if (in_device_range(copy.source))
    if (const char* fault = read_device(copy.source, static_cast<size_t>(copy.bytes)))
      breach_global(fault, copy.source);
  std::memcpy(bytes, copy.source, static_cast<size_t>(copy.bytes));
  std::memcpy(write_shared(copy.to, 16, 16), bytes, 16);
}

[[noreturn]] void breach_shared(const char* fault, int at) {
  char text[160];
  std::snprintf(text, sizeof(text), "shared memory %s: byte %d of %zu", fault, at,
                running().shared().bytes());
  breach(text);
}

}  // namespace

const char* run_grid(const Grid& grid, void (*kernel)(const void* arguments), const void* arguments) {
  static constinit std::mutex turns;
  const std::lock_guard<std::mutex> turn(turns);
  current = &made();
  return running().run(grid, kernel, arguments);
}

void be_ready() { (void)made(); }

void breach(const char* text) {
  running().note(text);
  running().wait(State::kDone);
  std::abort();  // a fiber that is done is not resumed
}

void breach_global(const char* fault, const void* at) {
  char text[256];
  size_t byte = 0, bytes = 0;
  if (find_on_device(at, &byte, &bytes))
    std::snprintf(text, sizeof(text), "global memory %s: byte %zu of the %zu allocated at %p", fault, byte,
                  bytes, static_cast<const void*>(static_cast<const std::byte*>(at) - byte));
  else
    std::snprintf(text, sizeof(text), "global memory %s: %p", fault, at);
  breach(text);
}

void barrier() {
  need_cooperation();
  running().wait(State::kAtBarrier);
}

void warp_barrier() {
  need_cooperation();
  running().wait(State::kAtWarpBarrier);
}

const std::byte* exchange(const void* mine, size_t bytes) {
  need_cooperation();
  Running& r = running();
  Fiber& f = r.fiber();
  std::byte* values = r.warp().values[f.exchange];
  f.exchange ^= 1;
  std::memcpy(values + static_cast<size_t>(f.position.thread % kWarpThreads) * kExchangeBytes, mine, bytes);
  r.wait(State::kExchanges);
  return values;
}

const std::byte* read_shared(int at, size_t bytes, size_t alignment) {
  const char* fault = nullptr;
  const std::byte* data = running().shared().read(at, bytes, alignment, &fault);
  if (fault != nullptr) breach_shared(fault, at);
  return data;
}

std::byte* write_shared(int at, size_t bytes, size_t alignment) {
  const char* fault = nullptr;
  std::byte* data = running().shared().write(at, bytes, alignment, &fault);
  if (fault != nullptr) breach_shared(fault, at);
  return data;
}

void claim_shared(int at, int bytes) {
  if (at < 0 || at % 16 != 0 || bytes < 0 ||
      static_cast<size_t>(at) + static_cast<size_t>(bytes) > running().shared().bytes())
    breach("a kernel claims shared memory beyond what the launch has");
}

void copy_async(int to, const void* from, int bytes) {
  Fiber& f = running().fiber();
  if (bytes < 0 || bytes > 16 || to % 16 != 0 || (bytes > 0 && reinterpret_cast<uintptr_t>(from) % 16 != 0))
    breach("a copy to shared memory is not of up to 16 aligned bytes");
  if (f.copy_count == kMostCopies)
    breach("more copies to shared memory are under way than the emulator keeps");
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

void load_atomic(const void* at, void* value, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(at) % bytes != 0)
    breach_global("is changed atomically at an address that is not aligned", at);
  if (in_device_range(at))
    if (const char* fault = change_device_atomically(at, bytes)) breach_global(fault, at);
  std::memcpy(value, at, bytes);
}
void store_atomic(void* at, const void* value, size_t bytes) { std::memcpy(at, value, bytes); }

}  // namespace sinter::cuda::emulator
