// Random damage behind waived digests: whatever comes out of the verifier may be refused, or opened, created
// and run, but nothing may crash (run this under the sanitizers).
#include <gtest/gtest.h>

#include <random>

#include "sinter/sinter.h"
#include "tests/format/sample_models.h"

namespace sinter::testing {
namespace {

struct Tally {
  int opened = 0, refused = 0, ran = 0;
};

void try_file(const AlignedBytes& file, bool run, Tally& tally, const char* backend) {
  const OpenOptions options{.kernels = reference_kernels(), .check_digests = false};
  const auto bytes = Model::open_bytes(file.span(), options);
  ASSERT_TRUE(bytes.ok());
  const AlignedBytes memory(bytes.value());
  const auto model = Model::open(file.span(), memory.span(), options);
  if (!model.ok()) return void(++tally.refused);
  ++tally.opened;
  const auto needs = Session::requirements(model.value(), {.backend = backend});
  if (tally.opened == 1) {
    EXPECT_TRUE(needs.ok()) << needs.status().message;
  }
  if (!needs.ok() || needs.value().bytes > (size_t{1} << 24)) return;
  const AlignedBytes own(needs.value().bytes);
  auto session = Session::create(model.value(), own.span(), {.backend = backend});
  if (tally.opened == 1) {
    EXPECT_TRUE(session.ok()) << session.status().message << " " << session.status().index;
  }
  if (!session.ok() || !run) return;
  ++tally.ran;
  (void)session->run();
}

// `backend`: on which sessions run; null: as planned.
void fuzz(const AlignedBytes& file, bool run, const char* backend = nullptr) {
  const char* asked = std::getenv("SINTER_FUZZ_ROUNDS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 20000;
  Tally tally;
  try_file(file, run, tally, backend);
  ASSERT_EQ(tally.opened, 1);
  format::Header h;
  std::memcpy(&h, file.data(), sizeof(h));
  std::mt19937 random(20260101);
  const auto pick = [&](uint64_t n) { return random() % n; };
  const uint32_t interesting[] = {0,  1,          2,          3,          7,          8,       63,
                                  64, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 1u << 20};
  for (int round = 0; round < rounds; ++round) {
    AlignedBytes bad = file.copy(file.size());
    for (uint64_t edits = 1 + pick(3); edits > 0; --edits) {
      const size_t at = h.flatbuffer_offset + pick(h.flatbuffer_bytes);
      switch (pick(4)) {
        case 0:
          bad[at] = static_cast<std::byte>(random());
          break;
        case 1:
          bad[at] ^= static_cast<std::byte>(1 << pick(8));
          break;
        case 2: {
          const uint32_t word = interesting[pick(std::size(interesting))];
          std::memcpy(&bad[at & ~size_t{3}], &word, 4);
          break;
        }
        default: {  // a number from elsewhere in the file
          const size_t from = h.flatbuffer_offset + (pick(h.flatbuffer_bytes) & ~size_t{3});
          std::memmove(&bad[at & ~size_t{3}], &bad[from], 4);
        }
      }
    }
    try_file(bad, run, tally, backend);
  }
  std::printf("opened %d, refused %d, ran %d\n", tally.opened, tally.refused, tally.ran);
  EXPECT_GT(tally.refused, rounds / 4);
  EXPECT_GT(tally.opened, 1);
  if (run) {
    EXPECT_GT(tally.ran, 1);
  }
}

TEST(Fuzz, PlainModel) { fuzz(plain_model().build(), true); }
// Loops may have become long, so these are not run.
TEST(Fuzz, ControlFlow) { fuzz(control_model().build(), false); }
TEST(Fuzz, BodiesInMemories) { fuzz(bodies_model().build(), false, "reference"); }
TEST(Fuzz, Lengths) { fuzz(lengths_model().build(), true); }
TEST(Fuzz, Profiles) { fuzz(portable_profiles_model().build(), true); }

}  // namespace
}  // namespace sinter::testing
