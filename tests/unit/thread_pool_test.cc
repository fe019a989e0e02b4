// The thread pool: every item once, whatever the grain, and no allocation while working.
#ifdef SINTER_WITH_XNNPACK

#include "sinter/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/memory/watch.h"

namespace sinter {
namespace {

TEST(PthreadPool, EveryItemOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    PthreadPool pool(threads);
    EXPECT_EQ(pool.thread_count(), threads);
    for (const int64_t count : {0, 1, 7, 100, 1000})
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
        std::atomic<bool> too_long{false};
        parallel_for(&pool, count, grain, [&](int64_t begin, int64_t end) {
          if (end - begin > grain && count > grain && threads > 1) too_long = true;
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const auto& n : seen) ASSERT_EQ(n.load(), 1);
        EXPECT_FALSE(too_long.load());
      }
  }
}

// More threads than cores, and jobs that end before some have woken: latecomers find nothing to do, sleepers
// wake again, and a pool goes while its threads are anywhere.
TEST(PthreadPool, ThreadsMayComeLate) {
  for (int round = 0; round < 20; ++round) {
    PthreadPool pool(16);
    for (int job = 0; job < 300; ++job) {
      const int64_t count = 2 + job % 23;
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      parallel_for(&pool, count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& n : seen) ASSERT_EQ(n.load(), 1) << "job " << job << " of round " << round;
      if (job % 100 == 50) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // they fall asleep
    }
  }
}

TEST(PthreadPool, AllocatesOnlyWhenMade) {
  PthreadPool pool(3);
  std::atomic<int64_t> sum{0};
  const int64_t before = test::allocation_count();
  for (int round = 0; round < 20; ++round)
    parallel_for(&pool, 1000, 10, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(test::allocation_count(), before);
  EXPECT_EQ(sum.load(), 20000);
}

TEST(PthreadPool, OneThreadNeedsNoPool) {
  PthreadPool pool(1);
  EXPECT_EQ(pool.native(), nullptr);
  PthreadPool all(0);
  EXPECT_GE(all.thread_count(), 1);
}

}  // namespace
}  // namespace sinter

#endif
