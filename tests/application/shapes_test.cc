// Files with several shape sets: which one Runner and the C API take, what moves along, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "sinter/runner.h"
#include "sinter/sinter_c.h"
#include "tests/unit/running.h"
#include "tests/unit/two_entries_with_state.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x + m + {1, 2, 3}, for x and m of [1,3] and [1,3], of [2,3] and [2,3], of [2,3] and [1,3]. The programs
// share the constant.
AlignedBytes file_of_shapes() {
  ModelBuilder b;
  const int64_t rows[3][2] = {{1, 1}, {2, 2}, {2, 1}};
  for (uint32_t entry = 0; entry < 3; ++entry) {
    b.enter(entry);
    const std::vector<int64_t> dims = {rows[entry][0], 3};
    const int x = b.input("x", DType::kFloat32, dims);
    const int m = b.input("m", DType::kFloat32, {rows[entry][1], 3});
    const int c = b.constant<float>(DType::kFloat32, {3}, {1, 2, 3});
    const int h = b.value(DType::kFloat32, dims), y = b.value(DType::kFloat32, dims);
    b.step(AddAttrs{}, {x, m}, {h});
    b.step(AddAttrs{}, {h, c}, {y});
    b.output("y", y);
  }
  b.enter(0);
  b.profiles[0].entries = {0, 1, 2};
  return b.build();
}

const std::vector<float> kOne = {10, 20, 30}, kTwo = {10, 20, 30, 40, 50, 60};

TEST(Shapes, ARunnerTakesTheSetOfTheShapesThatItIsGiven) {
  const AlignedBytes bytes = file_of_shapes();
  Runner net = Runner::open(bytes.span());
  ASSERT_TRUE(net.ok()) << net.error();
  EXPECT_EQ(net.entry(), 0u);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(net.set("x", kTwo, {2, 3}) && net.set("m", kTwo, {2, 3}) && net.run()) << net.error();
    EXPECT_EQ(net.entry(), 1u);
    EXPECT_THAT(net.get<float>("y"), ElementsAre(21, 42, 63, 81, 102, 123));
    EXPECT_THAT(net.shape("y"), ElementsAre(2, 3));
    ASSERT_TRUE(net.set("x", kOne, {1, 3}) && net.set("m", kOne, {1, 3}) && net.run()) << net.error();
    EXPECT_EQ(net.entry(), 0u);
    EXPECT_THAT(net.get<float>("y"), ElementsAre(21, 42, 63));
  }
}

TEST(Shapes, InputsThatWereSetMoveAlong) {
  const AlignedBytes bytes = file_of_shapes();
  Runner net = Runner::open(bytes.span());
  // The second input decides between two sets that have the first one's shape.
  ASSERT_TRUE(net.set("x", kTwo, {2, 3}) && net.set("m", kOne, {1, 3}) && net.run()) << net.error();
  EXPECT_EQ(net.entry(), 2u);
  EXPECT_THAT(net.get<float>("y"), ElementsAre(21, 42, 63, 51, 72, 93));
  // Set again before the run, in another shape: only the other inputs have to stay.
  ASSERT_TRUE(net.set("x", kOne, {1, 3}) && net.set("x", kTwo, {2, 3}) && net.set("m", kTwo, {2, 3}) &&
              net.run())
      << net.error();
  EXPECT_EQ(net.entry(), 1u);
  EXPECT_THAT(net.get<float>("y"), ElementsAre(21, 42, 63, 81, 102, 123));
}

TEST(Shapes, AnInputThatWasRefusedDoesNotCountAsSet) {
  const AlignedBytes bytes = file_of_shapes();
  Runner net = Runner::open(bytes.span());
  EXPECT_FALSE(net.set("m", kTwo));  // the first set's has three elements
  EXPECT_THAT(net.error(), HasSubstr("input 'm' is float32[1,3], 3 elements, but 6 were given"));
  net.clear_error();
  ASSERT_TRUE(net.set("x", kTwo, {2, 3})) << net.error();
  EXPECT_EQ(net.entry(), 1u);
}

TEST(Shapes, ARunnerListsTheShapesThatThereAre) {
  const AlignedBytes bytes = file_of_shapes();
  Runner net = Runner::open(bytes.span());
  EXPECT_FALSE(net.set("x", kOne, {3, 1}));
  EXPECT_EQ(net.code(), Code::kInvalidArgument);
  EXPECT_STREQ(
      net.error(),
      "no shape set of the file has input 'x' as [3,1]; give one of these shapes: 'x' [1,3], 'm' [1,3]; "
      "'x' [2,3], 'm' [2,3]; 'x' [2,3], 'm' [1,3]");
  net.clear_error();
  // The other set with [2,3] would have another x.
  EXPECT_TRUE(net.set("x", kOne, {1, 3})) << net.error();
  EXPECT_FALSE(net.set("m", kTwo, {2, 3}));
  EXPECT_THAT(net.error(),
              HasSubstr("has input 'm' as [2,3] with the other inputs as they were set; give one"));
  net.clear_error();
  EXPECT_FALSE(net.set("z", kOne, {1, 3}));
  EXPECT_STREQ(net.error(), "the model does not have an input 'z'; its inputs are 'x', 'm'");
  net.clear_error();
  // The count of the values is that of the shape.
  EXPECT_FALSE(net.set("x", kOne, {2, 3}));
  EXPECT_THAT(net.error(), HasSubstr("6 elements, but 3 were given"));
  net.clear_error();
  EXPECT_FALSE(net.use_entry(3));
  EXPECT_THAT(net.error(), HasSubstr("3"));
}

TEST(Shapes, ARunnerOfOneSetHasItsMemoryAlone) {
  const AlignedBytes bytes = file_of_shapes();
  Runner all = Runner::open(bytes.span()), one = Runner::open(bytes.span(), {.entry = 1});
  ASSERT_TRUE(all.ok() && one.ok()) << all.error() << one.error();
  EXPECT_LT(one.bytes(), all.bytes());
  EXPECT_EQ(one.entry(), 1u);
  ASSERT_TRUE(one.set("x", kTwo) && one.set("m", kTwo) && one.run()) << one.error();
  EXPECT_THAT(one.get<float>("y"), ElementsAre(21, 42, 63, 81, 102, 123));
  EXPECT_FALSE(one.set("x", kOne, {1, 3}));
  EXPECT_STREQ(one.error(),
               "no shape set that is open has input 'x' as [1,3]; give one of these shapes: "
               "'x' [2,3], 'm' [2,3]");
  EXPECT_FALSE(Runner::open(bytes.span(), {.entry = 3}).ok());
  // Another Runner of the model may have all of them.
  Runner other = one.another();
  ASSERT_TRUE(other.set("x", kOne, {1, 3}) && other.set("m", kOne, {1, 3}) && other.run()) << other.error();
  EXPECT_THAT(other.get<float>("y"), ElementsAre(21, 42, 63));
}

TEST(Shapes, BuffersAreBoundToOneSet) {
  const AlignedBytes bytes = file_of_shapes();
  const AlignedBytes buffer(2 * kBufferAlignment + kReadPadding);
  const Binding bound[] = {{.name = "x", .buffer = buffer.span()}};
  const Runner every = Runner::open(bytes.span(), {.bindings = bound});
  EXPECT_STREQ(every.error(),
               "buffers are bound to one shape set, but the file has 3; give its number as `entry`");
  EXPECT_TRUE(Runner::open(bytes.span(), {.entry = 0, .bindings = bound}).ok());
}

TEST(Shapes, TheSetsOfARunnerHaveOneArena) {
  const AlignedBytes bytes = file_of_shapes();
  const Runner all = Runner::open(bytes.span());
  size_t shareable = 0, apart = 0;
  for (uint32_t entry = 0; entry < 3; ++entry) {
    const auto needs = Session::requirements(all.model(), {.entry = entry});
    ASSERT_TRUE(needs.ok());
    shareable = std::max(shareable, needs->shareable), apart += needs->bytes;
  }
  EXPECT_LT(all.bytes() - *Model::open_bytes(bytes.span()), apart);
  // Or that of the application, whose size is refused with the numbers.
  AlignedBytes values(shareable);
  SharedArena arena(values.span()), small(values.span().first(shareable - 64));
  Runner shared = Runner::open(bytes.span(), {.arena = &arena});
  EXPECT_EQ(shared.bytes() + align_up(shareable, kBufferAlignment), all.bytes());
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(shared.set("m", kOne, {1, 3}) && shared.set("x", kTwo, {2, 3}) && shared.run())
        << shared.error();
    EXPECT_THAT(shared.get<float>("y"), ElementsAre(21, 42, 63, 51, 72, 93));
    ASSERT_TRUE(shared.set("x", kOne, {1, 3}) && shared.set("m", kOne, {1, 3}) && shared.run())
        << shared.error();
    EXPECT_THAT(shared.get<float>("y"), ElementsAre(21, 42, 63));
  }
  EXPECT_THAT(Runner::open(bytes.span(), {.arena = &small}).error(), HasSubstr("of shared arena but it has"));
}

TEST(Shapes, TheSetsOfARunnerHaveOneState) {
  const AlignedBytes bytes = two_entries_with_state().build();
  Runner net = Runner::open(bytes.span());
  const auto run = [&](const std::vector<float>& x, std::initializer_list<int64_t> dims) {
    EXPECT_TRUE(net.set("x", x, dims) && net.run()) << net.error();
    const auto y = net.get<float>("y");
    return std::vector<float>(y.begin(), y.end());
  };
  EXPECT_THAT(run({3, 4}, {2}), ElementsAre(4, 6));
  EXPECT_THAT(run({0, 0, 10, 10}, {2, 2}), ElementsAre(8, 12, 18, 22));
  EXPECT_THAT(run({1, 1}, {2}), ElementsAre(9, 13));
  // Another stream of its own.
  Runner other = net.another();
  ASSERT_TRUE(other.set("x", std::vector<float>{0, 0}, {2}) && other.run()) << other.error();
  EXPECT_THAT(other.get<float>("y"), ElementsAre(1, 2));
  EXPECT_THAT(run({0, 0, 0, 0}, {2, 2}), ElementsAre(18, 26, 18, 26));
  EXPECT_TRUE(net.reset());
  EXPECT_THAT(run({0, 0}, {2}), ElementsAre(1, 2));
}

TEST(Shapes, AModelFindsTheEntry) {
  ModelBuilder b = add_relu();
  Running r(b);
  ASSERT_RUNNING(r);
  const int64_t dims[] = {2, 3}, other[] = {3, 2};
  const InputShape right[] = {{"x", dims}}, wrong[] = {{"x", other}}, unknown[] = {{"z", dims}};
  EXPECT_EQ(r.model.find_entry(right), 0);
  EXPECT_EQ(r.model.find_entry({}), 0);
  EXPECT_EQ(r.model.find_entry(wrong), -1);
  EXPECT_EQ(r.model.find_entry(unknown), -1);
}

TEST(Shapes, ASessionRunsOneEntry) {
  const AlignedBytes bytes = file_of_shapes();
  Runner net = Runner::open(bytes.span());
  const auto needs = Session::requirements(net.model(), {.entry = kEveryEntry});
  ASSERT_FALSE(needs.ok());
  EXPECT_THAT(needs.status().message, HasSubstr("one entry"));
}

TEST(Shapes, SessionsOfTheCApiShareTheModel) {
  const AlignedBytes bytes = file_of_shapes();
  sinter_error error = {};
  sinter_model* model = nullptr;
  ASSERT_EQ(sinter_model_open_bytes(bytes.span().data(), bytes.span().size(), nullptr, &model, &error),
            SINTER_OK)
      << error.text;
  const int64_t two[] = {2, 3}, one[] = {1, 3}, none[] = {9, 3};
  const sinter_shape right[] = {{"m", one, 2}, {"x", two, 2}}, wrong[] = {{"x", none, 2}},
                     nameless[] = {{nullptr, one, 2}};
  EXPECT_EQ(sinter_model_find_entry(model, right, 2), 2);
  EXPECT_EQ(sinter_model_find_entry(model, right, 1), 0);
  EXPECT_EQ(sinter_model_find_entry(model, wrong, 1), -1);
  EXPECT_EQ(sinter_model_find_entry(model, nameless, 1), -1);
  EXPECT_EQ(sinter_model_find_entry(nullptr, right, 2), -1);
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  options.entry = SINTER_EVERY_ENTRY;
  sinter_packed_weights* packed = nullptr;
  ASSERT_EQ(sinter_packed_create(model, &options, &packed, &error), SINTER_OK) << error.text;
  sinter_session* session = nullptr;
  options.packed_weights = packed;
  options.entry = 2;
  ASSERT_EQ(sinter_session_create(model, &options, &session, &error), SINTER_OK) << error.text;
  float y[6] = {};
  EXPECT_EQ(sinter_set(session, "x", SINTER_FLOAT32, kTwo.data(), 24, &error), SINTER_OK) << error.text;
  EXPECT_EQ(sinter_set(session, "m", SINTER_FLOAT32, kOne.data(), 12, &error), SINTER_OK) << error.text;
  EXPECT_EQ(sinter_run(session, &error), SINTER_OK) << error.text;
  EXPECT_EQ(sinter_get(session, "y", SINTER_FLOAT32, y, sizeof y, &error), SINTER_OK) << error.text;
  EXPECT_THAT(y, ElementsAre(21, 42, 63, 51, 72, 93));
  sinter_session_destroy(session);
  sinter_packed_destroy(packed);
  sinter_model_close(model);
}

TEST(Shapes, ASessionOfTheCApiHasAllSets) {
  const AlignedBytes bytes = two_entries_with_state().build();
  sinter_error error = {};
  sinter_model* model = nullptr;
  ASSERT_EQ(sinter_model_open_bytes(bytes.span().data(), bytes.span().size(), nullptr, &model, &error),
            SINTER_OK)
      << error.text;
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  options.entry = SINTER_EVERY_ENTRY;
  sinter_requirements needs = {}, of_one = {};
  needs.size = of_one.size = sizeof needs;
  ASSERT_EQ(sinter_session_requirements(model, &options, &needs, &error), SINTER_OK) << error.text;
  options.entry = 0;
  ASSERT_EQ(sinter_session_requirements(model, &options, &of_one, &error), SINTER_OK) << error.text;
  EXPECT_EQ(needs.state, of_one.state);
  EXPECT_LT(needs.bytes, 2 * of_one.bytes + needs.shareable);
  // In a block of the caller's, of exactly these bytes.
  options.entry = SINTER_EVERY_ENTRY;
  AlignedBytes block(needs.bytes), next(needs.bytes);
  options.memory = block.span().data(), options.memory_bytes = needs.bytes - 1;
  sinter_session* session = nullptr;
  EXPECT_EQ(sinter_session_create(model, &options, &session, &error), SINTER_OUT_OF_MEMORY);
  options.memory_bytes = needs.bytes;
  ASSERT_EQ(sinter_session_create(model, &options, &session, &error), SINTER_OK) << error.text;
  const int64_t one[] = {2}, two[] = {2, 2}, none[] = {7};
  const sinter_shape small = {"x", one, 1}, large = {"x", two, 2}, unknown = {"x", none, 1},
                     nameless = {"z", one, 1};
  const auto run = [&](const sinter_shape& shape, const std::vector<float>& x) {
    std::vector<float> y(x.size());
    const size_t size = x.size() * sizeof(float);
    EXPECT_EQ(sinter_session_select(session, &shape, 1, &error), SINTER_OK) << error.text;
    EXPECT_EQ(sinter_set(session, "x", SINTER_FLOAT32, x.data(), size, &error), SINTER_OK) << error.text;
    EXPECT_EQ(sinter_run(session, &error), SINTER_OK) << error.text;
    EXPECT_EQ(sinter_get(session, "y", SINTER_FLOAT32, y.data(), size, &error), SINTER_OK) << error.text;
    return y;
  };
  EXPECT_THAT(run(small, {3, 4}), ElementsAre(4, 6));
  EXPECT_EQ(sinter_session_entry(session), 0u);
  EXPECT_THAT(run(large, {0, 0, 10, 10}), ElementsAre(8, 12, 18, 22));
  EXPECT_EQ(sinter_session_entry(session), 1u);
  EXPECT_EQ(sinter_session_select(session, &unknown, 1, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("no shape set of the session"));
  EXPECT_EQ(sinter_session_select(session, &nameless, 1, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("'z'"));
  EXPECT_EQ(sinter_session_entry(session), 1u);
  EXPECT_EQ(sinter_session_select(nullptr, &small, 1, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_session_select(session, nullptr, 1, &error), SINTER_INVALID_ARGUMENT);
  ASSERT_EQ(sinter_session_use_entry(session, 0, &error), SINTER_OK) << error.text;
  EXPECT_EQ(sinter_session_entry(session), 0u);
  EXPECT_EQ(sinter_session_use_entry(session, 2, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("does not have shape set 2; it has 2"));
  EXPECT_EQ(sinter_session_use_entry(nullptr, 0, &error), SINTER_INVALID_ARGUMENT);
  ASSERT_EQ(sinter_session_use_entry(session, 1, &error), SINTER_OK) << error.text;
  // In other memory it goes on with the set and the state.
  options.memory = block.span().data();
  EXPECT_EQ(sinter_session_move(&session, &options, &error), SINTER_INVALID_ARGUMENT);
  options.memory = next.span().data();
  options.entry = 1;
  EXPECT_EQ(sinter_session_move(&session, &options, &error), SINTER_INVALID_ARGUMENT);
  options.entry = SINTER_EVERY_ENTRY;
  ASSERT_EQ(sinter_session_move(&session, &options, &error), SINTER_OK) << error.text;
  std::memset(block.data(), 0xff, block.size());
  EXPECT_EQ(sinter_session_entry(session), 1u);
  EXPECT_THAT(run(small, {1, 1}), ElementsAre(9, 13));
  sinter_tensor state = {};
  ASSERT_EQ(sinter_session_state(session, "s_in", &state, &error), SINTER_OK) << error.text;
  EXPECT_EQ(static_cast<const float*>(state.data)[1], 13);
  sinter_reset(session);
  EXPECT_THAT(run(small, {0, 0}), ElementsAre(1, 2));
  // Buffers are bound to one set.
  sinter_binding binding = {"x", block.data(), block.size(), nullptr};
  options.bindings = &binding, options.binding_count = 1;
  EXPECT_EQ(sinter_session_requirements(model, &options, &needs, &error), SINTER_INVALID_ARGUMENT);
  sinter_session_destroy(session);
  sinter_model_close(model);
}

}  // namespace
}  // namespace sinter::testing
