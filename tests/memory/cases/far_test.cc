// A session with steps on a device with device memory: results, transfers, waits, bytes, nothing
// taken in runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/memory/far_models.h"
#include "tests/memory/promises.h"
#include "tests/memory/watch.h"

namespace sinter::testing {
namespace {

using test::watched;
using ::testing::HasSubstr;

TEST(Far, MixedModelGivesTheBitsOfTheHost) {
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarModel b = mixed_model();
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    {
      Running r(b, {.backends = backends});
      ASSERT_RUNNING(r);
      EXPECT_STREQ(r.session.step_backend(0), "reference");
      for (const uint32_t s : {1u, 2u, 3u, 4u, 5u}) EXPECT_STREQ(r.session.step_backend(s), "far");
      EXPECT_STREQ(r.session.step_backend(6), "reference");
      EXPECT_EQ(far.counts().uploads + far.counts().downloads, 0) << "transfers while creating";
      far.forget_counts();
      expect_same_bits(r, fill_x, 5);
      // Exactly the plan: one transfer up, two down, two kernels; a wait before the host reads and
      // one at the end.
      FarBackend::Counts expected;
      expected.uploads = 5, expected.bytes_up = 5 * 96;
      expected.downloads = 10, expected.bytes_down = 10 * 96;
      expected.steps = 10;
      expected.finishes = 5;
      EXPECT_EQ(far.counts(), expected);
    }
    EXPECT_EQ(far.counts().wrong, 0);
    EXPECT_EQ(far.allocated(), 0u);
    EXPECT_EQ(far.counts().released, 5);
  }
}

// Everything that the device has to do between two things of the host's is one group.
TEST(Far, NeighbouringStepsAreOneGroup) {
  FarModel b = mixed_model();
  FarBackend far;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_EQ(far.counts().groups, 1);
  EXPECT_EQ(far.counts().largest_group, 5);
}

TEST(Far, BytesAreExactByRegionAndDevice) {
  FarModel b = mixed_model();
  FarBackend far;
  far.own = 100;
  Backend* const backends[] = {&far};
  SessionOptions options{.backends = backends};
  Running r(b, options);
  ASSERT_RUNNING(r);
  ASSERT_EQ(r.needs.on_devices().size(), 1u);
  const DeviceRequirements device = r.needs.on_devices()[0];
  EXPECT_STREQ(device.backend, "far");
  // hf, f and s in 128 bytes each, the workspace, the padding.
  EXPECT_EQ(device.arena, 3 * 128u + 8192 + 64);
  // 100 bytes of its own; weights of 256 bytes and a bias of 32, each with 64 behind.
  EXPECT_EQ(device.prepared, 128u + 320 + 128);
  EXPECT_EQ(device.bytes, device.arena + device.prepared);
  EXPECT_EQ(far.allocated(), device.bytes);
  EXPECT_EQ(far.counts().allocations, 1);
  // x, h, sh, z, d, y.
  EXPECT_EQ(r.needs.arena, 6 * 128u + 64);
  EXPECT_EQ(r.needs.bytes, r.needs.control + r.needs.arena + r.needs.prepared);
  r.session.destroy();
  EXPECT_EQ(far.allocated(), 0u);

  // Device memory that the backend has too little of, or the caller brings too little of.
  const auto create = [&] { return Session::create(r.model, r.memory.span(), options).status(); };
  far.capacity = device.bytes - 1;
  Status status = create();
  EXPECT_EQ(status.code, Code::kOutOfMemory);
  EXPECT_EQ(status.a, static_cast<int64_t>(device.bytes));
  EXPECT_EQ(status.where, Where::kBackend);
  EXPECT_EQ(status.index, 0);
  far.capacity = device.bytes;
  EXPECT_TRUE(create().ok());

  std::byte* block = nullptr;
  ASSERT_TRUE(far.allocate(device.bytes, kBufferAlignment, &block).ok());
  far.forget_counts();
  for (size_t n = 0; n < device.bytes; ++n) {
    const DeviceBlock brought[] = {{"far", {block, n}}};
    options.devices = brought;
    status = create();
    ASSERT_EQ(status.code, Code::kOutOfMemory);
    ASSERT_EQ(status.a, static_cast<int64_t>(device.bytes));
    ASSERT_EQ(status.b, static_cast<int64_t>(n));
  }
  const DeviceBlock odd[] = {{"far", {block + 32, device.bytes}}};
  options.devices = odd;
  EXPECT_EQ(create().code, Code::kInvalidArgument);
  const DeviceBlock enough[] = {{"other", {}}, {"far", {block, device.bytes}}};
  options.devices = enough;
  r.memory = AlignedBytes(r.needs.bytes);
  auto created = Session::create(r.model, r.memory.span(), options);
  ASSERT_TRUE(created.ok()) << sentence(created.status());
  r.session = std::move(created.value());
  expect_same_bits(r, fill_x);
  r.session.destroy();
  EXPECT_EQ(far.allocated(), device.bytes) << "the caller's block has been freed";
  EXPECT_EQ(far.counts().allocations, 0);
  far.free(block);
  EXPECT_EQ(far.counts().opened, far.counts().closed);
  EXPECT_EQ(far.counts().wrong, 0);
}

// Every size of host memory below what is needed, against guard pages.
TEST(Far, StarvesByteByByte) {
  FarModel b = mixed_model();
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

// Nothing is left out of what is watched: the session's thread and, for the heap and mappings, the device's.
TEST(Far, RunsTakeNothing) {
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarModel b = mixed_model();
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    fill_x(r.session, 1);
    Status status;
    const test::Seen seen = watched(true, [&] {
      for (int i = 0; i < 200 && status.ok(); ++i) status = r.session.run();
    });
    EXPECT_TRUE(status.ok()) << sentence(status);
    EXPECT_TRUE(seen.nothing()) << seen.text();
    EXPECT_EQ(far.counts().finishes, 201);  // one while creating
  }
}

// h is uploaded; then a host step writes k where h was. The plan has no waits: order alone makes it right.
FarModel reusing_model() {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {16});
  const int h = b.value(DType::kFloat32, {16}), k = b.value(DType::kFloat32, {16});
  const int y = b.value(DType::kFloat32, {16});
  b.step(NegAttrs{}, {x}, {h});  // 0
  const int u = b.up(h);         // 1
  b.step(AbsAttrs{}, {x}, {k});  // 2
  const int f = b.far_value(DType::kFloat32, {16});
  b.far_step(relu(), {u}, {f});  // 3
  const int d = b.down(f);       // 4
  b.step(AddAttrs{}, {d, k}, {y});
  b.output("y", y);
  b.place(h).offset = 640, b.place(h).first = 0, b.place(h).last = 1;
  b.place(k).offset = 640, b.place(k).first = 2, b.place(k).last = 5;
  return b;
}

TEST(Far, HostMemoryIsTouchedAfterTheTransferOnly) {
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarModel b = reusing_model();
    FarBackend far;
    far.work = work;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    far.forget_counts();
    expect_same_bits(r, fill_x);
    EXPECT_EQ(far.counts().finishes, 2 * 3);  // before steps 2 and 5; at the end nothing is left
    EXPECT_EQ(far.counts().groups, 0);
  }
}

// The same session whose waits do not wait gives something else: the test above would notice a missing one.
TEST(Far, AMissingWaitWouldShow) {
  for (const int missing : {1, 2}) {
    FarModel b = reusing_model();
    FarBackend far;
    far.work = Work::kHeld;
    Backend* const backends[] = {&far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    r.set<float>("x", numbers(16));
    ASSERT_TRUE(r.session.run().ok());
    const std::vector<float> right = r.get<float>("y");
    r.set<float>("x", numbers(16, 3));
    ASSERT_TRUE(r.session.run().ok());
    far.ignore_finish = missing;
    r.set<float>("x", numbers(16));
    ASSERT_TRUE(r.session.run().ok());
    EXPECT_NE(r.get<float>("y"), right) << missing;
  }
}

// A plan cannot contain this: memory that a transfer reads stays the value's up to the transfer.
TEST(Far, PlansThatReuseTooEarlyAreRefused) {
  FarModel b = reusing_model();
  b.program().values[2].place.first = 1;  // k, from the transfer of h on
  FarBackend far;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  EXPECT_EQ(r.status.code, Code::kCorrupt);
  EXPECT_THAT(r.why(), HasSubstr("share bytes while both are live"));
}

// The caller gets the error, and the device's results stay untouched.
TEST(Far, ObserverSeesEachStepDone) {
  FarModel b = mixed_model();
  FarBackend far;
  far.work = Work::kHeld;
  Backend* const backends[] = {&far};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  struct Watcher {
    FarBackend& far;
    std::vector<std::string> seen;
    float softmax_sum = 0;
  } watcher{far, {}, 0};
  const StepObserver observer{
      &watcher, nullptr, [](void* self, const StepInfo& info, const OpCall& call) {
        auto& w = *static_cast<Watcher*>(self);
        w.seen.push_back(std::string(info.backend) + std::to_string(call.in(0).memory) +
                         std::to_string(call.out(0).memory));
        EXPECT_EQ(call.out(0).memory != 0, w.far.is_far(call.out(0).data));
        if (call.op != Op::kSoftmax) return;
        const auto* s = reinterpret_cast<const float*>(w.far.behind(call.out(0).data));
        for (int i = 0; i < 8; ++i) w.softmax_sum += s[i];
      }};
  r.session.set_observer(&observer);
  EXPECT_TRUE(far.stepwise());
  fill_x(r.session, 0);
  ASSERT_TRUE(r.session.run().ok());
  r.session.set_observer(nullptr);
  EXPECT_FALSE(far.stepwise());
  EXPECT_THAT(watcher.seen, ::testing::ElementsAre("reference00", "far01", "far11", "far11", "far10", "far10",
                                                   "reference00", "reference00"));
  EXPECT_NEAR(watcher.softmax_sum, 1.0f, 1e-5f);
}

// x -> one device -> the other -> host. The second's upload reads what the first's download writes, with no
// step of the host's between.
TEST(Far, TwoDevices) {
  FarModel b({"far", "host", "beyond"});
  b.regions = {0, 1, 3, 0};
  const int x = b.input("x", DType::kFloat32, {32});
  const int w = b.constant<float>(DType::kFloat32, {32}, numbers(32, 7));
  const int u = b.up(x);
  const int f = b.far_value(DType::kFloat32, {32});
  b.far_step(MulAttrs{}, {u, w}, {f});
  const int h = b.down(f);
  b.place(h).region = 3;
  const auto beyond = [](StepSpec& s) { s.candidates = {2}; };
  const int v = b.far_value(DType::kFloat32, {32}, 1), g = b.far_value(DType::kFloat32, {32}, 1);
  beyond(b.far_step(CopyAttrs{}, {h}, {v}));
  beyond(b.far_step(AbsAttrs{}, {v}, {g}));
  const int y = b.value(DType::kFloat32, {32}), z = b.value(DType::kFloat32, {32});
  beyond(b.far_step(CopyAttrs{}, {g}, {y}));
  b.far_step(CopyAttrs{}, {f}, {z});
  b.output("y", y);
  b.output("z", z);
  for (const Work work : {Work::kAtOnce, Work::kHeld}) {
    FarBackend far, other("beyond");
    far.work = other.work = work;
    Backend* const backends[] = {&other, &far};
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    ASSERT_EQ(r.needs.device_count, 2u);
    EXPECT_STREQ(r.needs.devices[0].backend, "far");
    EXPECT_STREQ(r.needs.devices[1].backend, "beyond");
    EXPECT_EQ(far.allocated(), r.needs.devices[0].bytes);
    EXPECT_EQ(other.allocated(), r.needs.devices[1].bytes);
    far.forget_counts();
    other.forget_counts();
    expect_same_bits(r, fill_x, 4);
    // far: before the other's upload, and at the end; beyond: before far's last download.
    EXPECT_EQ(far.counts().finishes, 8);
    EXPECT_EQ(other.counts().finishes, 4);
    EXPECT_EQ(far.counts().wrong + other.counts().wrong, 0);
  }
}

}  // namespace
}  // namespace sinter::testing
