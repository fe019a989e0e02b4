// The thread pool: every item once, whatever the grain, no allocation while working, and the settings of its
// threads.
#include "sinter/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
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

TEST(PthreadPool, HasAThreadForEachProcessorThatMayBeUsed) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(PthreadPool(0).thread_count(), CPU_COUNT(&set));
}

// What each thread of a pool reads of itself, the caller's first.
template <class F>
std::vector<int> of_each_thread(PthreadPool& pool, F&& f) {
  const auto threads = static_cast<size_t>(pool.thread_count());
  std::vector<int> values;
  std::mutex mutex;
  std::atomic<size_t> arrived{0};
  const auto caller = std::this_thread::get_id();
  // Each piece waits for all threads, so that each of them takes one.
  parallel_for(&pool, pool.thread_count(), 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    values.insert(std::this_thread::get_id() == caller ? values.begin() : values.end(), f());
  });
  return values;
}

TEST(PthreadPool, PlacesItsThreadsOnProcessors) {
  std::array<int, CPU_SETSIZE> fast;
  const int n = fastest_processors(fast);
  ASSERT_GE(n, 1);
  const int first = fast[0], last = fast[static_cast<size_t>(n) - 1];
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const int processors[] = {last, first};
  PthreadPool pool(3, {.processors = processors});
  EXPECT_TRUE(pool.status().ok()) << pool.status().message;
  const auto only = [] {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1) return -1;
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) return i;
    return -1;
  };
  std::vector<int> places = of_each_thread(pool, only);
  ASSERT_EQ(places.size(), 3U);
  std::vector<int> started(places.begin() + 1, places.end()), wanted = {first, last};
  std::sort(started.begin(), started.end());
  EXPECT_EQ(started, wanted);
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "the caller's thread keeps its own";
}

TEST(PthreadPool, GivesItsThreadsANiceValue) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  if (own > 17) GTEST_SKIP() << "this process has the nice value " << own;
  PthreadPool pool(3, {.nice = own + 2});
  EXPECT_TRUE(pool.status().ok()) << pool.status().message;
  const std::vector<int> values = of_each_thread(pool, [] { return ::getpriority(PRIO_PROCESS, 0); });
  EXPECT_EQ(values, (std::vector<int>{own, own + 2, own + 2}));
}

TEST(PthreadPool, GivesItsThreadsARealTimePriorityOrStatesTheRefusal) {
  PthreadPool pool(2, {.realtime = 1});
  const std::vector<int> policies = of_each_thread(pool, [] { return ::sched_getscheduler(0); });
  if (pool.status().ok()) {
    EXPECT_EQ(policies, (std::vector<int>{SCHED_OTHER, SCHED_FIFO}));
  } else {
    EXPECT_EQ(pool.status().code, Code::kUnsupported);
    EXPECT_EQ(policies, (std::vector<int>{SCHED_OTHER, SCHED_OTHER}));
  }
}

TEST(PthreadPool, WorksWithoutSettingsThatAreRefused) {
  const auto of = [](const ThreadSettings& settings) {
    PthreadPool pool(2, settings);
    EXPECT_EQ(pool.thread_count(), 2);
    std::atomic<int64_t> sum{0};
    parallel_for(&pool, 100, 3, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum.load(), 100);
    char text[256];
    format_status(pool.status(), text);
    return std::pair(pool.status().code, std::string(text));
  };
  const int absent[] = {CPU_SETSIZE - 1}, negative[] = {0, -1};
  EXPECT_EQ(of({.processors = absent}).first, Code::kUnsupported);
  EXPECT_NE(of({.processors = absent}).second.find("processor 1023"), std::string::npos);
  EXPECT_EQ(of({.processors = negative}).first, Code::kInvalidArgument);
  EXPECT_EQ(of({.nice = 20}).first, Code::kInvalidArgument);
  EXPECT_EQ(of({.realtime = 100}).first, Code::kInvalidArgument);
  EXPECT_EQ(PthreadPool(1, {.nice = -21}).status().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace sinter
