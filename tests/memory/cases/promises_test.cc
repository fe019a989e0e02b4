// The guarantees on models that use much of what a file can hold, and that the checks detect a broken one.
#include "tests/memory/promises.h"

#include <gtest/gtest.h>

#include "platforms/simd/simd_backend.h"
#include "platforms/simd/simd_kernels.h"
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
TEST(Promises, LengthsModel) { keeps_its_promises(testing::lengths_model()); }

TEST(Promises, WeightedModel) { keeps_its_promises(testing::weighted_model()); }
// Such weights are of no use, and are packed again.
TEST(Promises, PackedForAnotherInstructionSet) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {4, 30}), y = b.value(DType::kFloat32, {4, 40});
  std::vector<float> matrix(40 * 30);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 17) / 17 - 0.5f;
  const int w = b.constant<float>(DType::kFloat32, {40, 30}, matrix);
  b.step(FullyConnectedAttrs{}, {x, w}, {y}).workspace = 1 << 16;
  b.output("y", y);
  const AlignedBytes file = b.build();
  const OpenedFile opened(file.span());
  ASSERT_TRUE(opened.status().ok());
  SimdBackend simd;
  Backend* const backends[] = {&simd};
  SessionOptions options{.backends = backends, .backend = "simd"};
  if (!set_simd_cap("sse4")) GTEST_SKIP() << "has one instruction set";
  const AlignedBytes block(PackedWeights::requirements(opened.model(), options).value().bytes);
  const auto packed = PackedWeights::create(opened.model(), block.span(), options);
  set_simd_cap(nullptr);
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(packed.value().count(), 1u);
  const size_t alone = Session::requirements(opened.model(), options).value().packed;
  EXPECT_GT(alone, 0u);
  const Use use{opened.model(), harmless_inputs(opened.model()), options, ""};
  options.packed_weights = &packed.value();
  const Use sharing{opened.model(), use.inputs, options, ""};
  const bool other = std::string_view(simd_target()) != "sse4";
  EXPECT_EQ(Session::requirements(opened.model(), options).value().packed, other ? alone : 0);
  EXPECT_EQ(check_creation(sharing, 50), "");
}

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
