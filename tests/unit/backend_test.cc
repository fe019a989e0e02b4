// How a session chooses kernels: candidates in order, their workspace and threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sinter/session.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

// Takes Clamp only; computes it as a constant, so that its work differs from the reference's.
class FakeBackend final : public Backend {
 public:
  size_t own = 100, prepared = 10, workspace = 0;  // workspace of each thread
  int opened = 0, closed = 0, steps_prepared = 0, released = 0;
  int threads_prepared = 0;

  const char* name() const override { return "fake"; }
  Status open(BumpArena& arena) override {
    ++opened;
    arena.allocate(own, 64);
    return arena.exhausted() ? error(Code::kOutOfMemory, "open") : ok_status();
  }
  void close() override { ++closed; }
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override {
    SINTER_RETURN_UNLESS(call.op == Op::kClamp, unsupported("only Clamp"));
    *needs = {prepared, workspace * static_cast<size_t>(threads)};
    return ok_status();
  }
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override {
    ++steps_prepared;
    threads_prepared = with.threads != nullptr ? with.threads->thread_count() : 1;
    auto* value = with.prepared.allocate_array<float>(1);
    SINTER_RETURN_UNLESS(value != nullptr && call.in(0).data != nullptr, error(Code::kInternal, "memory"));
    *value = 42;
    step->state = value;
    step->run = [](void* state, const OpCall& c, RunContext&) {
      for (int64_t i = 0; i < c.out(0).size(); ++i) c.out(0).as<float>()[i] = *static_cast<float*>(state);
      return ok_status();
    };
    return ok_status();
  }
  void release(PreparedStep&) override { ++released; }
};

// Four threads that are one.
class SerialPool final : public ThreadPool {
 public:
  int calls = 0;
  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override {
    ++calls;
    for (int64_t i = 0; i < count; i += grain) task(context, i, std::min(i + grain, count));
  }
  int thread_count() const override { return 4; }
};

// add_relu(), each step of which asks these backends in order.
ModelBuilder add_relu_on(std::vector<std::string> backends) {
  ModelBuilder b = add_relu();
  for (StepSpec& s : b.program().steps)
    for (size_t i = 0; i < backends.size(); ++i) s.candidates.push_back(static_cast<uint8_t>(i));
  b.backends = std::move(backends);
  return b;
}

TEST(Session, CandidatesAreAskedInOrder) {
  ModelBuilder b = add_relu_on({"absent", "fake"});
  FakeBackend fake;
  Backend* const backends[] = {&fake};
  {
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    EXPECT_STREQ(r.session.step_backend(0), "reference");
    EXPECT_STREQ(r.session.step_backend(1), "fake");
    ASSERT_TRUE(r.session.run().ok());
    EXPECT_EQ(r.get<float>("y")[0], 42);
    EXPECT_EQ(fake.steps_prepared, 1);
    // 100 bytes for itself and 10 for its step, each in lines of 64.
    EXPECT_EQ(r.needs.prepared, 128u + 64u);
    for (size_t n = 1; n <= 64; ++n)
      EXPECT_EQ(Session::create(r.model, AlignedBytes(r.needs.bytes).span().first(r.needs.bytes - n),
                                {.backends = backends})
                    .status()
                    .code,
                Code::kOutOfMemory);
  }
  EXPECT_EQ(fake.opened, fake.closed);
  EXPECT_EQ(fake.released, fake.steps_prepared);
}

TEST(Session, TooMuchWorkspaceMeansTheNextCandidate) {
  ModelBuilder b = add_relu_on({"fake"});
  FakeBackend fake;
  fake.workspace = 64;
  Backend* const backends[] = {&fake};
  {
    Running r(b, {.backends = backends});
    ASSERT_RUNNING(r);
    EXPECT_STREQ(r.session.step_backend(1), "reference");
    EXPECT_EQ(r.needs.prepared, 0u);
  }
  b.program().steps[1].workspace = 64;
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_STREQ(r.session.step_backend(1), "fake");
}

TEST(Session, OneBackendCanBeAskedFor) {
  ModelBuilder b = add_relu();
  FakeBackend fake;
  Backend* const backends[] = {&fake};
  SessionOptions options{.backends = backends};
  {
    Running r(b, options);  // the profile names none
    ASSERT_RUNNING(r);
    EXPECT_STREQ(r.session.step_backend(1), "reference");
  }
  options.backend = "fake";
  Running r(b, options);
  ASSERT_RUNNING(r);
  EXPECT_STREQ(r.session.step_backend(1), "fake");
  EXPECT_STREQ(r.session.step_backend(0), "reference");
}

// What a session reports of its fallbacks: "step backend instead of expected: reason".
struct Reports {
  std::vector<std::string> all;
  FallbackObserver observer() {
    return {this, [](void* self, const Fallback& f) {
              char reason[200];
              format_status(f.reason, reason);
              static_cast<Reports*>(self)->all.push_back(std::to_string(f.step) + " " + f.backend +
                                                         " instead of " + f.expected + ": " + reason);
            }};
  }
};

TEST(Session, FallbacksAreCountedAndReported) {
  ModelBuilder b = add_relu_on({"absent", "fake"});
  FakeBackend fake;
  Backend* const backends[] = {&fake};
  Reports reports;
  SessionOptions options{.backends = backends};
  options.on_fallback = reports.observer();
  const std::string not_linked = "instead of absent: the application does not link it";
  {
    Running r(b, options);
    ASSERT_RUNNING(r);
    EXPECT_EQ(r.session.fallbacks(), 2u);
    // Once by requirements(), once by create().
    EXPECT_THAT(reports.all, ::testing::ElementsAre("0 reference " + not_linked, "1 fake " + not_linked,
                                                    "0 reference " + not_linked, "1 fake " + not_linked));
  }
  // Another one is requested: its own refusals count, the plan's candidates do not.
  reports.all.clear();
  options.backend = "fake";
  {
    Running r(b, options);
    ASSERT_RUNNING(r);
    EXPECT_EQ(r.session.fallbacks(), 1u);
    EXPECT_EQ(reports.all[0], "0 reference instead of fake: only Clamp");
  }
  options.backend = "reference";
  Running r(b, options);
  ASSERT_RUNNING(r);
  EXPECT_EQ(r.session.fallbacks(), 0u);
  // As planned.
  b = add_relu_on({"fake"});
  b.program().steps[0].candidates = {};
  options.backend = nullptr;
  Running planned(b, options);
  ASSERT_RUNNING(planned);
  EXPECT_EQ(planned.session.fallbacks(), 0u);
}

// `sinter tune` puts them first where they are the fastest.
TEST(Session, TheReferenceKernelsCanBePlannedFirst) {
  ModelBuilder b = add_relu_on({"reference", "fake"});
  FakeBackend fake;
  Backend* const backends[] = {&fake};
  Running r(b, {.backends = backends, .require_planned = true});
  ASSERT_RUNNING(r);
  EXPECT_STREQ(r.session.step_backend(1), "reference");
  EXPECT_EQ(r.session.fallbacks(), 0u);
}

TEST(Session, FallbacksCanBeRefused) {
  FakeBackend fake;
  fake.workspace = 64;
  Backend* const backends[] = {&fake};
  SessionOptions options{.backends = backends};
  options.require_planned = true;
  ModelBuilder b = add_relu_on({"fake"});
  b.program().steps[0].candidates = {};
  {
    Running r(b, options);
    EXPECT_EQ(r.status.code, Code::kUnsupported);
    EXPECT_EQ(
        r.why(),
        "step 1: backend fake must compute this step but does not: the kernel needs more workspace than "
        "planned; convert with --backends plans for it");
  }
  EXPECT_EQ(fake.opened, fake.closed);
  b.program().steps[1].workspace = 64;
  {
    Running r(b, options);
    ASSERT_RUNNING(r);
    EXPECT_STREQ(r.session.step_backend(1), "fake");
  }
  options.backends = {};
  Running absent(b, options);
  EXPECT_EQ(absent.why(),
            "step 1: backend fake must compute this step but does not: the application does not "
            "link it");
}

// The first candidate on a part of the threads comes before the second on all.
TEST(Session, ACandidateWithTooLittleForAllThreadsRunsOnAsManyAsFit) {
  ModelBuilder b = add_relu_on({"fake"});
  FakeBackend fake;
  fake.workspace = 64;
  Backend* const backends[] = {&fake};
  SerialPool pool;
  for (const size_t planned : {size_t{0}, size_t{64}, size_t{128}, size_t{192}, size_t{256}}) {
    SCOPED_TRACE(planned);
    b.program().steps[1].workspace = planned;
    Running r(b, {.backends = backends, .threads = &pool});
    ASSERT_RUNNING(r);
    EXPECT_STREQ(r.session.step_backend(1), planned < 64 ? "reference" : "fake");
    EXPECT_EQ(fake.threads_prepared, planned < 64 ? 0 : planned < 128 ? 1 : planned < 256 ? 2 : 4);
    ASSERT_TRUE(r.session.run().ok());
    EXPECT_EQ(r.get<float>("y")[0] == 42, planned >= 64);
  }
}

TEST(Session, FewerThreadsWhereThePlanHasWorkspaceForFewer) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {1000, 16});
  const int w = b.constant<float>(DType::kFloat32, {64, 16}, std::vector<float>(64 * 16, 1.0f));
  const int y = b.value(DType::kFloat32, {1000, 64});
  b.step(FullyConnectedAttrs{}, {x, w}, {y});
  b.output("y", y);
  TensorView views[3];
  views[0].dtype = views[1].dtype = views[2].dtype = DType::kFloat32;
  views[0].set_shape(std::vector<int64_t>{1000, 16});
  views[1].set_shape(std::vector<int64_t>{64, 16});
  views[2].set_shape(std::vector<int64_t>{1000, 64});
  const FullyConnectedAttrs attrs;
  const OpCall call{Op::kFullyConnected, &attrs, {views, 2}, {views + 2, 1}};
  size_t one = 0, four = 0;
  ASSERT_TRUE(kFullyConnectedKernel.workspace(call, 1, &one).ok());
  ASSERT_TRUE(kFullyConnectedKernel.workspace(call, 4, &four).ok());
  ASSERT_LT(one, four);
  for (const size_t planned : {one - 1, one, four}) {
    SerialPool pool;
    SessionOptions options;
    options.threads = &pool;
    b.program().steps[0].workspace = planned;
    Running r(b, options);
    ASSERT_EQ(r.status.ok(), planned >= one) << r.why();
    if (planned < one) {
      EXPECT_EQ(r.status.code, Code::kOutOfMemory);
      continue;
    }
    std::fill_n(r.session.input(0u).as<float>(), 16000, 2.0f);
    ASSERT_TRUE(r.session.run().ok());
    EXPECT_EQ(r.session.output(0u).as<float>()[63999], 32.0f);
    EXPECT_EQ(pool.calls > 0, planned == four);
  }
}
}  // namespace
}  // namespace sinter::testing
