// A build without threads: a pool of one, the thread that calls.
#include <algorithm>

#include "sinter/thread_pool.h"

namespace sinter {

PthreadPool::PthreadPool(int threads, const ThreadSettings& settings) {
  if (threads > kMostThreads) status_ = invalid("%a threads: a pool has at most %b", threads, kMostThreads);
  if (!settings.processors.empty() || settings.nice != 0 || settings.realtime != 0)
    status_ =
        unsupported("this build starts no threads (SINTER_THREADS=OFF), and so has no settings for them");
}
PthreadPool::~PthreadPool() {
  static_cast<void>(pool_);
}  // stays null; clang warns of a member without a use

int PthreadPool::thread_count() const { return 1; }

void PthreadPool::parallel_for(Task task, void* context, int64_t count, int64_t grain) {
  const int64_t step = std::max<int64_t>(grain, 1);
  for (int64_t begin = 0; begin < count; begin += step) task(context, begin, std::min(begin + step, count));
}

int fastest_processors(std::span<int>) { return 0; }

}  // namespace sinter
