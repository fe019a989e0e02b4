// The emulator: the results of kernels on it, and the breaches that it finds.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "platforms/cuda/emulator/run.h"
#include "platforms/cuda/grid/grid.h"

namespace sinter::cuda {
namespace {

using Body = std::function<void()>;

// Returns the first breach of one block that runs `body` on every thread, or an empty text.
std::string breach(const Body& body, int threads = 64, size_t shared_bytes = 1024, bool cooperates = true) {
  const char* text = emulator::run_grid(
      {{1, 1, 1}, threads, shared_bytes, cooperates}, [](const void* a) { (*static_cast<const Body*>(a))(); },
      &body);
  return text != nullptr ? text : "";
}
#define EXPECT_BREACH(text, ...) \
  EXPECT_NE(breach(__VA_ARGS__).find(text), std::string::npos) << breach(__VA_ARGS__)

TEST(Emulator, RunsEveryThreadOfEveryBlock) {
  std::vector<int> seen(6 * 96);
  const Body body = [&] {
    const auto block = static_cast<int>(block_x() + 3 * block_y());
    ++seen[static_cast<size_t>(block * block_threads() + thread_index())];
    EXPECT_EQ(blocks_x(), 3u);
    EXPECT_EQ(lane(), thread_index() % 32);
    EXPECT_EQ(warp_index(), thread_index() / 32);
  };
  for (const bool together : {false, true}) {
    std::fill(seen.begin(), seen.end(), 0);
    EXPECT_EQ(
        emulator::run_grid(
            {{3, 2, 1}, 96, 0, together}, [](const void* a) { (*static_cast<const Body*>(a))(); }, &body),
        nullptr);
    EXPECT_EQ(seen, std::vector<int>(6 * 96, 1));
  }
}

TEST(Emulator, PassesValuesThroughSharedMemory) {
  std::vector<float> sums(64);
  EXPECT_EQ(breach([&] {
              const Shared<float> all = shared_memory<float>(0, 64);
              all[thread_index()] = static_cast<float>(thread_index());
              barrier();
              float sum = 0;
              for (int i = 0; i < 64; ++i) sum += all[i];
              sums[static_cast<size_t>(thread_index())] = sum;
            }),
            "");
  EXPECT_EQ(sums, std::vector<float>(64, 64 * 63 / 2));
}

TEST(Emulator, ExchangesValuesWithinAWarp) {
  EXPECT_EQ(breach([] {
              const int t = thread_index(), first = t / 32 * 32;
              EXPECT_EQ(shuffle(t, 5), first + 5);
              EXPECT_EQ(shuffle_xor(t, 1), t ^ 1);
              EXPECT_EQ(shuffle_up(t, 2), lane() < 2 ? t : t - 2);
              EXPECT_EQ(shuffle_down(int64_t{t}, 3), lane() > 28 ? t : t + 3);
              EXPECT_EQ(ballot(lane() % 3 == 0), 0x49249249u);
              EXPECT_EQ(fold_warp(1.5f, AddUp()), 48.0f);
              EXPECT_EQ(fold_block(int64_t{t}, shared_memory<int64_t>(0, 2), AddUp()), 64 * 63 / 2);
            }),
            "");
}

// Returns entry (row, column) of the operands of a product.
int entry(int row, int column, int seed) { return (row * 7 + column * 3 + seed) % 11 - 5; }

template <class Sum, class Encode, class Multiply>
void check_product(int k_end, int per_word, Encode encode, Multiply multiply) {
  const auto word = [&](int row, int k, int seed) {
    uint32_t w = 0;
    for (int i = 0; i < per_word; ++i) w |= encode(entry(row, k + i, seed)) << (32 / per_word * i);
    return w;
  };
  EXPECT_EQ(breach(
                [&] {
                  const int g = lane() / 4, t = lane() % 4, at = per_word * t, half = k_end / 2;
                  const uint32_t a[4] = {word(g, at, 1), word(g + 8, at, 1), word(g, at + half, 1),
                                         word(g + 8, at + half, 1)};
                  const uint32_t b[2] = {word(g, at, 2), word(g, at + half, 2)};
                  Sum d[4] = {1, 2, 3, 4};
                  multiply(d, a, b);
                  for (int i = 0; i < 4; ++i) {
                    const int row = g + 8 * (i / 2), column = 2 * t + i % 2;
                    int sum = i + 1;
                    for (int k = 0; k < k_end; ++k) sum += entry(row, k, 1) * entry(column, k, 2);
                    EXPECT_EQ(d[i], static_cast<Sum>(sum)) << row << ", " << column;
                  }
                },
                32),
            "");
}

TEST(Emulator, MultipliesMatricesByAWarp) {
  check_product<float>(
      16, 2, [](int v) { return uint32_t{float16_bits(v)}; },
      [](auto& d, auto& a, auto& b) { multiply_float16(d, a, b); });
  check_product<float>(
      16, 2, [](int v) { return uint32_t{bfloat16_bits(v)}; },
      [](auto& d, auto& a, auto& b) { multiply_bfloat16(d, a, b); });
  check_product<int32_t>(
      32, 4, [](int v) { return uint32_t{static_cast<uint8_t>(v)}; },
      [](auto& d, auto& a, auto& b) { multiply_int8(d, a, b); });
}

TEST(Emulator, CopiesWhileThreadsGoOn) {
  alignas(16) static float from[64 * 4];
  for (int i = 0; i < 64 * 4; ++i) from[i] = static_cast<float>(i);
  EXPECT_EQ(breach([] {
              const Shared<float> to = shared_memory<float>(0, 64 * 4);
              copy_async(to, 4 * thread_index(), from + 4 * thread_index(), thread_index() == 63 ? 8 : 16);
              commit_copies();
              wait_for_copies<0>();
              barrier();
              for (int i = 0; i < 4; ++i) {
                const int at = (4 * thread_index() + 17 + i) % 256;
                EXPECT_EQ(to[at], at < 254 ? static_cast<float>(at) : 0.0f);
              }
            }),
            "");
}

// ---- breaches

TEST(EmulatorFinds, RacesBetweenBarriers) {
  EXPECT_BREACH("written without a barrier behind another thread's write",
                [] { shared_memory<int>(0, 1)[0] = thread_index(); });
  EXPECT_BREACH("read without a barrier behind another thread's write", [] {
    const Shared<int> all = shared_memory<int>(0, 64);
    all[thread_index()] = 1;
    if (lane() > 0) (void)static_cast<int>(all[thread_index() - 1]);
  });
  EXPECT_BREACH("written without a barrier behind another thread's read", [] {
    const Shared<int> all = shared_memory<int>(0, 64);
    all[thread_index()] = 1;
    barrier();
    if (lane() < 31) (void)static_cast<int>(all[thread_index() + 1]);
    all[thread_index()] = 2;
  });
  // Within a warp, its own barrier suffices; an exchange does not, nor does either among warps.
  const auto through_warp = [](int distance, bool exchange = false) {
    return [distance, exchange] {
      const Shared<int> all = shared_memory<int>(0, 64);
      all[thread_index()] = 1;
      if (exchange)
        (void)shuffle(1, 0);
      else
        warp_barrier();
      (void)static_cast<int>(all[thread_index() ^ distance]);
    };
  };
  EXPECT_EQ(breach(through_warp(1)), "");
  EXPECT_NE(breach(through_warp(1, true)), "");
  EXPECT_NE(breach(through_warp(32)), "");
}

TEST(EmulatorFinds, RacesBetweenWordsOfSharedMemoryAndTheirBytes) {
  // Byte t of `bytes` is that of word t / 4 of `words`.
  const auto by = [](int word_thread, int byte_thread, bool wait) {
    return [=] {
      const Shared<int> words = shared_memory<int>(0, 4);
      const Shared<uint8_t> bytes = shared_memory<uint8_t>(0, 16);
      if (thread_index() == word_thread) words[1] = 1;
      if (wait) barrier();
      if (thread_index() == byte_thread) bytes[6] = 1;
      barrier();
      if (thread_index() == 0) words[1] = words[1] + bytes[6];
    };
  };
  EXPECT_EQ(breach(by(0, 0, false)), "");
  EXPECT_EQ(breach(by(0, 1, true)), "");
  EXPECT_BREACH("written without a barrier behind another thread's write", by(0, 1, false));
  EXPECT_BREACH(
      "read before it is written",
      [] {
        shared_memory<uint8_t>(0, 16)[thread_index() == 0 ? 4 : 7] = 1;
        barrier();
        if (thread_index() == 0) (void)static_cast<int>(shared_memory<int>(0, 4)[1]);
      },
      2);
}

TEST(EmulatorFinds, AccessesOutsideOfSharedMemory) {
  EXPECT_BREACH("accessed beyond what the launch has: byte 1024 of 1024",
                [] { shared_memory<int>(0, 256)[256] = 1; });
  EXPECT_BREACH("accessed beyond what the launch has: byte -4", [] { shared_memory<int>(0, 256)[-1] = 1; });
  EXPECT_BREACH("claims shared memory beyond what the launch has", [] { (void)shared_memory<int>(0, 257); });
  EXPECT_BREACH(
      "not aligned", [] { shared_memory<float>(0, 256).store(1, int64_t{0}); }, 32, 1024);
  EXPECT_BREACH("before it is written", [] { (void)static_cast<int>(shared_memory<int>(0, 1)[0]); });
}

TEST(EmulatorFinds, ThreadsThatDoNotMeet) {
  EXPECT_BREACH("barrier that others have passed", [] {
    if (thread_index() < 32) barrier();
  });
  EXPECT_BREACH("one warp are apart", [] {
    if (lane() < 31) (void)shuffle(1, 0);
  });
  EXPECT_BREACH("one warp are apart", [] {
    if (lane() < 31)
      (void)shuffle(1, 0);
    else
      warp_barrier();
  });
  EXPECT_BREACH(
      "threads are apart", [] { barrier(); }, 64, 0, false);
}

TEST(EmulatorFinds, CopiesThatNobodyWaitsFor) {
  alignas(16) static float from[4] = {};
  EXPECT_BREACH("did not wait for",
                [] { copy_async(shared_memory<float>(0, 256), 4 * thread_index(), from); });
  EXPECT_BREACH("before it is written", [] {
    const Shared<float> to = shared_memory<float>(0, 256);
    copy_async(to, 4 * thread_index(), from);
    commit_copies();
    wait_for_copies<1>();
    barrier();
    (void)static_cast<float>(to[4 * thread_index()]);
  });
  EXPECT_BREACH("aligned bytes", [] { copy_async(shared_memory<float>(0, 256), 0, from + 1, 16); });
}

// A breach ends one launch, not the next one.
TEST(Emulator, GoesOnAfterABreach) {
  EXPECT_NE(breach([] { shared_memory<int>(0, 1)[0] = thread_index(); }), "");
  EXPECT_EQ(breach([] { barrier(); }), "");
}

}  // namespace
}  // namespace sinter::cuda
