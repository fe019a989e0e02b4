// Random damage behind waived digests: whatever comes out of the verifier may be refused, or opened, created
// and run, but nothing may crash (run this under the sanitizers).
#include <gtest/gtest.h>

#include <random>

#include "runtime/core/op_enums.h"
#include "sinter/sinter.h"
#include "tests/format/model_builder.h"

namespace sinter::testing {
namespace {

// Elided steps, strides, an in-place step, state, a prepare list, a Convolution, a workspace.
ModelBuilder plain_model() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 4, 4, 2});
  const int w = b.constant<float>(DType::kFloat32, {3, 1, 1, 2}, {1, 2, 3, 4, 5, 6});
  const int p = b.value(DType::kFloat32, {3, 1, 1, 2}, fb::ValueKind::Prepared);
  b.prepare(AbsAttrs{}, {w}, {p});
  const int32_t start = b.add_constant<float>(DType::kFloat32, {3}, {1, 2, 3});
  const int s = b.state(DType::kFloat32, {3}, start, 5);
  const int c = b.value(DType::kFloat32, {1, 4, 4, 3}), t = b.value(DType::kFloat32, {3});
  const int r = b.value(DType::kFloat32, {1, 4, 4, 3}), v = b.value(DType::kFloat32, {16, 3});
  const int cut = b.value(DType::kFloat32, {5, 3}), y = b.value(DType::kFloat32, {5, 3});
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {0, 0, 0, 0};
  b.step(conv, {x, p}, {c}).workspace = 65536;
  b.step(AddAttrs{}, {s, s}, {t});
  b.step(ClampAttrs{.min = 0, .max = 6}, {c}, {r});
  b.place(r).alias_of = c;
  b.place(c).last = 2;
  ViewAttrs view;
  view.dims = {16, 3};
  b.step(view, {r}, {v}).elided = true;
  b.place(v).alias_of = r;
  SliceAttrs slice;
  slice.starts = {1, 0}, slice.steps = {3, 1}, slice.sizes = {5, 3};
  b.step(slice, {v}, {cut}).elided = true;
  b.place(cut).alias_of = v, b.place(cut).alias_offset = 12, b.place(cut).strides = {36, 4};
  b.step(AddAttrs{}, {cut, t}, {y});
  b.output("y", y);
  return b;
}

ModelBuilder control_model() {
  ModelBuilder b;
  const int n = b.input("n", DType::kInt64, {}), x = b.input("x", DType::kFloat32, {2});
  const int sum = b.value(DType::kFloat32, {2}), sums = b.value(DType::kFloat32, {3, 2});
  const int trips = b.value(DType::kInt64, {});
  LoopAttrs loop;
  loop.max_trips = 3, loop.carried = 1;
  b.step(loop, {n, -1, x, x}, {sum, sums, trips}, {1});
  b.output("sum", sum);
  b.output("sums", sums);
  b.output("trips", trips);
  b.enter(1);
  b.input("", DType::kInt64, {});
  const int go = b.input("", DType::kBool, {}), s = b.input("", DType::kFloat32, {2});
  const int cx = b.captured(DType::kFloat32, {2}), r = b.value(DType::kFloat32, {2});
  const int copy = b.value(DType::kBool, {});
  b.step(CopyAttrs{}, {go}, {copy});
  b.step(IfAttrs{}, {go, s, cx}, {r}, {2, 3});
  b.output("", copy);
  b.output("", r);
  b.output("", r);
  for (const int branch : {2, 3}) {
    b.enter(static_cast<size_t>(branch));
    const int p = b.captured(DType::kFloat32, {2}), q = b.captured(DType::kFloat32, {2});
    const int sum2 = b.value(DType::kFloat32, {2});
    if (branch == 2)
      b.step(AddAttrs{}, {p, q}, {sum2});
    else
      b.step(MulAttrs{}, {p, q}, {sum2});
    b.output("", sum2);
  }
  b.enter(0);
  return b;
}

struct Tally {
  int opened = 0, refused = 0, ran = 0;
};

void try_file(const AlignedBytes& file, bool run, Tally& tally) {
  const OpenOptions options{.kernels = reference_kernels(), .check_digests = false};
  const auto bytes = Model::open_bytes(file.span(), options);
  ASSERT_TRUE(bytes.ok());
  const AlignedBytes memory(bytes.value());
  const auto model = Model::open(file.span(), memory.span(), options);
  if (!model.ok()) return void(++tally.refused);
  ++tally.opened;
  const auto needs = Session::requirements(model.value(), {});
  if (tally.opened == 1) {
    EXPECT_TRUE(needs.ok()) << needs.status().message;
  }
  if (!needs.ok() || needs.value().bytes > (size_t{1} << 24)) return;
  const AlignedBytes own(needs.value().bytes);
  auto session = Session::create(model.value(), own.span(), {});
  if (tally.opened == 1) {
    EXPECT_TRUE(session.ok()) << session.status().message << " " << session.status().index;
  }
  if (!session.ok() || !run) return;
  ++tally.ran;
  (void)session->run();
}

void fuzz(const AlignedBytes& file, bool run) {
  const char* asked = std::getenv("SINTER_FUZZ_ROUNDS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 20000;
  Tally tally;
  try_file(file, run, tally);
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
    try_file(bad, run, tally);
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

}  // namespace
}  // namespace sinter::testing
