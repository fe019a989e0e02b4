// What opening and creating take besides the memory that they are given: nothing, but for what a library
// keeps for the whole process the first time.
#include <gtest/gtest.h>

#include "tests/format/sample_models.h"
#include "tests/memory/backends.h"
#include "tests/memory/watch.h"

namespace sinter::test {
namespace {

TEST(Creation, TakesOnlyTheMemoryThatItIsGiven) {
  const testing::AlignedBytes file = testing::plain_model().build();
  Backends backends;
  for (int round = 0; round < 2; ++round) {
    const OpenOptions open{.kernels = reference_kernels()};
    Guarded model_memory, memory;
    Model model;
    Seen seen = watched(true, [&] { model_memory = Guarded(Model::open_bytes(file.span(), open).value()); });
    seen = watched(true, [&] { model = Model::open(file.span(), model_memory.span(), open).value(); });
    EXPECT_TRUE(seen.nothing()) << "opening: " << seen.text();
    for (const Use& use : backends.uses(model, {})) {
      SCOPED_TRACE(use.name);
      // oneDNN creates its primitives on the heap (platforms/onednn/README.md).
      if (use.options.backend != nullptr && std::string_view(use.options.backend) == "onednn") continue;
      Requirements needs;
      seen = watched(false, [&] { needs = Session::requirements(model, use.options).value(); });
      if (round > 0 ||
          std::string_view(use.options.backend != nullptr ? use.options.backend : "xnnpack") != "xnnpack")
        EXPECT_TRUE(seen.nothing()) << "requirements: " << seen.text();
      else if (!seen.nothing())
        std::printf("%s, the first time: %s\n", use.name.c_str(), seen.text().c_str());
      size_t bytes = 0;
      seen = watched(false, [&] { bytes = PackedWeights::requirements(model, use.options).value().bytes; });
      EXPECT_TRUE(seen.nothing()) << "requirements of packed weights: " << seen.text();
      Guarded block(bytes);
      seen = watched(false, [&] { (void)PackedWeights::create(model, block.span(), use.options).value(); });
      EXPECT_TRUE(seen.nothing()) << "packing: " << seen.text();
      memory = Guarded(needs.bytes);
      Session session;
      seen = watched(
          false, [&] { session = std::move(Session::create(model, memory.span(), use.options).value()); });
      EXPECT_TRUE(seen.nothing()) << "creating: " << seen.text();
      seen = watched(false, [&] { session.destroy(); });
      EXPECT_TRUE(seen.nothing()) << "destroying: " << seen.text();
    }
  }
}

#ifdef SINTER_WITH_XNNPACK
TEST(Creation, OfAThreadPool) {
  if (watched_kinds().starts_with("only")) GTEST_SKIP() << watched_kinds();
  for (const int threads : {1, 2, 4}) {
    int made = 0;
    const Seen seen = watched(false, [&] { made = PthreadPool(threads).thread_count(); });
    std::printf("PthreadPool(%d): %s\n", threads, seen.text().c_str());
    EXPECT_EQ(made, threads);
    EXPECT_EQ(seen.nothing(), threads == 1);
  }
}
#endif

}  // namespace
}  // namespace sinter::test
