// PthreadPool by the library pthreadpool, whose threads apply their settings when they start.
#include "sinter/thread_pool.h"

#include <pthreadpool.h>

#include <algorithm>
#include <atomic>

#include "runtime/threads/system.h"

namespace sinter {
namespace {

struct Call {
  ThreadPool::Task task;
  void* context;
};

void run_tile(void* context, size_t begin, size_t count) {
  const Call& call = *static_cast<const Call*>(context);
  call.task(call.context, static_cast<int64_t>(begin), static_cast<int64_t>(begin + count));
}

pthreadpool_t pool_of(void* p) { return static_cast<pthreadpool_t>(p); }

// The data that all threads read while they start; it lives until then.
struct Starting {
  const ThreadSettings& settings;
  std::atomic_flag refused = ATOMIC_FLAG_INIT;
  Status status;  // written by the first thread with a refusal
};

[[maybe_unused]] void start(void* context, size_t number) {
  auto& starting = *static_cast<Starting*>(context);
  const Status status = apply_settings(starting.settings, number - 1);
  if (!status.ok() && !starting.refused.test_and_set()) starting.status = status;
}

}  // namespace

PthreadPool::PthreadPool(int threads, const ThreadSettings& settings) {
  const bool set = !settings.processors.empty() || settings.nice != 0 || settings.realtime != 0;
  if (set) status_ = check_settings(settings);
  if (threads > kMostThreads) status_ = invalid("%a threads: a pool has at most %b", threads, kMostThreads);
  if (threads <= 0) threads = std::min(usable_processors(), kMostThreads);
  if (threads == 1 || threads > kMostThreads) return;
#ifdef _WIN32
  pool_ = pthreadpool_create(static_cast<size_t>(threads));
#else
  Starting starting{settings, {}, {}};
  pool_ = pthreadpool_create_with_start(static_cast<size_t>(threads), set && status_.ok() ? start : nullptr,
                                        &starting);
  if (status_.ok()) status_ = starting.status;
#endif
  if (pool_ == nullptr && status_.ok())
    status_ = unsupported("the system refuses to start %a threads", threads);
}

PthreadPool::~PthreadPool() {
  if (pool_ != nullptr) pthreadpool_destroy(pool_of(pool_));
}

int PthreadPool::thread_count() const {
  return pool_ != nullptr ? static_cast<int>(pthreadpool_get_threads_count(pool_of(pool_))) : 1;
}

void PthreadPool::parallel_for(Task task, void* context, int64_t count, int64_t grain) {
  if (count <= 0) return;
  Call call{task, context};
  pthreadpool_parallelize_1d_tile_1d(pool_of(pool_), run_tile, &call, static_cast<size_t>(count),
                                     static_cast<size_t>(grain > 0 ? grain : 1), 0);
}

}  // namespace sinter
