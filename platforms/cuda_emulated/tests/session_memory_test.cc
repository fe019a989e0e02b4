// The block of device memory of a session, and the constants in it.
#include <gtest/gtest.h>

#include "platforms/cuda_emulated/tests/sessions.h"

namespace sinter::cuda {
namespace {

TEST(CudaQueue, TakesABlockOfTheCallers) {
  FarModel b = copies(2);
  Running measured(b, kOnDevice);
  ASSERT_RUNNING(measured);
  const size_t bytes = measured.needs.devices[0].bytes;
  std::byte* block = nullptr;
  ASSERT_TRUE(emulated.allocate(bytes, kBufferAlignment, &block).ok());
  {
    DeviceBlock given[] = {{"cuda-emulated", {block, bytes}}};
    SessionOptions options = kOnDevice;
    options.devices = given;
    const Counted counted;
    Running r(b, options);
    ASSERT_RUNNING(r);
    EXPECT_EQ(counted.since().allocations, 0);
    expect_same_bits(r, fill_x, 1);
    given[0].block = {block, bytes - 1};
    Running small(b, options);
    EXPECT_EQ(small.status.code, Code::kOutOfMemory);
  }
  emulated.free(block);
}

TEST(CudaQueue, BringsAConstantOnceForStepsAndSessions) {
  FarModel b = with_constant();
  Running alone(b, kOnDevice);
  ASSERT_RUNNING(alone);
  expect_same_bits(alone, fill_x, 1);
  const size_t constant = align_up(size_t{4000} + kReadPadding, kBufferAlignment);
  EXPECT_LT(alone.needs.devices[0].prepared, 2 * constant);

  const auto needs = PackedWeights::requirements(alone.model, kOnDevice);
  ASSERT_TRUE(needs.ok()) << testing::sentence(needs.status());
  ASSERT_EQ(needs.value().device_count, 1u);
  const size_t bytes = needs.value().devices[0].bytes;
  std::byte* block = nullptr;
  ASSERT_TRUE(emulated.allocate(bytes, kBufferAlignment, &block).ok());
  {
    const DeviceBlock given[] = {{"cuda-emulated", {block, bytes}}};
    SessionOptions packing = kOnDevice;
    packing.devices = given;
    testing::AlignedBytes memory(needs.value().bytes);
    const Counted counted;
    const auto packed = PackedWeights::create(alone.model, memory.span(), packing);
    ASSERT_TRUE(packed.ok()) << testing::sentence(packed.status());
    EXPECT_EQ(packed.value().count(), 1u);
    EXPECT_EQ(counted.since().uploads, 1);
    EXPECT_EQ(counted.since().staging_allocations, counted.since().staging_frees);
    SessionOptions options = kOnDevice;
    options.packed_weights = &packed.value();
    for (int i = 0; i < 2; ++i) {
      const auto need = Session::requirements(alone.model, options);
      ASSERT_TRUE(need.ok());
      EXPECT_EQ(need.value().devices[0].prepared + constant, alone.needs.devices[0].prepared);
      testing::AlignedBytes own(need.value().bytes);
      const Counted creation;
      auto session = Session::create(alone.model, own.span(), options);
      ASSERT_TRUE(session.ok()) << testing::sentence(session.status());
      EXPECT_EQ(creation.since().uploads, 0);
      fill_x(*session, i);
      ASSERT_TRUE(session->run().ok());
      const TensorView z = session->output("w");
      for (int k = 0; k < 1000; ++k) EXPECT_EQ(z.as<float>()[k], static_cast<float>(k));
      session->destroy();
    }
    // Without a block, sessions bring them themselves.
    const auto without = PackedWeights::create(alone.model, memory.span(), kOnDevice);
    ASSERT_TRUE(without.ok());
    EXPECT_EQ(without.value().count(), 0u);
    options.packed_weights = &without.value();
    EXPECT_EQ(Session::requirements(alone.model, options).value().devices[0].prepared,
              alone.needs.devices[0].prepared);
    const DeviceBlock small[] = {{"cuda-emulated", {block, bytes - 1}}};
    packing.devices = small;
    EXPECT_EQ(PackedWeights::create(alone.model, memory.span(), packing).status().code, Code::kOutOfMemory);
  }
  emulated.free(block);
}

}  // namespace
}  // namespace sinter::cuda
