// Runs on a thread of their own, cancelled runs, times of steps and messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "sinter/log.h"
#include "sinter/runner.h"
#include "sinter/sinter_c.h"
#include "tests/format/sample_models.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6, 7, 8};

AlignedBytes doubled_input() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 4}), y = b.value(DType::kFloat32, {2, 4});
  b.step(AddAttrs{}, {x, x}, {y});
  b.output("y", y);
  return b.build();
}

TEST(StartedRuns, OthersWaitForThem) {
  const AlignedBytes bytes = doubled_input();
  Runner net = Runner::open(bytes.span());
  ASSERT_TRUE(net.set("x", kValues) && net.start()) << net.error();
  EXPECT_THAT(net.get<float>("y"), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16)) << net.error();
  EXPECT_FALSE(net.running());
}

TEST(StartedRuns, ACallbackStartsTheNext) {
  const AlignedBytes bytes = doubled_input();
  Runner net = Runner::open(bytes.span());
  int left = 50;
  const auto next = [](void* context, Runner& runner) {
    if (!runner.ok() || --*static_cast<int*>(context) == 0) return;
    std::vector<float> y(8);
    if (!runner.copy("y", y)) return;
    for (float& v : y) v /= 2;
    runner.set("x", y);
    runner.start(
        +[](void* c, Runner& r) {
          if (r.ok()) --*static_cast<int*>(c);
        },
        context);
  };
  ASSERT_TRUE(net.set("x", kValues) && net.start(next, &left)) << net.error();
  net.wait();
  ASSERT_TRUE(net.ok()) << net.error();
  EXPECT_EQ(left, 48);
  EXPECT_EQ(net.get<float>("y")[7], 16);
}

TEST(StartedRuns, AreWaitedForByTheDestructor) {
  const AlignedBytes bytes = doubled_input();
  std::atomic<int> ended{0};
  for (int i = 0; i < 100; ++i) {
    Runner net = Runner::open(bytes.span());
    ASSERT_TRUE(net.set("x", kValues) &&
                net.start([](void* c, Runner&) { ++*static_cast<std::atomic<int>*>(c); }, &ended));
  }
  EXPECT_EQ(ended, 100);
}

TEST(CancelledRuns, EndBeforeTheirNextStep) {
  const AlignedBytes bytes = doubled_input();
  Runner net = Runner::open(bytes.span());
  std::atomic<bool> cancel{true};
  ASSERT_TRUE(net.set("x", kValues)) << net.error();
  net.session().set_cancel(&cancel);
  EXPECT_EQ(net.session().run().code, Code::kCancelled);
  EXPECT_FALSE(net.run());
  EXPECT_EQ(net.code(), Code::kCancelled);
  EXPECT_THAT(net.error(), HasSubstr("the run was cancelled"));
  net.clear_error();
  cancel = false;
  ASSERT_TRUE(net.set("x", kValues) && net.run()) << net.error();
  EXPECT_EQ(net.get<float>("y")[7], 16);
  net.cancel();  // without a run it does nothing
  EXPECT_TRUE(net.run()) << net.error();
}

// The other thread cancels while the first of two steps is observed, so that the second never runs.
TEST(CancelledRuns, FromAnotherThread) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 4}), u = b.value(DType::kFloat32, {2, 4}),
            y = b.value(DType::kFloat32, {2, 4});
  b.step(AddAttrs{}, {x, x}, {u});
  b.step(NegAttrs{}, {u}, {y});
  b.output("y", y);
  const AlignedBytes bytes = b.build();
  Runner net = Runner::open(bytes.span());
  struct {
    std::atomic<int> steps{0};
    std::atomic<bool> cancelled{false};
  } seen;
  const StepObserver observer{&seen, nullptr, [](void* context, const StepInfo&, const OpCall&) {
                                auto& s = *static_cast<decltype(seen)*>(context);
                                ++s.steps;
                                while (!s.cancelled) std::this_thread::yield();
                              }};
  net.session().set_observer(&observer);
  std::thread other([&] {
    while (seen.steps == 0) std::this_thread::yield();
    net.cancel();
    seen.cancelled = true;
  });
  EXPECT_TRUE(net.set("x", kValues)) << net.error();
  EXPECT_FALSE(net.run());
  other.join();
  EXPECT_EQ(net.code(), Code::kCancelled);
  EXPECT_EQ(seen.steps, 1);
  net.clear_error();
  ASSERT_TRUE(net.set("x", kValues) && net.run()) << net.error();
  EXPECT_EQ(seen.steps, 3);
  EXPECT_EQ(net.get<float>("y")[7], -16);
}

TEST(StepTimes, OfARunner) {
  const AlignedBytes bytes = doubled_input();
  Runner net = Runner::open(bytes.span());
  ASSERT_TRUE(net.time_steps()) << net.error();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(net.set("x", kValues) && net.run()) << net.error();
  const StepTime time = net.step_time(net.program(), 0);
  EXPECT_EQ(time.runs, 3u);
  EXPECT_LE(time.least, time.most);
  EXPECT_LE(3 * time.least, time.nanoseconds);
  EXPECT_EQ(net.step_time(7, 0).runs, 0u);
  EXPECT_EQ(net.step_time(0, 9).runs, 0u);
}

TEST(Messages, OfASession) {
  std::vector<std::string> lines;
  set_log([](void* to, int32_t,
             const char* text) { static_cast<std::vector<std::string>*>(to)->push_back(text); },
          &lines);
  const AlignedBytes bytes = doubled_input();
  const Runner net = Runner::open(bytes.span());
  set_log(nullptr);
  const Runner silent = Runner::open(bytes.span());
  ASSERT_EQ(lines.size(), 1u) << lines.back();
  EXPECT_THAT(lines[0], HasSubstr("a session runs the plan for"));
}

TEST(StartedRuns, OfTheCApi) {
  const AlignedBytes bytes = doubled_input();
  sinter_error error;
  sinter_model* model = nullptr;
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_model_open_bytes(bytes.data(), bytes.size(), nullptr, &model, &error), SINTER_OK);
  ASSERT_EQ(sinter_session_create(model, nullptr, &session, &error), SINTER_OK);
  EXPECT_EQ(sinter_start(session, nullptr, nullptr, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("input 0 'x': it has never been set"));
  ASSERT_EQ(sinter_time_steps(session, nullptr, 0, &error), SINTER_OK) << error.text;
  ASSERT_EQ(sinter_set(session, "x", SINTER_FLOAT32, kValues.data(), 32, &error), SINTER_OK) << error.text;
  int32_t code = -1;
  ASSERT_EQ(
      sinter_start(
          session,
          [](void* to, sinter_session*, const sinter_error* e) { *static_cast<int32_t*>(to) = e->code; },
          &code, &error),
      SINTER_OK);
  EXPECT_EQ(sinter_finish(session, &error), SINTER_OK) << error.text;
  EXPECT_EQ(code, SINTER_OK);
  std::vector<float> y(8);
  ASSERT_EQ(sinter_get(session, "y", SINTER_FLOAT32, y.data(), 32, &error), SINTER_OK) << error.text;
  EXPECT_EQ(y[7], 16);
  sinter_step_time time = {sizeof time, nullptr, nullptr, 0, 0, 0, 0};
  ASSERT_EQ(sinter_session_step_time(session, sinter_session_program(session), 0, &time, &error), SINTER_OK);
  EXPECT_EQ(time.runs, 1u);
  EXPECT_EQ(sinter_model_metadata_count(model), 0u);
  EXPECT_EQ(sinter_model_label(model, "y", 0), nullptr);
  sinter_session_destroy(session);
  sinter_model_close(model);
}

}  // namespace
}  // namespace sinter::testing
