// PthreadPool: a ThreadPool on hosts that have threads (library sinter_threads), which XNNPACK can use too.
// In a build without threads (SINTER_THREADS=OFF) it has one, the thread that calls.
//
//   sinter::PthreadPool pool(4);
//   sinter::SessionOptions options{.threads = &pool};
#pragma once

#include "runtime/core/parallel.h"

namespace sinter {

// Starts threads - 1 threads, because the caller works too; 0: one thread per processor. If no threads can be
// started, the pool has one. Sessions that do not run at the same time may share it; it must outlive them.
// Creating one allocates; using it does not.
class PthreadPool final : public ThreadPool {
 public:
  explicit PthreadPool(int threads);
  ~PthreadPool();
  PthreadPool(const PthreadPool&) = delete;
  PthreadPool& operator=(const PthreadPool&) = delete;

  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override;
  int thread_count() const override;
  void* native() override { return pool_; }

 private:
  void* pool_ = nullptr;  // pthreadpool_t
};

}  // namespace sinter
