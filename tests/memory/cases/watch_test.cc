// The watch detects each kind of call that it is for.
#include "tests/memory/watch.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/memory/guarded.h"

namespace sinter::test {
namespace {

void* volatile sink;

TEST(Watch, CountsNothingWhereNothingIsDone) {
  const Seen seen = watched(true, [] { sink = nullptr; });
  EXPECT_TRUE(seen.nothing()) << seen.text();
}

TEST(Watch, SeesEveryKindOfAllocation) {
  const int64_t before = allocation_count();
  EXPECT_EQ(watched(false, [] { sink = new int(3); }).heap, 1);
  EXPECT_EQ(allocation_count(), before + 1);
  delete static_cast<int*>(sink);
  if (watched_kinds().starts_with("only")) GTEST_SKIP() << watched_kinds();
  EXPECT_EQ(watched(false, [] { sink = std::malloc(5); }).heap, 1);
  EXPECT_EQ(watched(false, [] { sink = std::realloc(sink, 50); }).heap, 1);
  const Seen freed = watched(false, [] { std::free(sink); });
  EXPECT_EQ(freed.freed, 1);
  EXPECT_STREQ(freed.first, "free");
  EXPECT_EQ(watched(false, [] { sink = std::calloc(5, 5); }).heap, 1);
  std::free(sink);
  EXPECT_EQ(watched(false, [] { sink = std::aligned_alloc(64, 64); }).heap, 1);
  std::free(sink);
  EXPECT_GE(watched(false, [] { std::thread([] { sink = std::malloc(5); }).join(); }).heap, 2)
      << "other threads";
  std::free(sink);
}

TEST(Watch, SeesMappingsLocksAndCalls) {
  if (watched_kinds().starts_with("only")) GTEST_SKIP() << watched_kinds();
  const auto map = [] { sink = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  EXPECT_EQ(watched(false, map).mappings, 1);
  EXPECT_EQ(watched(false, [] { munmap(sink, 4096); }).mappings, 1);
  std::mutex m;
  EXPECT_EQ(watched(true, [&] { std::scoped_lock hold(m); }).locks, 2);
  EXPECT_EQ(watched(false, [&] { std::scoped_lock hold(m); }).locks, 0) << "only where alone";
  if (watched_kinds().find("not") != std::string::npos) GTEST_SKIP() << watched_kinds();
  long parent = 0;
  const Seen seen = watched(true, [&] { parent = syscall(SYS_getppid); });
  EXPECT_EQ(seen.system_calls, 1);
  EXPECT_EQ(seen.first_system_call, SYS_getppid);
  EXPECT_EQ(parent, getppid()) << "the call is made all the same";
}

TEST(Guarded, EndsTheProgramBesideItsBytes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a sanitizer with threads does not fork well";
#endif
  const auto touch = [](volatile std::byte* p) { return *p; };
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{5000}}) {
    const Guarded end(bytes), tight(bytes, Flush::kEnd, 0), start(bytes, Flush::kStart);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(end.data()) % 64, 0u);
    touch(end.data() + bytes + 63);
    EXPECT_DEATH(touch(end.data() + bytes + 64 + 63), "");
    EXPECT_DEATH(touch(tight.data() + (bytes + 63) / 64 * 64), "");
    EXPECT_DEATH(touch(start.data() - 1), "");
  }
  Guarded g(100);
  EXPECT_TRUE(g.clean());
  g.data()[99] = std::byte{1};
  EXPECT_TRUE(g.clean());
  g.data()[100] = std::byte{1};
  EXPECT_FALSE(g.clean());
}

}  // namespace
}  // namespace sinter::test
