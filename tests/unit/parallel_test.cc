// How work is divided among threads.
#include "runtime/core/parallel.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace sinter {
namespace {

// Runs pieces one after another and notes them.
class NotingPool final : public ThreadPool {
 public:
  explicit NotingPool(int threads) : threads_(threads) {}
  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override {
    for (int64_t begin = 0; begin < count; begin += grain) {
      const int64_t end = begin + grain < count ? begin + grain : count;
      pieces.emplace_back(begin, end);
      task(context, begin, end);
    }
  }
  int thread_count() const override { return threads_; }
  std::vector<std::pair<int64_t, int64_t>> pieces;

 private:
  int threads_;
};

TEST(Parallel, EachThreadGetsAsManyPieces) {
  for (const int threads : {2, 3, 4, 7})
    for (const int64_t count : {2, 3, 5, 8, 25, 100, 1001, 20000})
      for (const int64_t grain : {1, 2, 3, 8, 64, 8192}) {
        NotingPool pool(threads);
        std::vector<int> seen(static_cast<size_t>(count));
        parallel_for(&pool, count, grain, [&](int64_t begin, int64_t end) {
          EXPECT_TRUE(end - begin <= grain || count <= grain);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(count), 1));
        if (count <= grain) {
          EXPECT_TRUE(pool.pieces.empty());  // the caller's thread
          continue;
        }
        // Up to eight pieces a thread are as many for each; more may be one too many for some.
        const auto pieces = static_cast<int64_t>(pool.pieces.size());
        const int64_t most = (pieces + threads - 1) / threads * pool.pieces[0].second;
        const int64_t surplus = (count + grain - 1) / grain < 8 * threads ? 8 : grain;
        EXPECT_LE(most, count / threads + surplus) << threads << " threads, " << count << " by " << grain;
      }
}

TEST(Parallel, APieceTooManyIsDividedAmongAll) {
  EXPECT_EQ(even_grain(20000, 8192, 2), 5000);  // four pieces, not three
  EXPECT_EQ(even_grain(25, 5, 2), 5);           // six pieces of 25 items have five, too
  EXPECT_EQ(even_grain(24, 4, 2), 4);
  EXPECT_EQ(even_grain(100, 64, 2), 50);
  EXPECT_EQ(even_grain(3, 1, 2), 1);
  EXPECT_EQ(even_grain(17000, 1000, 2), 1000);  // 17 pieces
}

}  // namespace
}  // namespace sinter
