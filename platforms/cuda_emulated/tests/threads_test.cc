// Sessions on several threads use one device without synchronisation between them. The test is meant for
// ThreadSanitizer (tests/README.md); elsewhere it compares results.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "platforms/cuda_emulated/tests/sessions.h"

namespace sinter::cuda {
namespace {

constexpr int kThreads = 3;

template <class F>
void on_threads(F&& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& t : threads) t.join();
}

TEST(Threads, ShareADevice) {
  on_threads([](int t) {
    FarModel b = t == 2 ? elements() : copies(2 + t, t == 1);
    Running r(b, kOnDevice);
    ASSERT_RUNNING(r);
    expect_same_bits(r, fill_x, 20);
  });
}

// Sessions of one model read its constants in one block of the device's memory.
TEST(Threads, ShareConstantsOnADevice) {
  FarModel b = with_constant();
  Running alone(b, kOnDevice);
  ASSERT_RUNNING(alone);
  const auto needs = PackedWeights::requirements(alone.model, kOnDevice);
  ASSERT_TRUE(needs.ok()) << testing::sentence(needs.status());
  const size_t bytes = needs.value().devices[0].bytes;
  std::byte* block = nullptr;
  ASSERT_TRUE(emulated.allocate(bytes, kBufferAlignment, &block).ok());
  {
    const DeviceBlock given[] = {{"cuda-emulated", {block, bytes}}};
    SessionOptions options = kOnDevice;
    options.devices = given;
    testing::AlignedBytes memory(needs.value().bytes);
    const auto packed = PackedWeights::create(alone.model, memory.span(), options);
    ASSERT_TRUE(packed.ok()) << testing::sentence(packed.status());
    options.devices = {};
    options.packed_weights = &packed.value();
    std::array<int, kThreads> right = {};
    on_threads([&](int t) {
      const auto need = Session::requirements(alone.model, options);
      ASSERT_TRUE(need.ok());
      testing::AlignedBytes own(need.value().bytes);
      auto session = Session::create(alone.model, own.span(), options);
      ASSERT_TRUE(session.ok()) << testing::sentence(session.status());
      for (int run = 0; run < 20; ++run) {
        fill_x(*session, run);
        ASSERT_TRUE(session->run().ok());
        const TensorView w = session->output("w");
        bool all = true;
        for (int k = 0; k < 1000; ++k) all &= w.as<float>()[k] == static_cast<float>(k);
        right[static_cast<size_t>(t)] += all;
      }
      session->destroy();
    });
    for (const int runs : right) EXPECT_EQ(runs, 20);
  }
  emulated.free(block);
}

}  // namespace
}  // namespace sinter::cuda
