// If and Loop in a session: branches, trip counts, carried values, nesting, and what does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/op_enums.h"
#include "sinter/session.h"
#include "tests/memory/watch.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;

// y = c ? relu(x) : x + k, with x captured.
ModelBuilder if_model() {
  ModelBuilder b;
  const int c = b.input("c", DType::kBool, {});
  const int x = b.input("x", DType::kFloat32, {3});
  const int y = b.value(DType::kFloat32, {3});
  b.step(IfAttrs{}, {c, x}, {y}, {1, 2});
  b.output("y", y);
  b.enter(1);
  {
    const int cx = b.captured(DType::kFloat32, {3}), r = b.value(DType::kFloat32, {3});
    b.step(relu(), {cx}, {r});
    b.output("", r);
  }
  b.enter(2);
  {
    const int cx = b.captured(DType::kFloat32, {3});
    const int k = b.constant<float>(DType::kFloat32, {}, {100.0f});
    const int r = b.value(DType::kFloat32, {3});
    b.step(AddAttrs{}, {cx, k}, {r});
    b.output("", r);
  }
  b.enter(0);
  return b;
}

TEST(Control, IfTakesEitherBranch) {
  ModelBuilder b = if_model();
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<float>("x", {-1, 2, 3});
  r.set<uint8_t>("c", {1});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(0, 2, 3));
  r.set<uint8_t>("c", {0});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(99, 102, 103));
  const int64_t before = test::allocation_count();
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_EQ(test::allocation_count(), before);
}

TEST(Control, ObserverSeesInsideBranches) {
  ModelBuilder b = if_model();
  Running r(b);
  ASSERT_RUNNING(r);
  std::vector<std::pair<uint32_t, uint32_t>> seen;
  StepObserver observer;
  observer.context = &seen;
  observer.after = [](void* c, const StepInfo& info, const OpCall&) {
    static_cast<decltype(seen)*>(c)->push_back({info.program, info.step});
  };
  r.session.set_observer(&observer);
  r.set<uint8_t>("c", {0});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(seen, ElementsAre(std::pair(2u, 0u), std::pair(0u, 0u)));
}

TEST(Control, BranchesMustFitTheirStep) {
  ModelBuilder b = if_model();
  b.programs[1].values[1].dims = {4};
  EXPECT_FALSE(Running(b).status.ok());
  b = if_model();
  b.programs[0].steps[0].subprograms = {1, 1};
  EXPECT_FALSE(Running(b).status.ok());
  b = if_model();
  b.programs[0].steps[0].subprograms = {1, 0};
  EXPECT_FALSE(Running(b).status.ok());
  b = if_model();
  b.programs[0].steps[0].subprograms = {1};
  EXPECT_FALSE(Running(b).status.ok());
  b = if_model();
  b.programs[2].inputs.clear();
  EXPECT_FALSE(Running(b).status.ok());
  b = if_model();
  b.programs[1].outputs.clear();
  EXPECT_FALSE(Running(b).status.ok());
}

// sum += x each trip until min(sum) >= limit; scanned: the sums.
ModelBuilder loop_model(int64_t max_trips, bool with_trip_count, bool with_condition) {
  ModelBuilder b;
  const int n = b.input("n", DType::kInt64, {});
  const int c = b.input("c", DType::kBool, {});
  const int x = b.input("x", DType::kFloat32, {2});
  const int limit = b.input("limit", DType::kFloat32, {});
  const int zero = b.constant<float>(DType::kFloat32, {2}, {0, 0});
  const int sum = b.value(DType::kFloat32, {2}), sums = b.value(DType::kFloat32, {max_trips, 2});
  const int trips = b.value(DType::kInt64, {});
  LoopAttrs loop;
  loop.max_trips = max_trips, loop.carried = 1;
  b.step(loop, {with_trip_count ? n : -1, with_condition ? c : -1, zero, x, limit}, {sum, sums, trips}, {1});
  b.output("sum", sum);
  b.output("sums", sums);
  b.output("trips", trips);
  b.enter(1);
  b.input("", DType::kInt64, {});
  b.input("", DType::kBool, {});
  const int s = b.input("", DType::kFloat32, {2});
  const int cx = b.captured(DType::kFloat32, {2}), climit = b.captured(DType::kFloat32, {});
  const int r = b.value(DType::kFloat32, {2}), least = b.value(DType::kFloat32, {});
  const int go = b.value(DType::kBool, {});
  b.step(AddAttrs{}, {s, cx}, {r});
  ReduceAttrs reduce;
  reduce.fn = static_cast<int64_t>(ReduceFn::kMin), reduce.axes = {0}, reduce.keepdims = 0;
  b.step(reduce, {r}, {least});
  CompareAttrs compare;
  compare.fn = static_cast<int64_t>(CompareFn::kLess);
  b.step(compare, {least, climit}, {go});
  b.output("", go);
  b.output("", r);
  b.output("", r);
  b.enter(0);
  return b;
}

TEST(Control, LoopStopsByTripCountOrCondition) {
  ModelBuilder b = loop_model(4, true, true);
  Running r(b);
  ASSERT_RUNNING(r);
  const auto run = [&](int64_t n, bool c, float limit) {
    r.set<int64_t>("n", {n});
    r.set<uint8_t>("c", {c});
    r.set<float>("x", {1, 10});
    r.set<float>("limit", {limit});
    return r.session.run();
  };
  ASSERT_TRUE(run(3, true, 100).ok());
  EXPECT_THAT(r.get<float>("sum"), ElementsAre(3, 30));
  EXPECT_THAT(r.get<float>("sums"), ElementsAre(1, 10, 2, 20, 3, 30, 0, 0));
  EXPECT_THAT(r.get<int64_t>("trips"), ElementsAre(3));
  ASSERT_TRUE(run(100, true, 2).ok());
  EXPECT_THAT(r.get<int64_t>("trips"), ElementsAre(2));
  EXPECT_THAT(r.get<float>("sums"), ElementsAre(1, 10, 2, 20, 0, 0, 0, 0));
  ASSERT_TRUE(run(4, true, 100).ok());
  EXPECT_THAT(r.get<int64_t>("trips"), ElementsAre(4));
  for (const auto& [n, c] : {std::pair<int64_t, bool>{0, true}, {-3, true}, {3, false}}) {
    ASSERT_TRUE(run(n, c, 100).ok());
    EXPECT_THAT(r.get<float>("sum"), ElementsAre(0, 0));
    EXPECT_THAT(r.get<int64_t>("trips"), ElementsAre(0));
    EXPECT_THAT(r.get<float>("sums"), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  }
  const Status status = run(5, true, 100);
  EXPECT_EQ(status.code, Code::kOutOfRange);
  EXPECT_EQ(status.where, Where::kStep);
  EXPECT_EQ(status.a, 4);
}

TEST(Control, LoopWithoutTripCountOrCondition) {
  ModelBuilder b = loop_model(4, false, false);
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<float>("x", {1, 10});
  r.set<float>("limit", {3});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<int64_t>("trips"), ElementsAre(3));
}

TEST(Control, CarriedResultInItsParametersPlace) {
  ModelBuilder b = loop_model(4, true, true);
  b.enter(1);
  b.place(2).last = 0;
  b.place(5).alias_of = 2, b.place(5).first = 0;
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<int64_t>("n", {3});
  r.set<uint8_t>("c", {1});
  r.set<float>("x", {1, 10});
  r.set<float>("limit", {100});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("sum"), ElementsAre(3, 30));
}

TEST(Control, LoopsMustFitTheirBodies) {
  const auto code = [](auto&& spoil) {
    ModelBuilder b = loop_model(4, true, true);
    spoil(b);
    return Running(b).status.code;
  };
  EXPECT_EQ(code([](ModelBuilder&) {}), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[0].steps[0].attrs.ints[1] = 2; }), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[0].steps[0].attrs.ints[1] = 1'000'000'000; }), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[0].steps[0].attrs.ints[1] = -1; }), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[0].steps[0].attrs.ints[0] = 5; }), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[0].steps[0].inputs.resize(1); }), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[0].steps[0].outputs.pop_back(); }), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[1].outputs.pop_back(); }), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[1].inputs.pop_back(); }), Code::kOk);
  EXPECT_NE(code([](ModelBuilder& b) { b.programs[1].values[0].dtype = DType::kInt32; }), Code::kOk);
}

// A step that fails in a body is named with the body's program: its number means another step in the main
// one.
TEST(Control, FailingStepOfABody) {
  ModelBuilder b;
  const int n = b.input("n", DType::kInt64, {});
  const int x = b.input("x", DType::kFloat32, {3});
  const int zero = b.constant<float>(DType::kFloat32, {}, {0});
  const int sum = b.value(DType::kFloat32, {}), trips = b.value(DType::kInt64, {});
  LoopAttrs loop;
  loop.max_trips = 8, loop.carried = 1;
  b.step(loop, {n, -1, zero, x}, {sum, trips}, {1});
  b.output("sum", sum);
  b.enter(1);
  const int i = b.input("", DType::kInt64, {});
  const int go = b.input("", DType::kBool, {});
  const int s = b.input("", DType::kFloat32, {});
  const int cx = b.captured(DType::kFloat32, {3});
  const int one = b.value(DType::kFloat32, {}), r = b.value(DType::kFloat32, {});
  b.step(GatherAttrs{}, {cx, i}, {one});
  b.step(AddAttrs{}, {s, one}, {r});
  b.output("", go);
  b.output("", r);
  b.enter(0);
  Running running(b);
  ASSERT_RUNNING(running);
  running.set<float>("x", {1, 2, 3});
  running.set<int64_t>("n", {4});
  const Status status = running.session.run();
  EXPECT_EQ(status.where, Where::kStep);
  EXPECT_EQ(status.index, 0);
  EXPECT_EQ(status.program, 1);
  char text[100];
  format_status(status, text);
  EXPECT_STREQ(text, "step 0 of program 1: index 3 is outside an axis of 3 elements");
}

// Fibonacci: a, b = b, a + b. The first result is the second parameter itself.
ModelBuilder fibonacci() {
  ModelBuilder b;
  const int n = b.input("n", DType::kInt64, {});
  const int zero = b.constant<int64_t>(DType::kInt64, {}, {0}),
            one = b.constant<int64_t>(DType::kInt64, {}, {1});
  const int fa = b.value(DType::kInt64, {}), fb = b.value(DType::kInt64, {}),
            trips = b.value(DType::kInt64, {});
  LoopAttrs loop;
  loop.max_trips = 50, loop.carried = 2;
  b.step(loop, {n, -1, zero, one}, {fa, fb, trips}, {1});
  b.output("a", fa);
  b.enter(1);
  b.input("", DType::kInt64, {});
  const int go = b.input("", DType::kBool, {});
  const int pa = b.input("", DType::kInt64, {}), pb = b.input("", DType::kInt64, {});
  const int sum = b.value(DType::kInt64, {});
  b.step(AddAttrs{}, {pa, pb}, {sum});
  b.output("", go);
  b.output("", pb);
  b.output("", sum);
  b.enter(0);
  return b;
}

TEST(Control, ResultThatIsTheNextParameter) {
  ModelBuilder b = fibonacci();
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<int64_t>("n", {10});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<int64_t>("a"), ElementsAre(55));
  // The other way round, the parameter would be overwritten before it is copied.
  std::swap(b.programs[1].outputs[1], b.programs[1].outputs[2]);
  b.programs[1].outputs[2].value = 2;
  b.programs[1].outputs[1].value = 3;
  EXPECT_THAT(Running(b).why(), ::testing::HasSubstr("overwritten while results are copied"));
}

// A chain of Ifs, one inside the other.
ModelBuilder nested(int depth) {
  ModelBuilder b;
  for (int d = 0; d <= depth; ++d) {
    b.enter(d == 0 ? 0 : static_cast<size_t>(2 * d - 1));
    const int c = d == 0 ? b.input("c", DType::kBool, {}) : b.captured(DType::kBool, {});
    const int x = d == 0 ? b.input("x", DType::kFloat32, {2}) : b.captured(DType::kFloat32, {2});
    const int y = b.value(DType::kFloat32, {2});
    if (d == depth)
      b.step(AddAttrs{}, {x, x}, {y});
    else
      b.step(IfAttrs{}, {c, c, x}, {y}, {static_cast<uint32_t>(2 * d + 1), static_cast<uint32_t>(2 * d + 2)});
    b.output("y", y);
    if (d == 0) continue;
    b.enter(static_cast<size_t>(2 * d));  // the branch that is not taken
    b.captured(DType::kBool, {});
    const int other = b.captured(DType::kFloat32, {2}), z = b.value(DType::kFloat32, {2});
    b.step(relu(), {other}, {z});
    b.output("", z);
  }
  b.enter(0);
  return b;
}

TEST(Control, NestsEightDeep) {
  ModelBuilder b = nested(8);
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<uint8_t>("c", {1});
  r.set<float>("x", {-3, 4});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(-6, 8));
  ModelBuilder deeper = nested(9);
  EXPECT_THAT(Running(deeper).why(), ::testing::HasSubstr("nested too deeply"));
}

TEST(Control, ProgramsThatOwnEachOtherAreRefused) {
  ModelBuilder b = nested(2);
  b.programs[3].steps[0] = b.programs[1].steps[0];
  b.programs[3].steps[0].subprograms = {1, 2};
  b.programs[0].steps[0].subprograms = {5, 6};
  EXPECT_FALSE(Running(b).status.ok());
}

}  // namespace
}  // namespace sinter::testing
