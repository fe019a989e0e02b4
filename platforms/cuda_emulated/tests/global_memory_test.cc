// The breaches that the emulator finds in kernels' accesses to global memory.
#include <gmock/gmock.h>

#include <functional>

#include "platforms/cuda/emulator/device_memory.h"
#include "platforms/cuda/emulator/run.h"
#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda_emulated/test_kernels/accesses.h"

namespace sinter::cuda {
namespace {

using test_kernels::get;
using test_kernels::get_byte;
using test_kernels::get_double;
using test_kernels::put;
using test_kernels::put_bytes;
using ::testing::HasSubstr;

using Body = std::function<void()>;

class GlobalMemory : public ::testing::Test {
 protected:
  static constexpr int kInts = 256;

  GlobalMemory() {
    block_ = emulator::allocate_device(kInts * sizeof(int));
    emulator::open_device_memory(true);
    at_ = reinterpret_cast<int*>(block_);
  }
  ~GlobalMemory() override {
    emulator::open_device_memory(false);
    EXPECT_EQ(emulator::free_device(block_), kInts * sizeof(int));
  }
  void SetUp() override {
    if (!emulator::kReportsAccesses)
      GTEST_SKIP() << "kernels of this build report their accesses to a sanitizer";
  }
  // Returns the first breach, or an empty text.
  static std::string breach(const Body& body, uint32_t blocks = 1, bool cooperates = true) {
    const char* text = emulator::run_grid(
        {{blocks, 1, 1}, 64, 1024, cooperates}, [](const void* a) { (*static_cast<const Body*>(a))(); },
        &body);
    return text != nullptr ? text : "";
  }
  // Writes all of it, as a transfer does.
  void write_all() { emulator::note_written(block_, kInts * sizeof(int)); }

  std::byte* block_ = nullptr;
  int* at_ = nullptr;
};

TEST_F(GlobalMemory, IsPassedThroughBarriers) {
  for (const bool write_first : {false, true}) {
    write_all();
    EXPECT_EQ(breach([&] {
                const int t = thread_index();
                if (write_first) put(at_ + t, t);
                barrier();
                const int v = get(at_ + (t + 33) % 64);
                barrier();
                put(at_ + t, v);
              }),
              "");
  }
  EXPECT_EQ(breach([&] { put(at_ + global_thread(), 1); }, 4), "");
  EXPECT_EQ(breach([&] { (void)get(at_ + thread_index()); }, 4), "");
  EXPECT_EQ(breach([&] { put(at_ + 255 - global_thread(), get(at_ + 255 - global_thread())); }, 4, false),
            "");
}

TEST_F(GlobalMemory, RacesAmongThreads) {
  write_all();
  for (const bool cooperates : {false, true}) {
    EXPECT_THAT(breach([&] { put(at_ + 7, 1); }, 1, cooperates),
                HasSubstr("is written without a barrier behind another thread's write: byte 28 of the 1024"));
    EXPECT_THAT(breach(
                    [&] {
                      put(at_ + thread_index(), 1);
                      if (thread_index() > 0) (void)get(at_ + thread_index() - 1);
                    },
                    1, cooperates),
                HasSubstr("is read without a barrier behind another thread's write"));
    EXPECT_THAT(breach(
                    [&] {
                      (void)get(at_ + thread_index());
                      (void)get(at_ + (thread_index() + 1) % 64);
                      if (thread_index() == 63) put(at_ + 5, 1);
                    },
                    1, cooperates),
                HasSubstr("is written without a barrier behind another thread's read"));
  }
  // One byte of several is wrong.
  EXPECT_THAT(breach([&] { put_bytes(block_ + 3 * thread_index(), 4); }),
              HasSubstr("another thread's write"));
  EXPECT_EQ(breach([&] { put_bytes(block_ + 3 * thread_index(), 3); }), "");
}

// The emulator keeps the uses of a word for its bytes once these are accessed one by one, and for the word
// again.
TEST_F(GlobalMemory, RacesBetweenWordsAndTheirBytes) {
  write_all();
  const auto at = [&](int t, const Body& body) {
    if (thread_index() == t) body();
  };
  for (const int byte : {0, 3}) {
    std::byte* const b = block_ + 8 + byte;
    const auto put_word = [&] { put(at_ + 2, 1); };
    const auto get_word = [&] { (void)get(at_ + 2); };
    const auto put_byte = [&] { put_bytes(b, 1); };
    const auto read_byte = [&] { (void)get_byte(b); };
    EXPECT_THAT(breach([&] { at(0, put_word), at(1, read_byte); }), HasSubstr("is read without a barrier"));
    EXPECT_THAT(breach([&] { at(0, put_byte), at(1, get_word); }), HasSubstr("is read without a barrier"));
    EXPECT_THAT(breach([&] { at(0, put_word), at(1, put_byte); }),
                HasSubstr("behind another thread's write"));
    EXPECT_THAT(breach([&] { at(0, put_byte), at(1, put_word); }),
                HasSubstr("behind another thread's write"));
    EXPECT_THAT(breach([&] { at(0, get_word), at(1, put_byte); }), HasSubstr("behind another thread's read"));
    EXPECT_THAT(breach([&] { at(0, read_byte), at(1, put_word); }),
                HasSubstr("behind another thread's read"));
    EXPECT_THAT(breach([&] { at(0, put_byte), at(0, get_word), at(1, read_byte); }),
                HasSubstr("is read without a barrier"));
    // Accesses to other bytes of the word are no breach.
    EXPECT_EQ(breach([&] { at(0, put_byte), at(1, [&] { (void)get_byte(block_ + 9); }); }), "");
    EXPECT_EQ(breach([&] { at(0, put_byte), at(0, put_word), at(0, get_word), at(0, read_byte); }), "");
    // The words are behind a barrier that orders all of their bytes, which several threads wrote.
    const auto through_words = [&](const Body& last) {
      return [&, last] {
        if (thread_index() < 4) put_bytes(block_ + 8 + thread_index(), 1);
        barrier();
        at(0, get_word), at(0, put_word);
        last();
      };
    };
    EXPECT_EQ(breach(through_words([&] { at(0, read_byte); })), "");
    EXPECT_THAT(breach(through_words([&] { at(1, read_byte); })), HasSubstr("is read without a barrier"));
    EXPECT_THAT(breach(through_words([&] { at(1, get_word); })), HasSubstr("is read without a barrier"));
  }
}

TEST_F(GlobalMemory, IsOrderedWithinAWarpByItsBarrierAlone) {
  const auto pass = [&](int distance, bool wait) {
    return breach([=, this] {
      put(at_ + thread_index(), 1);
      if (wait)
        warp_barrier();
      else
        (void)shuffle(1, 0);
      (void)get(at_ + (thread_index() ^ distance));
    });
  };
  EXPECT_EQ(pass(1, true), "");
  EXPECT_NE(pass(1, false), "");
  EXPECT_NE(pass(32, true), "");
}

TEST_F(GlobalMemory, RacesAmongBlocks) {
  write_all();
  EXPECT_THAT(breach([&] { put(at_ + thread_index(), 1); }, 2), HasSubstr("of block 1, 0, 0)"));
  EXPECT_THAT(breach(
                  [&] {
                    if (block_x() == 0) put(at_ + thread_index(), 1);
                    barrier();
                    if (block_x() == 1) (void)get(at_ + thread_index());
                  },
                  2),
              HasSubstr("is read without a barrier behind another thread's write"));
  // The last of several blocks that read is reported.
  EXPECT_THAT(breach(
                  [&] {
                    (void)get(at_ + thread_index());
                    barrier();
                    if (block_x() == 2) put(at_ + thread_index(), 1);
                  },
                  3),
              HasSubstr("is written without a barrier behind another thread's read"));
  // Launches are ordered.
  EXPECT_EQ(breach([&] { put(at_ + thread_index(), 1); }), "");
  EXPECT_EQ(breach([&] { put(at_ + 63 - thread_index(), get(at_ + 63 - thread_index())); }), "");
}

TEST_F(GlobalMemory, IsChangedAtomically) {
  write_all();
  EXPECT_EQ(breach([&] { atomic_add(at_, 1); }, 3), "");
  EXPECT_THAT(breach(
                  [&] {
                    atomic_add(at_, 1);
                    if (thread_index() == 63) (void)get(at_);
                  },
                  1),
              HasSubstr("is read without a barrier"));
  EXPECT_THAT(breach(
                  [&] {
                    if (block_x() == 0 && thread_index() == 0) put(at_, 1);
                    if (block_x() == 1) atomic_max(at_, 1);
                  },
                  2),
              HasSubstr("is written without a barrier behind another thread's write"));
  EXPECT_EQ(breach([&] {
              if (thread_index() == 0) put(at_, 0);
              barrier();
              atomic_add(at_, 1);
              barrier();
              EXPECT_EQ(get(at_), 64);
            }),
            "");
}

TEST_F(GlobalMemory, IsAligned) {
  write_all();
  EXPECT_EQ(breach([&] { (void)get_double(block_ + 8); }), "");
  EXPECT_THAT(breach([&] { (void)get_double(block_ + 4); }), HasSubstr("not aligned for it"));
  EXPECT_THAT(breach([&] { (void)get_double(block_ + 4); }), HasSubstr("byte 4 of the 1024"));
  EXPECT_THAT(breach([&] { atomic_add(reinterpret_cast<int*>(block_ + 2), 1); }), HasSubstr("not aligned"));
}

TEST_F(GlobalMemory, IsWrittenBeforeItIsRead) {
  EXPECT_THAT(breach([&] { (void)get(at_ + thread_index()); }), HasSubstr("is read before it is written"));
  EXPECT_THAT(breach([&] { atomic_add(at_, 1); }), HasSubstr("is read before it is written"));
  EXPECT_EQ(breach([&] { put(at_ + thread_index(), 1); }), "");
  EXPECT_EQ(breach([&] { (void)get(at_ + thread_index()); }), "");
  // A copy of bytes that were not written was not written either.
  emulator::note_copied(at_, at_ + 128, 8);
  EXPECT_THAT(breach([&] { (void)get(at_ + 1); }), HasSubstr("is read before it is written"));
  EXPECT_EQ(breach([&] { (void)get(at_ + 2); }), "");
  EXPECT_THAT(breach([&] {
                const Shared<int> to = shared_memory<int>(0, 256);
                copy_async(to, 4 * thread_index(), at_ + 64 + 4 * (thread_index() % 16));
                commit_copies();
                wait_for_copies<0>();
              }),
              HasSubstr("is read before it is written"));
}

TEST_F(GlobalMemory, EndsWhereItIsAllocated) {
  write_all();
  EXPECT_THAT(breach([&] { (void)get(at_ + kInts); }), HasSubstr("where nothing is allocated"));
  EXPECT_THAT(breach([&] { put(at_ - 1, 1); }, 1, false), HasSubstr("where nothing is allocated"));
  emulator::fence_off(at_ + 4, 16, true);
  EXPECT_THAT(breach([&] { (void)get(at_ + 7); }), HasSubstr("is accessed beside an operand"));
  EXPECT_THAT(breach([&] { put(at_ + 4, 1); }), HasSubstr("is accessed beside an operand"));
  EXPECT_EQ(breach([&] { (void)get(at_ + 8); }), "");
  emulator::fence_off(at_ + 4, 16, false);
  EXPECT_EQ(breach([&] { (void)get(at_ + 7); }), "");
}

}  // namespace
}  // namespace sinter::cuda
