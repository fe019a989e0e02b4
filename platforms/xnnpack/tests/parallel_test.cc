// XNNPACK's parallel loops on an application's pool: each tile is computed once, and no two tasks have one
// thread's number at once.
#ifdef SINTER_WITH_XNNPACK
#include "platforms/xnnpack/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "sinter/thread_pool.h"

extern "C" {
size_t sinter_xnnpack_get_threads_count(pthreadpool_t pool);
void sinter_xnnpack_parallelize_1d(pthreadpool_t, pthreadpool_task_1d_t, void*, size_t, uint32_t);
void sinter_xnnpack_parallelize_2d_tile_1d(pthreadpool_t, pthreadpool_task_2d_tile_1d_t, void*, size_t,
                                           size_t, size_t, uint32_t);
void sinter_xnnpack_parallelize_3d_tile_2d_with_uarch(pthreadpool_t, pthreadpool_task_3d_tile_2d_with_id_t,
                                                      void*, uint32_t, uint32_t, size_t, size_t, size_t,
                                                      size_t, size_t, uint32_t);
void sinter_xnnpack_parallelize_3d_tile_1d_with_uarch_with_thread(
    pthreadpool_t, pthreadpool_task_3d_tile_1d_with_id_with_thread_t, void*, uint32_t, uint32_t, size_t,
    size_t, size_t, size_t, uint32_t);
void sinter_xnnpack_parallelize_6d_tile_2d(pthreadpool_t, pthreadpool_task_6d_tile_2d_t, void*, size_t,
                                           size_t, size_t, size_t, size_t, size_t, size_t, size_t, uint32_t);
}

namespace sinter {
namespace {

// A pool that takes pieces in reverse order on the caller's thread, as an application's might.
class Reversed final : public ThreadPool {
 public:
  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override {
    ++calls;
    for (int64_t end = count; end > 0; end -= grain) task(context, std::max<int64_t>(end - grain, 0), end);
  }
  int thread_count() const override { return 3; }

  int calls = 0;
};

// The number of times that each element of a grid was in a tile.
struct Grid {
  std::vector<size_t> dims;
  std::vector<std::atomic<int>> seen;
  std::atomic<int> wrong{0}, at_work[8] = {};

  explicit Grid(std::vector<size_t> d) : dims(std::move(d)), seen(count(dims)) {}
  static size_t count(const std::vector<size_t>& dims) {
    size_t n = 1;
    for (const size_t d : dims) n *= d;
    return n;
  }
  // Adds the tile at `at` whose last sizes are `size`; the others are 1.
  void add(const std::vector<size_t>& at, const std::vector<size_t>& size) {
    std::vector<size_t> extent(dims.size(), 1);
    std::copy(size.begin(), size.end(), extent.end() - static_cast<std::ptrdiff_t>(size.size()));
    for (size_t i = 0; i < count(extent); ++i) {
      size_t rest = i, place = 0, stride = 1;
      for (size_t axis = dims.size(); axis-- > 0;) {
        const size_t index = at[axis] + rest % extent[axis];
        rest /= extent[axis];
        if (index >= dims[axis]) return void(++wrong);
        place += index * stride;
        stride *= dims[axis];
      }
      ++seen[place];
    }
  }
  bool once() const {
    return wrong == 0 && std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; });
  }
};

class Parallel : public testing::TestWithParam<int> {
 protected:
  // Returns the pool: 0: none; 1: the application's; others: that many threads.
  ThreadPool* pool() {
    if (GetParam() > 1) return &threads_;
    return GetParam() == 1 ? &reversed_ : nullptr;
  }
  pthreadpool_t given() { return xnnpack::as_pthreadpool(pool()); }

 private:
  Reversed reversed_;
  PthreadPool threads_{std::max(GetParam(), 1)};
};
INSTANTIATE_TEST_SUITE_P(Pools, Parallel, testing::Values(0, 1, 2, 4));

TEST_P(Parallel, VisitsEveryTileOnce) {
  EXPECT_EQ(sinter_xnnpack_get_threads_count(given()), static_cast<size_t>(threads_of(pool())));
  for (const size_t n : {0, 1, 2, 5, 257}) {
    Grid line({n});
    sinter_xnnpack_parallelize_1d(
        given(), [](void* grid, size_t i) { static_cast<Grid*>(grid)->add({i}, {}); }, &line, n, 0);
    EXPECT_TRUE(line.once()) << n;
    for (const size_t tile : {1, 3, 300}) {
      Grid plane({7, n});
      sinter_xnnpack_parallelize_2d_tile_1d(
          given(),
          [](void* grid, size_t i, size_t j, size_t size) {
            static_cast<Grid*>(grid)->add({i, j}, {size});
          },
          &plane, 7, n, tile, 0);
      EXPECT_TRUE(plane.once()) << n << " by " << tile;
    }
  }
  Grid six({2, 3, 1, 2, 7, 5});
  sinter_xnnpack_parallelize_6d_tile_2d(
      given(),
      [](void* grid, size_t i, size_t j, size_t k, size_t l, size_t m, size_t n, size_t size_m,
         size_t size_n) {
        static_cast<Grid*>(grid)->add({i, j, k, l, m, n}, {size_m, size_n});
      },
      &six, 2, 3, 1, 2, 7, 5, 3, 4, 0);
  EXPECT_TRUE(six.once());
}

TEST_P(Parallel, PassesTheKindOfProcessorThatTheKernelIsFor) {
  Grid grid({3, 9, 11});
  sinter_xnnpack_parallelize_3d_tile_2d_with_uarch(
      given(),
      [](void* context, uint32_t kind, size_t i, size_t j, size_t k, size_t size_j, size_t size_k) {
        auto& g = *static_cast<Grid*>(context);
        if (kind != 2) ++g.wrong;
        g.add({i, j, k}, {size_j, size_k});
      },
      &grid, 2, 5, 3, 9, 11, 4, 3, 0);
  EXPECT_TRUE(grid.once());
}

TEST_P(Parallel, NumbersThreadsThatWorkAtTheSameTime) {
  for (int round = 0; round < 50; ++round) {
    Grid grid({3, 5, 41});
    sinter_xnnpack_parallelize_3d_tile_1d_with_uarch_with_thread(
        given(),
        [](void* context, uint32_t kind, size_t thread, size_t i, size_t j, size_t k, size_t size) {
          auto& g = *static_cast<Grid*>(context);
          if (kind != 1 || thread >= 4 || ++g.at_work[thread] != 1) ++g.wrong;
          g.add({i, j, k}, {size});
          if (thread < 4) --g.at_work[thread];
        },
        &grid, 1, 1, 3, 5, 41, 2, 0);
    EXPECT_TRUE(grid.once());
  }
}

TEST(ParallelOfXnnpack, RunsOnThePoolOfTheApplication) {
  Reversed pool;
  Grid grid({100});
  sinter_xnnpack_parallelize_1d(
      xnnpack::as_pthreadpool(&pool), [](void* g, size_t i) { static_cast<Grid*>(g)->add({i}, {}); }, &grid,
      100, 0);
  EXPECT_EQ(pool.calls, 1);
  EXPECT_TRUE(grid.once());
}

}  // namespace
}  // namespace sinter
#endif
