// PthreadPool: a ThreadPool on hosts that have threads (library sinter_threads).
// In a build without threads (SINTER_THREADS=OFF) it has one, the thread that calls.
//
//   sinter::PthreadPool pool(4);
//   sinter::SessionOptions options{.threads = &pool};
//
// On a processor with cores of different speeds, a pool of the fast ones alone is often the quickest:
//
//   int fast[8];
//   const int n = sinter::fastest_processors(fast);
//   sinter::PthreadPool pool(n, {.processors = {fast, static_cast<size_t>(n)}});
//
// Every backend that uses threads works with any ThreadPool. An application that has threads of its own
// derives from ThreadPool (runtime/core/parallel.h) instead.
#pragma once

#include <span>

#include "runtime/core/parallel.h"
#include "runtime/core/status.h"

namespace sinter {

// The scheduling of the threads that a pool starts, on Linux (other systems refuse it). The thread that calls
// is the application's and keeps its settings.
struct ThreadSettings {
  // The i-th started thread runs on processors[i % size] and on no other, by the system's numbers; empty: on
  // any. Read while the pool is made, not later.
  std::span<const int> processors = {};
  // -20 (first) to 19 (last) for the usual policy; 0: that of the thread that makes the pool. Lower values
  // need a privilege.
  int nice = 0;
  // 1 to 99: the real-time policy SCHED_FIFO with this priority, which needs a privilege; 0: the usual
  // policy.
  int realtime = 0;
};

// Starts threads - 1 threads, because the caller works too; 0: one thread for each processor that this
// process may use, at most kMostThreads. If the system refuses to start some, the pool has fewer. Sessions
// that do not run at the same time may share it; it must outlive them. Creating one allocates; using it does
// not.
class PthreadPool final : public ThreadPool {
 public:
  static constexpr int kMostThreads = 1024;

  explicit PthreadPool(int threads, const ThreadSettings& settings = {});
  ~PthreadPool();
  PthreadPool(const PthreadPool&) = delete;
  PthreadPool& operator=(const PthreadPool&) = delete;

  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override;
  int thread_count() const override;

  // Returns kInvalidArgument for more than kMostThreads, or a setting that no system takes, and kUnsupported
  // for a setting, or all further threads, that this system refused. The pool works without them.
  Status status() const { return status_; }

 private:
  void* pool_ = nullptr;  // pthreadpool_t
  Status status_;
};

// Writes the numbers of the fastest processors that this process may use, at most processors.size(), in
// ascending order, and returns how many. All are equally fast where Linux states neither a capacity nor a
// maximum frequency; 0 on other systems.
int fastest_processors(std::span<int> processors);

}  // namespace sinter
