// Custom operators by Runner, the C API and Session: a seed of the fuzzers, whose operator copies its
// operand.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sinter/runner.h"
#include "sinter/sinter_c.h"
#include "tests/common/source_dir.h"
#include "tests/fuzz/copying_op.h"

namespace sinter {
namespace {

constexpr float kX[6] = {1, -2, 3, -4, 5, -6}, kY[6] = {1, 0, 3, 0, 5, 0};  // Relu, then the copy

std::string model_file() {
  return (testing::source_dir() / "tests/fuzz/corpus/model/custom_all.sinter").string();
}

TEST(CustomOps, Runner) {
  Runner runner = Runner::open(model_file().c_str(), {.custom_ops = fuzz::kFuzzedOps});
  ASSERT_TRUE(runner.ok()) << runner.error();
  ASSERT_TRUE(runner.set("x", kX) && runner.run()) << runner.error();
  const auto y = runner.get<float>("y");
  ASSERT_EQ(y.size(), std::size(kY));
  EXPECT_TRUE(std::equal(y.begin(), y.end(), kY));
}

TEST(CustomOps, RunnerWithoutTheOperator) {
  const Runner runner = Runner::open(model_file().c_str());
  EXPECT_FALSE(runner.ok());
  EXPECT_EQ(runner.code(), Code::kUnsupported);
  EXPECT_NE(std::string(runner.error()).find("com.test.Scale"), std::string::npos) << runner.error();
}

TEST(CustomOps, CApi) {
  sinter_error error;
  sinter_open_options options = SINTER_OPEN_OPTIONS_INIT;
  options.custom_ops = fuzz::kFuzzedOps;
  options.custom_op_count = std::size(fuzz::kFuzzedOps);
  sinter_model* model = nullptr;
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_model_open(model_file().c_str(), &options, &model, &error), SINTER_OK) << error.text;
  ASSERT_EQ(sinter_session_create(model, nullptr, &session, &error), SINTER_OK) << error.text;
  float y[6] = {};
  ASSERT_EQ(sinter_set(session, "x", SINTER_FLOAT32, kX, sizeof kX, &error), SINTER_OK) << error.text;
  ASSERT_EQ(sinter_run(session, &error), SINTER_OK) << error.text;
  ASSERT_EQ(sinter_get(session, "y", SINTER_FLOAT32, y, sizeof y, &error), SINTER_OK) << error.text;
  EXPECT_TRUE(std::equal(std::begin(y), std::end(y), kY));
  sinter_session_destroy(session);
  sinter_model_close(model);
}

// The model opens, so that its facts can be read; sessions are refused.
TEST(CustomOps, CApiWithoutTheOperator) {
  sinter_error error;
  sinter_model* model = nullptr;
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_model_open(model_file().c_str(), nullptr, &model, &error), SINTER_OK) << error.text;
  EXPECT_EQ(sinter_session_create(model, nullptr, &session, &error), SINTER_UNSUPPORTED);
  EXPECT_NE(std::string(error.text).find("com.test.Scale"), std::string::npos) << error.text;
  sinter_model_close(model);
}

TEST(CustomOps, ADescriptorOfAnotherInterfaceIsRefused) {
  sinter_custom_op other = fuzz::kCopyingOp;
  other.abi = SINTER_CUSTOM_OP_ABI + 1;
  const sinter_custom_op* const ops[] = {&other};
  const Runner runner = Runner::open(model_file().c_str(), {.custom_ops = ops});
  EXPECT_EQ(runner.code(), Code::kInvalidArgument);
}

// The rule gives other dims than the file has.
TEST(CustomOps, AnOperatorThatDisagreesWithTheFileIsRefused) {
  sinter_custom_op other = fuzz::kCopyingOp;
  other.infer = [](const sinter_custom_call* call, sinter_custom_shape* results) -> const char* {
    fuzz::infer_copy(call, results);
    results[0].dims[0] += 1;
    return nullptr;
  };
  const sinter_custom_op* const ops[] = {&other};
  const Runner runner = Runner::open(model_file().c_str(), {.custom_ops = ops});
  EXPECT_EQ(runner.code(), Code::kCorrupt) << runner.error();
}

// More workspace than the file has planned.
TEST(CustomOps, AnOperatorThatNeedsMoreWorkspaceIsRefused) {
  sinter_custom_op other = fuzz::kCopyingOp;
  other.workspace = [](const sinter_custom_call*, size_t* bytes) -> const char* {
    return *bytes = size_t{1} << 30, nullptr;
  };
  const sinter_custom_op* const ops[] = {&other};
  const Runner runner = Runner::open(model_file().c_str(), {.custom_ops = ops});
  EXPECT_FALSE(runner.ok());
  EXPECT_NE(std::string(runner.error()).find("workspace"), std::string::npos) << runner.error();
}

}  // namespace
}  // namespace sinter
