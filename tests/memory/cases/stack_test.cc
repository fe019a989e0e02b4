// The stack that the runtime takes by itself: of opening, of creating sessions and of runs, with the
// reference kernels, for models with prepared values, with control flow and with packed weights.
#include <gtest/gtest.h>

#include "bench/device/painted_stack.h"
#include "sinter/backends.h"
#include "tests/format/sample_models.h"
#include "tests/memory/guarded.h"

namespace sinter::test {
namespace {

// In bytes, on 64 bits; docs/memory.md has the measured figures.
constexpr size_t kMostToOpen = 6 << 10, kMostToCreate = 16 << 10, kMostToRun = 6 << 10;

void takes_little_stack(testing::ModelBuilder builder) {
#ifndef SINTER_STACK_LIMITED
  GTEST_SKIP() << "sanitizers and unoptimized code take more stack";
#endif
  const testing::AlignedBytes file = builder.build();
  const OpenOptions open{.kernels = reference_kernels()};
  const SessionOptions options{.backend = "reference"};
  device::PaintedStack stack;
  Guarded model_memory(Model::open_bytes(file.span(), open).value());
  Model model;
  const size_t opening =
      stack.used([&] { model = Model::open(file.span(), model_memory.span(), open).value(); });
  size_t bytes = 0;
  const size_t measuring = stack.used([&] { bytes = Session::requirements(model, options).value().bytes; });
  Guarded memory(bytes);
  Session session;
  const size_t creating = stack.used([&] {
    session.destroy();
    session = std::move(Session::create(model, memory.span(), options).value());
  });
  Status ran;
  const size_t running = stack.used([&] { ran = session.run(); });
  ASSERT_TRUE(ran.ok());
  std::printf("open %zu, requirements %zu, create %zu, run %zu bytes of stack\n", opening, measuring,
              creating, running);
  for (const size_t used : {opening, measuring, creating, running}) EXPECT_GT(used, 256u);
  EXPECT_LE(opening, kMostToOpen);
  EXPECT_LE(measuring, kMostToCreate);
  EXPECT_LE(creating, kMostToCreate);
  EXPECT_LE(running, kMostToRun);
}

TEST(Stack, OfAModelWithPreparedValues) { takes_little_stack(testing::plain_model()); }
TEST(Stack, OfControlFlow) { takes_little_stack(testing::control_model()); }
TEST(Stack, OfPackedWeights) { takes_little_stack(testing::weighted_model()); }

}  // namespace
}  // namespace sinter::test
