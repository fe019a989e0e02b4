// Sessions with bodies of If and Loop in the memory of a device: what they compute, how often anything is
// moved or waited for, and how faults are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/op_enums.h"
#include "tests/memory/far_models.h"
#include "tests/memory/promises.h"

namespace sinter::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMost = 7;  // trips

// The device computes h = tanh(h weights + c) in each of n trips, where c is captured; the results are the
// last h, and each trip's h one behind the other. Nothing is moved in a trip.
FarModel loop_model() {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {2, 8}), n = b.input("n", DType::kInt64, {});
  const int c = b.constant<float>(DType::kFloat32, {2, 8}, numbers(16, 5));
  const int captured = b.value(DType::kFloat32, {2, 8});
  b.step(AbsAttrs{}, {c}, {captured});
  const int h = b.up(x), there = b.up(captured);
  const int last = b.far_value(DType::kFloat32, {2, 8}), all = b.far_value(DType::kFloat32, {kMost, 2, 8});
  const int trips = b.value(DType::kInt64, {});
  b.step(LoopAttrs{kMost, 1}, {n, -1, h, there}, {last, all, trips}, {1});
  b.output("last", b.down(last));
  b.output("all", b.down(all));
  b.output("trips", trips);
  b.enter(1);
  b.program().memories = {0, 1};
  b.input("", DType::kInt64, {}), b.input("", DType::kBool, {});
  const int p = b.input("", DType::kFloat32, {2, 8});
  b.place(p).region = 1;
  const int added = b.captured(DType::kFloat32, {2, 8});
  const int yes = b.constant<uint8_t>(DType::kBool, {}, {1});
  const int w = b.constant<float>(DType::kFloat32, {8, 8}, numbers(64, 3));
  const int product = b.far_value(DType::kFloat32, {2, 8}), sum = b.far_value(DType::kFloat32, {2, 8}),
            next = b.far_value(DType::kFloat32, {2, 8});
  b.far_step(MatMulAttrs{}, {p, w}, {product}).workspace = 4096;
  b.far_step(AddAttrs{}, {product, added}, {sum});
  b.far_step(TanhAttrs{}, {sum}, {next});
  b.output("", yes);
  b.output("", next);
  b.output("", next);
  b.enter(0);
  return b;
}

void fill_loop(Session& session, int64_t n, int run) {
  fill_x(session, run);
  std::memcpy(session.input("n").data, &n, sizeof(n));
}

TEST(FarBodies, ALoopMovesNothingInATrip) {
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarModel b = loop_model();
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    {
      Running r(b, {.backends = backends});
      ASSERT_RUNNING(r);
      for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{5}, kMost}) {
        far.forget_counts();
        expect_same_bits(
            r, [&](Session& s, int run) { fill_loop(s, n, run); }, 2);
        FarBackend::Counts expected;  // of two runs
        expected.uploads = 4, expected.bytes_up = 4 * 64;
        expected.downloads = 4, expected.bytes_down = 2 * (64 + kMost * 64);
        expected.steps = 2 * 3 * n;
        // Into the parameter, out of it, and for each trip into the parameter again and the list of all.
        expected.copies = 2 * (2 + 2 * n);
        expected.zeros = n < kMost ? 2 : 0;
        // Before the loop, for what was uploaded; and at the end. Not in a trip.
        expected.finishes = 4;
        EXPECT_EQ(far.counts(), expected) << n << " trips";
      }
      // One more than was planned.
      fill_loop(r.session, kMost + 1, 0);
      EXPECT_THAT(sentence(r.session.run()), HasSubstr("would continue after its planned 7 trips"));
      expect_same_bits(r, [&](Session& s, int run) { fill_loop(s, 3, run); });
    }
    EXPECT_EQ(far.counts().wrong, 0);
    EXPECT_EQ(far.allocated(), 0u);
  }
}

TEST(FarBodies, ABodyIsOneGroup) {
  FarModel b = loop_model();
  FarBackend far;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_EQ(far.counts().groups, 3);  // uploads, body, downloads
  EXPECT_EQ(far.counts().largest_group, 3);
  // Three values and the list of all; the body's region, which has four values, the workspace and padding;
  // padding.
  EXPECT_EQ(r.needs.on_devices()[0].arena, 3 * 64u + 448 + (4 * 64 + 4096 + 64) + 64);
}

// The condition is computed on the device: a trip brings it to the host and waits for that.
FarModel while_model() {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {});
  const int h = b.up(x);
  const int last = b.far_value(DType::kFloat32, {}), trips = b.value(DType::kInt64, {});
  b.step(LoopAttrs{100, 1}, {-1, -1, h}, {last, trips}, {1});
  b.output("last", b.down(last));
  b.output("trips", trips);
  b.enter(1);
  b.program().memories = {0, 1};
  b.input("", DType::kInt64, {}), b.input("", DType::kBool, {});
  const int p = b.input("", DType::kFloat32, {});
  b.place(p).region = 1;
  const int half = b.constant<float>(DType::kFloat32, {}, {0.5f});
  const int one = b.constant<float>(DType::kFloat32, {}, {1.0f});
  const int next = b.far_value(DType::kFloat32, {}), more = b.far_value(DType::kBool, {});
  b.far_step(MulAttrs{}, {p, half}, {next});
  b.far_step(CompareAttrs{static_cast<int64_t>(CompareFn::kGreater)}, {next, one}, {more});
  b.output("", b.down(more));
  b.output("", next);
  b.enter(0);
  return b;
}

TEST(FarBodies, AConditionOfTheDeviceIsWaitedForInEveryTrip) {
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarModel b = while_model();
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    far.forget_counts();
    expect_same_bits(
        r, [](Session& s, int) { *s.input("x").as<float>() = 40; }, 1);
    EXPECT_EQ(*r.session.output("trips").as<int64_t>(), 6);
    EXPECT_EQ(*r.session.output("last").as<float>(), 0.625f);
    EXPECT_EQ(far.counts().downloads, 6 + 1);
    EXPECT_EQ(far.counts().finishes, 6 + 2);
    EXPECT_EQ(far.counts().steps, 12);
    EXPECT_EQ(far.counts().wrong, 0);
  }
}

// One branch computes on the device what the other one captures there; what is chosen is a result on the
// device.
FarModel branch_model() {
  FarModel b;
  const int q = b.input("q", DType::kBool, {}), x = b.input("x", DType::kFloat32, {4, 4});
  const int u = b.up(x), r = b.far_value(DType::kFloat32, {4, 4});
  b.step(IfAttrs{}, {q, u, x}, {r}, {1, 2});
  b.output("r", b.down(r));
  b.enter(1);
  b.program().memories = {0, 1};
  int taken = b.captured(DType::kFloat32, {4, 4});
  int host = b.captured(DType::kFloat32, {4, 4});
  const int negated = b.value(DType::kFloat32, {4, 4});
  const int sum = b.far_value(DType::kFloat32, {4, 4});
  b.step(NegAttrs{}, {host}, {negated});
  b.far_step(AddAttrs{}, {taken, b.up(negated)}, {sum});
  b.output("", sum);
  b.enter(2);
  taken = b.captured(DType::kFloat32, {4, 4});
  b.captured(DType::kFloat32, {4, 4});
  b.output("", taken);
  b.enter(0);
  return b;
}

TEST(FarBodies, BranchesGiveResultsOnTheDevice) {
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarModel b = branch_model();
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    for (const bool then : {true, false, true}) {
      far.forget_counts();
      expect_same_bits(
          r,
          [&](Session& s, int run) {
            fill_x(s, run);
            *s.input("q").data = std::byte{then};
          },
          1);
      FarBackend::Counts expected;
      expected.uploads = then ? 2 : 1, expected.bytes_up = expected.uploads * 64;
      expected.downloads = 1, expected.bytes_down = 64;
      expected.steps = then ? 1 : 0, expected.copies = 1;
      expected.finishes = then ? 3 : 2;  // before the step; after the branch's transfer; at the end
      EXPECT_EQ(far.counts(), expected);
    }
    EXPECT_EQ(far.counts().wrong, 0);
  }
}

// A fault in a body is that of its step, and the session can be used again.
TEST(FarBodies, AFaultNamesTheStepOfTheBody) {
  FarModel b;
  const int n = b.input("n", DType::kInt64, {}), index = b.input("i", DType::kInt64, {2});
  const int start = b.up(index), last = b.far_value(DType::kInt64, {2}), trips = b.value(DType::kInt64, {});
  b.step(LoopAttrs{9, 1}, {n, -1, start}, {last, trips}, {1});
  b.output("last", b.down(last));
  b.enter(1);
  b.program().memories = {0, 1};
  b.input("", DType::kInt64, {}), b.input("", DType::kBool, {});
  const int p = b.input("", DType::kInt64, {2});
  b.place(p).region = 1;
  const int table = b.constant<int64_t>(DType::kInt64, {4}, {1, 2, 3, 9});
  const int yes = b.constant<uint8_t>(DType::kBool, {}, {1});
  const int kept = b.far_value(DType::kInt64, {2}), next = b.far_value(DType::kInt64, {2});
  b.far_step(NegAttrs{}, {p}, {kept});
  b.far_step(GatherAttrs{0}, {table, p}, {next});
  b.output("", yes), b.output("", next);
  b.enter(0);
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    const auto run = [&](int64_t count) {
      *r.session.input("n").as<int64_t>() = count;
      r.session.input("i").as<int64_t>()[0] = r.session.input("i").as<int64_t>()[1] = 0;
      return r.session.run();
    };
    EXPECT_TRUE(run(4).ok());
    const Status status = run(6);
    EXPECT_EQ(status.code, Code::kOutOfRange);
    EXPECT_EQ(status.where, Where::kStep);
    EXPECT_EQ(status.program, 1);
    EXPECT_EQ(status.index, 1);
    EXPECT_TRUE(run(4).ok());
    EXPECT_EQ(r.session.output("last").as<int64_t>()[1], 9);
  }
}

// An observer is called for the steps of bodies, when their results are there.
TEST(FarBodies, AreObservedStepByStep) {
  FarModel b = loop_model();
  FarBackend far;
  far.work = Work::kHeld;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  struct Seen {
    int64_t inside = 0, outside = 0, far = 0;
  } seen;
  const StepObserver observer{&seen, nullptr, [](void* self, const StepInfo& info, const OpCall&) {
                                auto& s = *static_cast<Seen*>(self);
                                ++(info.in_body ? s.inside : s.outside);
                                s.far += std::strcmp(info.backend, "far") == 0;
                              }};
  r.session.set_observer(&observer);
  EXPECT_TRUE(far.stepwise());
  expect_same_bits(
      r, [&](Session& s, int run) { fill_loop(s, 4, run); }, 1);
  EXPECT_EQ(seen.inside, 12);
  EXPECT_EQ(seen.outside, 6);
  EXPECT_EQ(seen.far, 12 + 4);
  r.session.set_observer(nullptr);
  expect_same_bits(
      r, [&](Session& s, int run) { fill_loop(s, 4, run); }, 1);
}

// Every size of host memory below what is needed, and nothing that is read after its life.
TEST(FarBodies, StarveByteByByte) {
  for (FarModel b : {loop_model(), while_model(), branch_model()}) {
    const AlignedBytes file = b.build();
    const test::OpenedFile opened(file.span());
    ASSERT_TRUE(opened.status().ok());
    FarBackend far;
    Backend* const backends[] = {&far};
    const test::Use use{
        opened.model(), test::harmless_inputs(opened.model()), {.backends = backends}, "far", true};
    EXPECT_EQ(test::check_creation(use, SIZE_MAX), "");
    EXPECT_EQ(test::check_dead_memory(use), "");
    EXPECT_EQ(far.allocated(), 0u);
    EXPECT_EQ(far.counts().opened, far.counts().closed);
  }
}

// The session has a part in every run.
TEST(FarBodies, DoNotRunInACallersStream) {
  FarModel b = loop_model();
  FarBackend far;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_THAT(sentence(r.session.run_async(nullptr)), HasSubstr("the host has a part in the run"));
}

}  // namespace
}  // namespace sinter::testing
