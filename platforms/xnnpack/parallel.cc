#include "platforms/xnnpack/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace sinter::xnnpack {
namespace {

constexpr size_t kMaxAxes = 6;
// The pieces for each thread, of which the quick ones take more: a compromise between even work and calls.
constexpr size_t kPiecesOfThread = 16;

ThreadPool* pool_of(pthreadpool_t pool) { return reinterpret_cast<ThreadPool*>(pool); }

// A loop over `axes` nested ranges in steps of `tile`, and the task for each of its tiles.
struct Loop {
  using Call = void (*)(const Loop& loop, const size_t* at, const size_t* size, size_t thread);

  Call call;
  void (*task)();
  void* context;
  uint32_t kind = 0;  // of processor ("uarch"): the one that XNNPACK chose its kernel for
  size_t axes = 0;
  size_t range[kMaxAxes] = {}, tile[kMaxAxes] = {};

  size_t tiles_of(size_t axis) const { return range[axis] / tile[axis] + (range[axis] % tile[axis] != 0); }
  size_t tiles() const {
    size_t product = 1;
    for (size_t axis = 0; axis < axes; ++axis) product *= tiles_of(axis);
    return product;
  }
};

// The tiles of a loop one after another, the last axis first.
struct Cursor {
  const Loop& loop;
  size_t at[kMaxAxes] = {}, size[kMaxAxes] = {};

  explicit Cursor(const Loop& of) : loop(of) {
    for (size_t axis = 0; axis < loop.axes; ++axis) fit(axis);
  }
  // Begins at this tile.
  Cursor(const Loop& of, size_t index) : loop(of) {
    for (size_t axis = loop.axes; axis-- > 0; fit(axis)) {
      const size_t tiles = axis > 0 ? loop.tiles_of(axis) : index + 1;
      at[axis] = index % tiles * loop.tile[axis];
      index /= tiles;
    }
  }
  void call(size_t thread) const { loop.call(loop, at, size, thread); }
  // Returns false behind the last tile.
  bool advance() {
    for (size_t axis = loop.axes; axis-- > 0;) {
      at[axis] += loop.tile[axis];
      const bool within = at[axis] < loop.range[axis];
      if (!within) at[axis] = 0;
      fit(axis);
      if (within) return true;
    }
    return false;
  }

 private:
  void fit(size_t axis) { size[axis] = std::min(loop.tile[axis], loop.range[axis] - at[axis]); }
};

// Runs on the calling thread, without counting tiles: divisions are slow beside small tiles.
void run_all(const Loop& loop) {
  if (std::find(loop.range, loop.range + loop.axes, size_t{0}) != loop.range + loop.axes) return;
  Cursor cursor(loop);
  do cursor.call(0);
  while (cursor.advance());
}

void run(pthreadpool_t pool, const Loop& loop) {
  const auto threads = static_cast<size_t>(threads_of(pool_of(pool)));
  if (threads == 1) return run_all(loop);
  const size_t tiles = loop.tiles();
  parallel_for(pool_of(pool), static_cast<int64_t>(tiles),
               static_cast<int64_t>(std::max<size_t>(tiles / (threads * kPiecesOfThread), 1)),
               [&](int64_t begin, int64_t end) {
                 Cursor cursor(loop, static_cast<size_t>(begin));
                 for (int64_t i = begin; i < end; ++i, cursor.advance()) cursor.call(0);
               });
}

// Runs tasks with numbers of threads, which differ among tasks at the same time and are below thread_count().
void run_numbered(pthreadpool_t pool, const Loop& loop) {
  const auto threads = static_cast<size_t>(threads_of(pool_of(pool)));
  if (threads == 1) return run_all(loop);
  const size_t tiles = loop.tiles();
  std::atomic<size_t> next{0};
  parallel_for(pool_of(pool), static_cast<int64_t>(std::min(threads, tiles)), 1,
               [&](int64_t first, int64_t last) {
                 for (int64_t number = first; number < last; ++number)
                   for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tiles;)
                     Cursor(loop, i).call(static_cast<size_t>(number));
               });
}

// The tasks of pthreadpool's interface differ in the number of axes and of the last ones that have tiles; a
// task may also take the kind of processor and the number of its thread, in this order after the context.
template <bool kKind, bool kNumber, class Task, size_t kAxes, size_t kTiled>
void parallelize(pthreadpool_t pool, Task task, void* context, uint32_t kind, const size_t (&range)[kAxes],
                 const std::array<size_t, kTiled>& tile) {
  Loop loop{.call =
                [](const Loop& l, const size_t* at, const size_t* size, size_t thread) {
                  const auto call = [&](auto... first) {
                    [&]<size_t... I, size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
                      reinterpret_cast<Task>(l.task)(l.context, first..., at[I]...,
                                                     size[kAxes - kTiled + J]...);
                    }
                    (std::make_index_sequence<kAxes>(), std::make_index_sequence<kTiled>());
                  };
                  if constexpr (kKind && kNumber)
                    call(l.kind, thread);
                  else if constexpr (kKind)
                    call(l.kind);
                  else if constexpr (kNumber)
                    call(thread);
                  else
                    call();
                },
            .task = reinterpret_cast<void (*)()>(task),
            .context = context,
            .kind = kind,
            .axes = kAxes};
  std::copy(range, range + kAxes, loop.range);
  std::fill_n(loop.tile, kAxes - kTiled, 1);
  std::transform(tile.begin(), tile.end(), loop.tile + (kAxes - kTiled),
                 [](size_t n) { return std::max<size_t>(n, 1); });
  if constexpr (kNumber)
    run_numbered(pool, loop);
  else
    run(pool, loop);
}

using Tile0 = std::array<size_t, 0>;
using Tile1 = std::array<size_t, 1>;
using Tile2 = std::array<size_t, 2>;

}  // namespace

pthreadpool_t as_pthreadpool(ThreadPool* pool) { return reinterpret_cast<pthreadpool_t>(pool); }

// The last argument of each function of pthreadpool's, `flags`, asks to flush subnormal numbers, which Sinter
// does not do, and to yield, which is up to the pool.
extern "C" {

size_t sinter_xnnpack_get_threads_count(pthreadpool_t pool) {
  return static_cast<size_t>(threads_of(pool_of(pool)));
}

void sinter_xnnpack_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task, void* context, size_t i,
                                   uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i}, Tile0{});
}

void sinter_xnnpack_parallelize_1d_tile_1d(pthreadpool_t pool, pthreadpool_task_1d_tile_1d_t task,
                                           void* context, size_t i, size_t tile_i, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i}, Tile1{tile_i});
}

void sinter_xnnpack_parallelize_1d_with_thread(pthreadpool_t pool, pthreadpool_task_1d_with_thread_t task,
                                               void* context, size_t i, uint32_t) {
  parallelize<false, true>(pool, task, context, 0, {i}, Tile0{});
}

void sinter_xnnpack_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task, void* context, size_t i,
                                   size_t j, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j}, Tile0{});
}

void sinter_xnnpack_parallelize_2d_tile_1d(pthreadpool_t pool, pthreadpool_task_2d_tile_1d_t task,
                                           void* context, size_t i, size_t j, size_t tile_j, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j}, Tile1{tile_j});
}

void sinter_xnnpack_parallelize_2d_tile_1d_with_uarch(pthreadpool_t pool,
                                                      pthreadpool_task_2d_tile_1d_with_id_t task,
                                                      void* context, uint32_t kind, uint32_t, size_t i,
                                                      size_t j, size_t tile_j, uint32_t) {
  parallelize<true, false>(pool, task, context, kind, {i, j}, Tile1{tile_j});
}

void sinter_xnnpack_parallelize_2d_tile_2d(pthreadpool_t pool, pthreadpool_task_2d_tile_2d_t task,
                                           void* context, size_t i, size_t j, size_t tile_i, size_t tile_j,
                                           uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j}, Tile2{tile_i, tile_j});
}

void sinter_xnnpack_parallelize_2d_tile_2d_with_uarch(pthreadpool_t pool,
                                                      pthreadpool_task_2d_tile_2d_with_id_t task,
                                                      void* context, uint32_t kind, uint32_t, size_t i,
                                                      size_t j, size_t tile_i, size_t tile_j, uint32_t) {
  parallelize<true, false>(pool, task, context, kind, {i, j}, Tile2{tile_i, tile_j});
}

void sinter_xnnpack_parallelize_2d_with_thread(pthreadpool_t pool, pthreadpool_task_2d_with_thread_t task,
                                               void* context, size_t i, size_t j, uint32_t) {
  parallelize<false, true>(pool, task, context, 0, {i, j}, Tile0{});
}

void sinter_xnnpack_parallelize_3d(pthreadpool_t pool, pthreadpool_task_3d_t task, void* context, size_t i,
                                   size_t j, size_t k, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j, k}, Tile0{});
}

void sinter_xnnpack_parallelize_3d_tile_1d(pthreadpool_t pool, pthreadpool_task_3d_tile_1d_t task,
                                           void* context, size_t i, size_t j, size_t k, size_t tile_k,
                                           uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j, k}, Tile1{tile_k});
}

void sinter_xnnpack_parallelize_3d_tile_1d_with_thread(pthreadpool_t pool,
                                                       pthreadpool_task_3d_tile_1d_with_thread_t task,
                                                       void* context, size_t i, size_t j, size_t k,
                                                       size_t tile_k, uint32_t) {
  parallelize<false, true>(pool, task, context, 0, {i, j, k}, Tile1{tile_k});
}

void sinter_xnnpack_parallelize_3d_tile_1d_with_uarch(pthreadpool_t pool,
                                                      pthreadpool_task_3d_tile_1d_with_id_t task,
                                                      void* context, uint32_t kind, uint32_t, size_t i,
                                                      size_t j, size_t k, size_t tile_k, uint32_t) {
  parallelize<true, false>(pool, task, context, kind, {i, j, k}, Tile1{tile_k});
}

void sinter_xnnpack_parallelize_3d_tile_1d_with_uarch_with_thread(
    pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_id_with_thread_t task, void* context, uint32_t kind,
    uint32_t, size_t i, size_t j, size_t k, size_t tile_k, uint32_t) {
  parallelize<true, true>(pool, task, context, kind, {i, j, k}, Tile1{tile_k});
}

void sinter_xnnpack_parallelize_3d_tile_2d(pthreadpool_t pool, pthreadpool_task_3d_tile_2d_t task,
                                           void* context, size_t i, size_t j, size_t k, size_t tile_j,
                                           size_t tile_k, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j, k}, Tile2{tile_j, tile_k});
}

void sinter_xnnpack_parallelize_3d_tile_2d_with_uarch(pthreadpool_t pool,
                                                      pthreadpool_task_3d_tile_2d_with_id_t task,
                                                      void* context, uint32_t kind, uint32_t, size_t i,
                                                      size_t j, size_t k, size_t tile_j, size_t tile_k,
                                                      uint32_t) {
  parallelize<true, false>(pool, task, context, kind, {i, j, k}, Tile2{tile_j, tile_k});
}

void sinter_xnnpack_parallelize_4d(pthreadpool_t pool, pthreadpool_task_4d_t task, void* context, size_t i,
                                   size_t j, size_t k, size_t l, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j, k, l}, Tile0{});
}

void sinter_xnnpack_parallelize_4d_tile_2d(pthreadpool_t pool, pthreadpool_task_4d_tile_2d_t task,
                                           void* context, size_t i, size_t j, size_t k, size_t l,
                                           size_t tile_k, size_t tile_l, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j, k, l}, Tile2{tile_k, tile_l});
}

void sinter_xnnpack_parallelize_4d_tile_2d_with_uarch(pthreadpool_t pool,
                                                      pthreadpool_task_4d_tile_2d_with_id_t task,
                                                      void* context, uint32_t kind, uint32_t, size_t i,
                                                      size_t j, size_t k, size_t l, size_t tile_k,
                                                      size_t tile_l, uint32_t) {
  parallelize<true, false>(pool, task, context, kind, {i, j, k, l}, Tile2{tile_k, tile_l});
}

void sinter_xnnpack_parallelize_5d(pthreadpool_t pool, pthreadpool_task_5d_t task, void* context, size_t i,
                                   size_t j, size_t k, size_t l, size_t m, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j, k, l, m}, Tile0{});
}

void sinter_xnnpack_parallelize_5d_tile_2d(pthreadpool_t pool, pthreadpool_task_5d_tile_2d_t task,
                                           void* context, size_t i, size_t j, size_t k, size_t l, size_t m,
                                           size_t tile_l, size_t tile_m, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j, k, l, m}, Tile2{tile_l, tile_m});
}

void sinter_xnnpack_parallelize_6d_tile_2d(pthreadpool_t pool, pthreadpool_task_6d_tile_2d_t task,
                                           void* context, size_t i, size_t j, size_t k, size_t l, size_t m,
                                           size_t n, size_t tile_m, size_t tile_n, uint32_t) {
  parallelize<false, false>(pool, task, context, 0, {i, j, k, l, m, n}, Tile2{tile_m, tile_n});
}

}  // extern "C"
}  // namespace sinter::xnnpack
