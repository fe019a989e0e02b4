// ThreadPool: distributes the work of kernels. The application provides one, or none.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sinter {

class ThreadPool {
 public:
  // Processes items begin .. end - 1; the results must not depend on how items are grouped.
  using Task = void (*)(void* context, int64_t begin, int64_t end);

  // Runs task over 0 .. count - 1 in pieces of at most `grain` items, on any threads, and returns when all
  // are done.
  virtual void parallel_for(Task task, void* context, int64_t count, int64_t grain) = 0;
  virtual int thread_count() const = 0;

 protected:
  ~ThreadPool() = default;
};

// Returns the number of threads that work at the same time; 1 without a pool.
inline int64_t threads_of(const ThreadPool* pool) { return pool != nullptr ? pool->thread_count() : 1; }

// Returns the grain, or a smaller one by which each of `threads` gets as many pieces as the others: one piece
// too many would leave all but one of them waiting.
inline int64_t even_grain(int64_t count, int64_t grain, int64_t threads) {
  constexpr int64_t kManyPieces = 8;  // for each thread; one more does not matter
  const auto divided = [](int64_t n, int64_t by) { return n / by + (n % by != 0 ? 1 : 0); };
  const int64_t pieces = divided(count, grain);
  if (pieces >= kManyPieces * threads) return grain;
  return divided(count, divided(pieces, threads) * threads);
}

// Runs f(begin, end) over 0 .. count - 1, in pieces of at most `grain` items on the pool if there is one.
template <class F>
void parallel_for(ThreadPool* pool, int64_t count, int64_t grain, F&& f) {
  if (count <= 0) return;
  const int64_t threads = threads_of(pool);
  if (threads <= 1 || count <= grain) {
    f(int64_t{0}, count);
    return;
  }
  grain = even_grain(count, grain > 0 ? grain : 1, threads);
  pool->parallel_for([](void* context, int64_t begin,
                        int64_t end) { (*static_cast<std::remove_reference_t<F>*>(context))(begin, end); },
                     &f, count, grain);
}

// Divides 0 .. count - 1 among `slots`, each of which has its own workspace: f(slot, begin, end), once for
// each slot, with parts of nearly equal size in order.
template <class F>
void parallel_slots(ThreadPool* pool, int64_t slots, int64_t count, F&& f) {
  parallel_for(pool, slots, 1, [&](int64_t first, int64_t last) {
    for (int64_t slot = first; slot < last; ++slot) f(slot, count * slot / slots, count * (slot + 1) / slots);
  });
}

}  // namespace sinter
