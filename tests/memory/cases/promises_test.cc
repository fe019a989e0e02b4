// The guarantees on models that use much of what a file can hold, and that the checks detect a broken one.
#include "tests/memory/promises.h"

#include <gtest/gtest.h>

#include "tests/format/sample_models.h"
#include "tests/memory/backends.h"
#include "tests/memory/dead_memory.h"
#include "tests/memory/watch.h"
#include "tests/unit/running.h"

namespace sinter::test {
namespace {

using testing::AlignedBytes;
using testing::ModelBuilder;

void keeps_its_promises(ModelBuilder b) {
  const AlignedBytes file = b.build();
  const OpenedFile opened(file.span());
  ASSERT_TRUE(opened.status().ok());
  EXPECT_EQ(check_opening(file.span()), "");
  Backends backends;
  for (const Use& use : backends.uses(opened.model(), harmless_inputs(opened.model()))) {
    SCOPED_TRACE(use.name);
    Runs runs;
    EXPECT_EQ(check_untouched(use, watched_runs(100), 10, &runs), "");
    EXPECT_EQ(runs.made, watched_runs(100));
    EXPECT_EQ(check_dead_memory(use), "");
    EXPECT_EQ(check_creation(use, 1000), "");
    EXPECT_EQ(check_packed(use, 1000), "");
  }
}

TEST(Promises, PlainModel) { keeps_its_promises(testing::plain_model()); }
TEST(Promises, ControlModel) { keeps_its_promises(testing::control_model()); }
TEST(Promises, WeightedModel) { keeps_its_promises(testing::weighted_model()); }
TEST(Promises, TwoSteps) { keeps_its_promises(testing::add_relu()); }

// Without state more runs repeat the last; a sum over runs does not come to rest.
TEST(Promises, SettlesWhereNothingIsKept) {
  ModelBuilder sum;
  const int x = sum.input("x", DType::kFloat32, {2});
  const int s = sum.state(DType::kFloat32, {2}, sum.add_constant<float>(DType::kFloat32, {2}, {10, 20}), 2);
  const int y = sum.value(DType::kFloat32, {2});
  sum.step(AddAttrs{}, {s, x}, {y});
  sum.output("y", y);
  for (const bool keeps : {false, true}) {
    ModelBuilder plain = testing::add_relu();
    const AlignedBytes file = (keeps ? sum : plain).build();
    const OpenedFile opened(file.span());
    ASSERT_TRUE(opened.status().ok());
    Runs runs;
    EXPECT_EQ(check_untouched({opened.model(), harmless_inputs(opened.model()), {}, ""}, 5, 10, &runs), "");
    EXPECT_EQ(runs.made, 5);
    EXPECT_EQ(runs.settled, !keeps);
  }
}

TEST(Promises, OverwritesWhatIsDead) {
  ModelBuilder b = testing::add_relu();  // h = x + c, y = relu(h), each 24 bytes
  b.place(2).first = 0, b.place(3).first = 1;
  const AlignedBytes file = b.build();
  const OpenedFile opened(file.span());
  ASSERT_TRUE(opened.status().ok());
  alignas(kBufferAlignment) std::byte arena[1024];
  std::fill(std::begin(arena), std::end(arena), std::byte{1});
  DeadMemory dead(opened.model(), {}, arena, std::byte{7});
  const auto count = [&] { return std::count(std::begin(arena), std::end(arena), std::byte{7}); };
  dead.observer()->before(dead.observer()->context, {0, 0, ""});
  const auto bytes = static_cast<std::ptrdiff_t>(Session::requirements(opened.model(), {}).value().arena);
  EXPECT_EQ(count(), bytes - 24) << "all but x";
  std::fill(std::begin(arena), std::end(arena), std::byte{1});
  dead.observer()->before(dead.observer()->context, {0, 1, ""});
  EXPECT_EQ(count(), bytes - 48) << "all but h, and x, which the builder keeps";
}

}  // namespace
}  // namespace sinter::test
