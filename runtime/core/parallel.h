// ThreadPool: how a kernel spreads work; the application hands one in, or none.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sinter {

class ThreadPool {
 public:
  // Processes items begin .. end - 1; must not depend on how items are grouped.
  using Task = void (*)(void* context, int64_t begin, int64_t end);

  // Runs task over 0 .. count - 1 in pieces of at most `grain` items, on any threads, and returns when all
  // are done.
  virtual void parallel_for(Task task, void* context, int64_t count, int64_t grain) = 0;
  virtual int thread_count() const = 0;
  // The pthreadpool_t beneath, for libraries that take one; null if there is none.
  virtual void* native() { return nullptr; }

 protected:
  ~ThreadPool() = default;
};

// Runs f(begin, end) over 0 .. count - 1, on the pool if there is one.
template <class F>
void parallel_for(ThreadPool* pool, int64_t count, int64_t grain, F&& f) {
  if (count <= 0) return;
  if (pool == nullptr || pool->thread_count() <= 1 || count <= grain) {
    f(int64_t{0}, count);
    return;
  }
  pool->parallel_for([](void* context, int64_t begin,
                        int64_t end) { (*static_cast<std::remove_reference_t<F>*>(context))(begin, end); },
                     &f, count, grain);
}

}  // namespace sinter
