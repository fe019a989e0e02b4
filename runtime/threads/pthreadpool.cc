#include <pthreadpool.h>

#include "sinter/thread_pool.h"

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

}  // namespace

PthreadPool::PthreadPool(int threads) {
  if (threads != 1) pool_ = pthreadpool_create(threads > 0 ? static_cast<size_t>(threads) : 0);
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
