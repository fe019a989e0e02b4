// Files with several shape sets: which one Runner and the C API take, what moves along, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sinter/runner.h"
#include "sinter/sinter_c.h"
#include "tests/unit/running.h"

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

TEST(Shapes, ASharedArenaIsOfOneSet) {
  const AlignedBytes bytes = file_of_shapes();
  AlignedBytes values(1 << 16);
  SharedArena arena(values.span());
  EXPECT_STREQ(Runner::open(bytes.span(), {.arena = &arena}).error(),
               "a shared arena holds the inputs of one shape set, but the file has 3; give its number as "
               "`entry`");
  EXPECT_TRUE(Runner::open(bytes.span(), {.entry = 1, .arena = &arena}).ok());
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
  EXPECT_EQ(sinter_session_create(model, &options, &session, &error), SINTER_INVALID_ARGUMENT);
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

}  // namespace
}  // namespace sinter::testing
