// Lengths that the caller gives: what Runner and the C API make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sinter/runner.h"
#include "sinter/sinter_c.h"
#include "tests/format/sample_models.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<float> kSix = {1, 2, 3, 4, 5, 6}, kEight = {1, 2, 3, 4, 5, 6, 7, 8}, kPair = {9, 8};

// The inputs of lengths_model() with `n` columns.
bool give(Runner& net, const std::vector<float>& values, int64_t n) {
  return net.set("x", values, {2, n}) && net.set("z", values, {2, n}) && net.set("w", kPair, {2, 1});
}

TEST(GivenLengths, OfARunner) {
  const AlignedBytes bytes = lengths_model().build();
  Runner net = Runner::open(bytes.span());
  ASSERT_TRUE(net.ok()) << net.error();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(give(net, kSix, 3) && net.run()) << net.error();
    EXPECT_EQ(net.output_length("y", 1), 3);
    std::vector<float> y(6), v(2);
    ASSERT_TRUE(net.copy("y", y) && net.copy("v", v)) << net.error();
    EXPECT_THAT(y, ElementsAre(2, 4, 6, 8, 10, 12));
    EXPECT_THAT(v, ElementsAre(-9, -8));
    EXPECT_THAT(net.get<int64_t>("m"), ElementsAre(3, 3, 3, 3));
    // Without dims: the maxima.
    ASSERT_TRUE(net.set("x", kEight) && net.set("z", kEight) && net.run()) << net.error();
    EXPECT_THAT(net.get<float>("y"), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
  }
  EXPECT_THAT(net.shape("x"), ElementsAre(2, 4));
}

TEST(GivenLengths, OfInputsInPlace) {
  const AlignedBytes bytes = lengths_model().build();
  Runner net = Runner::open(bytes.span());
  ASSERT_TRUE(net.set_shape("x", {2, 2}) && net.set_shape("z", {2, 2})) << net.error();
  for (const char* name : {"x", "z"})
    for (const size_t i : {0, 1, 4, 5}) net.input<float>(name)[i] = static_cast<float>(i);
  EXPECT_FALSE(net.run());
  EXPECT_THAT(net.error(), HasSubstr("input 2 'w': it has never been set"));
  net.clear_error();
  ASSERT_TRUE(net.set("w", kPair, {2, 1}) && net.run()) << net.error();
  std::vector<float> y(4);
  ASSERT_TRUE(net.copy("y", y)) << net.error();
  EXPECT_THAT(y, ElementsAre(0, 2, 8, 10));
}

TEST(GivenLengths, WrongOnesOfARunner) {
  const AlignedBytes bytes = lengths_model().build();
  Runner net = Runner::open(bytes.span());
  const auto fails = [&](bool done, const char* words) {
    EXPECT_FALSE(done);
    EXPECT_EQ(net.code(), Code::kInvalidArgument);
    EXPECT_THAT(net.error(), HasSubstr(words));
    net.clear_error();
  };
  fails(net.set("x", kEight, {2, 5}),
        "has input 'x' as [2,5]; give one of these shapes: 'x' [2,1..4], 'z' [2,1..4]");
  fails(net.set("x", kSix, {2, 4}), "input 'x' is float32[2,4], 8 elements, but 6 were given");
  fails(net.set("x", std::vector<double>(6), {2, 3}), "elements of another type");
  fails(net.set_shape("x", {2, 0}), "as [2,0]");
  ASSERT_TRUE(net.set("x", kSix, {2, 3}) && net.set("z", kEight) && net.set("w", kPair, {2, 1}));
  fails(net.run(), "input 1 'z': its length is 4, but that of another input with the same dimension is 3");
  ASSERT_TRUE(give(net, kSix, 3) && net.run()) << net.error();
  std::vector<float> y(7);
  fails(net.copy("y", y), "output 'y' is float32[2,3], 6 elements, but 7 were given or asked for");
}

// Two shape sets, each with a range: the shape decides for the set, and lengths move along.
TEST(GivenLengths, OfSeveralShapeSets) {
  ModelBuilder b;
  for (const int64_t rows : {1, 2}) {
    b.enter(static_cast<size_t>(rows) - 1);
    const int x = b.input("x", DType::kFloat32, {rows, 3}), s = b.input("s", DType::kFloat32, {3});
    const int n = b.length("n", 1, 3), y = b.value(DType::kFloat32, {rows, 3});
    b.step(AddAttrs{}, {x, s}, {y});
    b.bound(x, 1, n), b.bound(s, 0, n), b.bound(y, 1, n);
    b.output("y", y);
  }
  b.enter(0);
  b.profiles[0].entries = {0, 1};
  const AlignedBytes bytes = b.build();
  Runner net = Runner::open(bytes.span());
  ASSERT_TRUE(net.set("s", kPair, {2}) && net.set("x", std::vector<float>{1, 2, 3, 4}, {2, 2}) && net.run())
      << net.error();
  EXPECT_EQ(net.entry(), 1u);
  std::vector<float> y(4);
  ASSERT_TRUE(net.copy("y", y)) << net.error();
  EXPECT_THAT(y, ElementsAre(10, 10, 12, 12));
  ASSERT_TRUE(net.set("x", std::vector<float>{1, 2}, {1, 2}) && net.set("s", kPair, {2}) && net.run())
      << net.error();
  EXPECT_EQ(net.entry(), 0u);
}

TEST(GivenLengths, OfTheCApi) {
  const AlignedBytes bytes = lengths_model().build();
  sinter_error error;
  sinter_model* model = nullptr;
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_model_open_bytes(bytes.data(), bytes.size(), nullptr, &model, &error), SINTER_OK);
  ASSERT_EQ(sinter_session_create(model, nullptr, &session, &error), SINTER_OK);
  int64_t low = 0, high = 0;
  ASSERT_EQ(sinter_model_input_range(model, 0, 0, 1, &low, &high), SINTER_OK);
  EXPECT_EQ(low, 1);
  EXPECT_EQ(high, 4);
  EXPECT_EQ(sinter_model_input_range(model, 0, 0, 2, &low, &high), SINTER_INVALID_ARGUMENT);
  const int64_t three[] = {2, 3}, five[] = {2, 5};
  for (const char* name : {"x", "z"})
    ASSERT_EQ(sinter_set_shaped(session, name, SINTER_FLOAT32, kSix.data(), 24, three, 2, &error), SINTER_OK)
        << error.text;
  EXPECT_EQ(sinter_run(session, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("input 2 'w': it has never been set"));
  const int64_t pair[] = {2, 1};
  ASSERT_EQ(sinter_set_shaped(session, "w", SINTER_FLOAT32, kPair.data(), 8, pair, 2, &error), SINTER_OK)
      << error.text;
  ASSERT_EQ(sinter_run(session, &error), SINTER_OK) << error.text;
  EXPECT_EQ(sinter_session_input_length(session, "x", 1), 3);
  EXPECT_EQ(sinter_session_output_length(session, "y", 1), 3);
  std::vector<float> y(6);
  ASSERT_EQ(sinter_get_used(session, "y", SINTER_FLOAT32, y.data(), 24, &error), SINTER_OK) << error.text;
  EXPECT_THAT(y, ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_EQ(sinter_get_used(session, "y", SINTER_FLOAT32, y.data(), 20, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_set_shaped(session, "x", SINTER_FLOAT32, kSix.data(), 24, five, 2, &error),
            SINTER_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "input 0 'x': its axis 1 has 1 to 4 entries, but the shape has 5");
  EXPECT_EQ(sinter_set_shaped(session, "x", SINTER_INT32, kSix.data(), 24, three, 2, &error),
            SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_set_shaped(session, "x", SINTER_FLOAT32, kSix.data(), 24, nullptr, 2, &error),
            SINTER_INVALID_ARGUMENT);
  ASSERT_EQ(sinter_session_set_shape(session, "x", three, 2, &error), SINTER_OK);
  ASSERT_EQ(sinter_set(session, "z", SINTER_FLOAT32, kEight.data(), 32, &error), SINTER_OK) << error.text;
  EXPECT_EQ(sinter_run(session, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("give both inputs anew"));
  sinter_session_destroy(session);
  sinter_model_close(model);
}

}  // namespace
}  // namespace sinter::testing
