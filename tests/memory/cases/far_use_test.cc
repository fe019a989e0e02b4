// What else a session with a device has to do: states, errors, absent and refusing backends, control flow,
// bindings, prepared values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/core/op_enums.h"
#include "tests/memory/far_models.h"

namespace sinter::testing {
namespace {

using ::testing::HasSubstr;

// Two states on the device: s += x, from 1, 2, 3, ...; t = s before that, from zeros. One on the host counts
// runs.
FarModel state_model() {
  FarModel b;
  std::vector<float> start(16);
  std::iota(start.begin(), start.end(), 1.0f);
  const int x = b.input("x", DType::kFloat32, {16});
  const int one = b.constant<float>(DType::kFloat32, {}, {1.0f});
  const int s = b.state(DType::kFloat32, {16}, b.add_constant<float>(DType::kFloat32, {16}, start), -1);
  const int t = b.state(DType::kFloat32, {16}, -1, -1);
  const int n = b.state(DType::kFloat32, {}, -1, -1);
  b.place(s).region = b.place(t).region = 1;
  const int u = b.up(x);
  const int sum = b.far_value(DType::kFloat32, {16}), copy = b.far_value(DType::kFloat32, {16});
  b.far_step(AddAttrs{}, {s, u}, {sum});
  b.far_step(CopyAttrs{}, {s}, {copy});
  const int diff = b.far_value(DType::kFloat32, {16}), more = b.value(DType::kFloat32, {});
  b.far_step(SubAttrs{}, {sum, t}, {diff});
  b.step(AddAttrs{}, {n, one}, {more});
  const int y = b.down(diff), z = b.down(t);
  b.spec(s).update = sum, b.spec(t).update = copy, b.spec(n).update = more;
  b.output("y", y);
  b.output("z", z);
  b.output("n", more);
  return b;
}

TEST(FarStates, LiveOnTheDevice) {
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarModel b = state_model();
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    EXPECT_EQ(far.counts().uploads, 1) << "the initial value";
    EXPECT_EQ(far.counts().zeros, 1);
    far.forget_counts();
    expect_same_bits(r, fill_x, 4);
    EXPECT_EQ(far.counts().copies, 2 * 4);
    EXPECT_EQ(far.counts().uploads, 4);
    EXPECT_EQ(r.get<float>("n")[0], 4);
    const auto fourth = r.get<float>("y");
    r.session.reset();
    expect_same_bits(r, fill_x, 4);
    EXPECT_EQ(r.get<float>("y"), fourth);
    EXPECT_EQ(r.get<float>("n")[0], 4);
    EXPECT_EQ(far.counts().wrong, 0);
  }
}

// The device overwrites the old content, and nothing is copied when a run ends.
TEST(FarStates, AreUpdatedInPlace) {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {16});
  const int s = b.state(DType::kFloat32, {16}, -1, -1);
  b.place(s).region = 1;
  const int u = b.up(x), sum = b.far_value(DType::kFloat32, {16});
  b.far_step(AddAttrs{}, {s, u}, {sum});
  b.place(sum).alias_of = s, b.place(sum).first = 1;
  b.spec(s).update = sum;
  b.name_state(s, "s", "s_out");
  b.output("y", b.down(sum));
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    EXPECT_EQ(r.needs.state, 0u);
    EXPECT_EQ(r.needs.devices[0].state, r.needs.devices[0].arena);
    EXPECT_FALSE(r.session.state(0).present()) << "the host cannot read it";
    far.forget_counts();
    expect_same_bits(r, fill_x, 4);
    EXPECT_EQ(far.counts().copies, 0);
    r.session.reset();
    expect_same_bits(r, fill_x, 4);
    EXPECT_EQ(far.counts().wrong, 0);
  }
}

// Of a run that was given up, nothing is left over for the next one.
TEST(FarErrors, ArriveAsTheRunsStatus) {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {4, 8}), i = b.input("i", DType::kInt64, {2});
  const int xf = b.up(x), idx = b.up(i);
  const int f = b.far_value(DType::kFloat32, {2, 8}), g = b.far_value(DType::kFloat32, {2, 8});
  b.far_step(GatherAttrs{0}, {xf, idx}, {f});
  b.far_step(relu(), {f}, {g});
  const int d = b.down(g), y = b.value(DType::kFloat32, {2, 8});
  b.step(NegAttrs{}, {d}, {y});
  b.output("y", y);
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    const auto with = [&](std::vector<int64_t> indices) {
      r.set<float>("x", numbers(32));
      r.set<int64_t>("i", indices);
      return r.session.run();
    };
    ASSERT_TRUE(with({3, 1}).ok());
    const auto right = r.get<float>("y");
    for (int run = 0; run < 3; ++run) {
      const Status status = with({3, 4});
      EXPECT_EQ(status.code, Code::kOutOfRange) << sentence(status);
      EXPECT_EQ(status.where, Where::kStep);
      EXPECT_EQ(status.index, 2) << sentence(status);
      ASSERT_TRUE(with({3, 1}).ok());
      EXPECT_EQ(r.get<float>("y"), right);
    }
    EXPECT_EQ(far.counts().wrong, 0);
  }
}

// A step on the host fails while the device is at work: the run ends when that is done.
TEST(FarErrors, OfTheHostLeaveNothingUnderWay) {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {4, 8}), i = b.input("i", DType::kInt64, {2});
  const int xf = b.up(x), f = b.far_value(DType::kFloat32, {4, 8});
  b.far_step(relu(), {xf}, {f});
  const int d = b.down(f);
  const int y = b.value(DType::kFloat32, {2, 8});
  b.step(GatherAttrs{0}, {x, i}, {y});
  const int u = b.up(y), g = b.far_value(DType::kFloat32, {2, 8});
  b.far_step(relu(), {u}, {g});
  const int z = b.down(g);
  b.output("d", d);
  b.output("z", z);
  FarBackend far;
  far.work = Work::kHeld;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  r.set<float>("x", numbers(32));
  r.set<int64_t>("i", {0, 9});
  EXPECT_EQ(r.session.run().code, Code::kOutOfRange);
  r.set<int64_t>("i", {0, 1});
  EXPECT_TRUE(r.session.run().ok());
  EXPECT_EQ(far.counts().wrong, 0);
}

TEST(FarRefusals, NameBackendAndStep) {
  FarModel b = mixed_model();
  {
    Running r(b);
    EXPECT_EQ(r.status.code, Code::kUnsupported);
    EXPECT_EQ(r.why(),
              "step 1: backend far, in whose device memory this step is planned, is missing; pass it, or "
              "request another one by name (\"reference\")");
  }
  {
    KernelBackend impostor("far", reference_kernels());
    Backend* const backends[] = {&impostor};
    Running r(b, {.backends = backends});
    EXPECT_EQ(r.status.code, Code::kUnsupported);
    EXPECT_EQ(r.why(), "step 1: backend far does not have the device memory that this step's plan needs");
  }
  FarBackend far;
  Backend* const backends[] = {&far};
  {
    far.accepts = {Op::kFullyConnected};
    Running r(b, {.backends = backends});
    EXPECT_EQ(r.status.code, Code::kUnsupported);
    EXPECT_EQ(
        r.why(),
        "step 3: backend far, in whose device memory this step is planned, refuses it: it is not one of "
        "its operations");
  }
  far.accepts = {};
  {
    far.refusal = error(Code::kOutOfMemory, "no");
    Running r(b, {.backends = backends});
    EXPECT_EQ(r.status.code, Code::kOutOfMemory);
    EXPECT_EQ(r.why(), "step 1: no");
    far.refusal = ok_status();
  }
  {
    far.keeps_constants = true;  // claims to read them in every run
    Running r(b, {.backends = backends});
    EXPECT_EQ(r.status.code, Code::kInternal);
    EXPECT_THAT(r.why(), HasSubstr("step 2: backend far does not accept a constant in its device memory"));
    far.keeps_constants = false;
  }
  {
    b.program().steps[2].workspace = 0;
    Running r(b, {.backends = backends});
    EXPECT_EQ(r.status.code, Code::kOutOfMemory) << r.why();
    EXPECT_THAT(r.why(), HasSubstr("bytes of workspace and the plan has 0"));
  }
  EXPECT_EQ(far.counts().opened, far.counts().closed);
  EXPECT_EQ(far.allocated(), 0u);
  EXPECT_EQ(far.counts().wrong, 0);
}

// The second device has too little memory, or does not open: the first one's is released.
TEST(FarRefusals, GiveBackWhatWasTaken) {
  FarModel b({"far", "beyond"});
  const int x = b.input("x", DType::kFloat32, {8});
  const int u = b.up(x), v = b.up(x, 1);
  const int y = b.down(u), z = b.down(v);
  b.output("y", y);
  b.output("z", z);
  FarBackend far, other("beyond", 64);
  Backend* const backends[] = {&far, &other};
  Running r(b, {.backends = backends});
  EXPECT_EQ(r.status.code, Code::kOutOfMemory);
  EXPECT_EQ(r.why(), "backend 1: the session needs 128 bytes of device memory, but fewer are left");
  EXPECT_EQ(far.allocated() + other.allocated(), 0u);
  EXPECT_EQ(far.counts().opened, far.counts().closed);

  FarModel same({"far", "far"});
  const int sx = same.input("x", DType::kFloat32, {8});
  same.output("y", same.down(same.up(sx)));
  same.output("z", same.down(same.up(sx, 1)));
  Running twice(same, {.backends = backends});
  EXPECT_EQ(twice.why(), "the profile has two device memories of backend far");
}

// Host steps are never offered to a backend that cannot access host memory, not even where it is requested by
// name. One in whose memory the plan has nothing is refused.
TEST(Far, AskedForByName) {
  FarModel b = mixed_model();
  FarBackend far, stranger("stranger");
  Backend* const backends[] = {&far, &stranger};
  Running r(b, {.backends = backends, .backend = "far"});
  ASSERT_RUNNING(r);
  EXPECT_STREQ(r.session.step_backend(0), "reference");
  EXPECT_STREQ(r.session.step_backend(2), "far");
  EXPECT_EQ(r.needs.device_count, 1u);
  expect_same_bits(r, fill_x);
  const Running refused(b, {.backends = backends, .backend = "stranger"});
  EXPECT_EQ(refused.status.code, Code::kUnsupported);
  EXPECT_EQ(refused.why(),
            "the plan has nothing in the device memory of backend stranger; convert the model for a "
            "target with that device, or run with another backend");
  EXPECT_EQ(stranger.counts().opened, 0);
}

// A branch and a loop on the host, fed by the device and read by it.
TEST(Far, ControlFlowBesideDeviceSteps) {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {8});
  const int c = b.input("c", DType::kBool, {});
  const int u = b.up(x), f = b.far_value(DType::kFloat32, {8});
  b.far_step(relu(), {u}, {f});
  const int h = b.down(f), branched = b.value(DType::kFloat32, {8});
  b.step(IfAttrs{}, {c, h}, {branched}, {1, 2});
  const int v = b.up(branched), g = b.far_value(DType::kFloat32, {8});
  b.far_step(NegAttrs{}, {v}, {g});
  const int y = b.down(g);
  b.output("y", y);
  b.enter(1);
  {
    const int cx = b.captured(DType::kFloat32, {8}), r = b.value(DType::kFloat32, {8});
    b.step(SqrtAttrs{}, {cx}, {r});
    b.output("", r);
  }
  b.enter(2);
  {
    const int cx = b.captured(DType::kFloat32, {8}), r = b.value(DType::kFloat32, {8});
    b.step(AddAttrs{}, {cx, cx}, {r});
    b.output("", r);
  }
  b.enter(0);
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    far.forget_counts();
    expect_same_bits(
        r,
        [](Session& session, int run) {
          fill_x(session, run);
          *session.input("c").data = static_cast<std::byte>(run % 2);
        },
        4);
    EXPECT_EQ(far.counts().finishes, 2 * 4);
    EXPECT_EQ(far.counts().wrong, 0);
  }
}

TEST(Far, PortsCanBeBound) {
  FarModel b = mixed_model();
  FarBackend far;
  far.work = Work::kHeld;
  Backend* const backends[] = {&far};
  AlignedBytes x(96 + kReadPadding), z(96 + kReadPadding);
  const Binding bindings[] = {{"x", x.span()}, {"z", z.span()}};
  Running r(b, {.backends = backends, .bindings = bindings});
  ASSERT_RUNNING(r);
  EXPECT_EQ(r.session.input("x").data, x.data());
  EXPECT_EQ(r.session.output("z").data, z.data());
  expect_same_bits(r, fill_x);
}

// Weights that the file holds as int8 are widened on the host, taken to the device and gone from the host.
TEST(Far, PreparedValuesGoToTheDevice) {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {64});
  std::vector<int8_t> data(64);
  std::iota(data.begin(), data.end(), int8_t{-30});
  const int stored = b.constant<int8_t>(DType::kInt8, {64}, data);
  const int wide = b.value(DType::kFloat32, {64}, fb::ValueKind::Prepared);
  b.prepare(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {stored}, {wide});
  const int u = b.up(x), f = b.far_value(DType::kFloat32, {64});
  b.far_step(MulAttrs{}, {u, wide}, {f});
  b.output("y", b.down(f));
  FarBackend far;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  ASSERT_EQ(r.needs.device_count, 1u);
  EXPECT_EQ(r.needs.devices[0].prepared, 256u + 64);
  expect_same_bits(r, fill_x);
}

// Aliases, strides and elided steps hold in a device's region as in the host's.
TEST(Far, ElidedStepsOnTheDevice) {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {4, 4});
  const int u = b.up(x);
  const int cut = b.far_value(DType::kFloat32, {4, 2}), n = b.far_value(DType::kFloat32, {4, 2});
  SliceAttrs slice;
  slice.starts = {0, 1}, slice.steps = {1, 1}, slice.sizes = {4, 2};
  b.step(slice, {u}, {cut}).elided = true;
  b.place(cut).alias_of = u, b.place(cut).alias_offset = 4, b.place(cut).strides = {16, 4};
  b.far_step(NegAttrs{}, {cut}, {n});
  b.output("y", b.down(n));
  FarBackend far;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_STREQ(r.session.step_backend(1), "elided");
  expect_same_bits(r, fill_x);
  EXPECT_EQ(far.counts().groups, 1) << "a step that is elided ends no group";
}

}  // namespace
}  // namespace sinter::testing
