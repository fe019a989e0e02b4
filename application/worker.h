// Worker: a thread that does one task at a time, for runs that their caller does not wait for. The thread
// begins with the first task. A build without threads (SINTER_THREADS=OFF) refuses tasks.
#pragma once

#include <atomic>

#include "sinter/sinter.h"
#ifdef SINTER_THREADS
#include <pthread.h>
#endif

namespace sinter {

class Worker {
 public:
  using Task = void (*)(void* context);

  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Waits for the end of the task in progress, but not where that calls it, and returns whether another one
  // can be started.
  Status ready();
  // Does the same, and starts one; a task may start the one behind it.
  Status start(Task task, void* context);
  // Returns when no task is in progress, or at once where a task calls it.
  void wait() const {
    if (busy()) wait_for_idle();
  }
  // Returns whether a task is in progress.
  bool busy() const { return busy_.load(std::memory_order_acquire); }
  // Refuses further tasks, waits for the one in progress, and ends the thread; does nothing the second time.
  // No task calls it.
  void close();

 private:
  void wait_for_idle() const;

  std::atomic<bool> busy_{false};
#ifdef SINTER_THREADS
  static void* work(void* self);
  Status ready_in_lock();
  Status begin_thread();
  bool on_own_thread() const { return begun_ && pthread_equal(thread_, pthread_self()) != 0; }

  mutable pthread_mutex_t mutex_;
  mutable pthread_cond_t changed_;
  pthread_t thread_ = {};
  Task task_ = nullptr;  // the one to begin
  void* context_ = nullptr;
  bool begun_ = false, closing_ = false;
#endif
};

}  // namespace sinter
