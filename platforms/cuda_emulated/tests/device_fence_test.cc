// The suite of operations lets kernels access elements of operands only.
#include <gmock/gmock.h>

#include "platforms/cuda/emulator/device_memory.h"
#include "platforms/cuda/emulator/run.h"
#include "platforms/cuda_emulated/cuda_emulated_backend.h"
#include "platforms/cuda_emulated/test_kernels/accesses.h"
#include "tests/op_harness/on_device.h"

namespace sinter::cuda {
namespace {

// Returns the breach of a kernel that reads an int, or an empty text.
std::string breach_at(const std::byte* at) {
  emulator::open_device_memory(true);
  const char* text = emulator::run_grid(
      {}, [](const void* a) { (void)test_kernels::get(static_cast<const int*>(a)); }, at);
  emulator::open_device_memory(false);
  return text != nullptr ? text : "";
}

TEST(DeviceFence, IsAroundElements) {
  if (!emulator::kReportsAccesses)
    GTEST_SKIP() << "kernels of this build report their accesses to a sanitizer";
  static CudaEmulatedBackend emulated;
  BumpArena none;
  ASSERT_TRUE(emulated.open(none).ok());
  using enum test::Layout;
  for (const test::Layout layout : {kDense, kShifted, kGaps, kReversed}) {
    const test::Operand operand(DType::kInt32, {2, 3}, layout);
    test::OnDevice device(emulated);
    const TensorView view = device.bring(operand);
    const auto outside = ::testing::AnyOf(::testing::HasSubstr("is accessed beside an operand"),
                                          ::testing::HasSubstr("is accessed where nothing is allocated"));
    EXPECT_EQ(breach_at(view.data), "");
    const std::byte* last = view.data + view.strides[0] + 2 * view.strides[1];
    EXPECT_EQ(breach_at(last), "");
    EXPECT_THAT(breach_at(std::min<const std::byte*>(view.data, last) - 4), outside);
    EXPECT_THAT(breach_at(std::max<const std::byte*>(view.data, last) + 4), outside);
    if (!test::is_dense(layout)) {
      EXPECT_THAT(breach_at(view.data + view.strides[1] / 2), outside);
    }
  }
}

}  // namespace
}  // namespace sinter::cuda
