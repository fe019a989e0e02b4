// Runner: a model in five lines, and what it reports where these are wrong.
#include "sinter/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/common/source_dir.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y[2,3] = relu(x[2,3] + {1, 2, 3})
AlignedBytes file() {
  ModelBuilder b = add_relu();
  return b.build();
}

const std::vector<float> kX = {-4, 0, 1, 2, -8, 3};

// A file as sinter convert --labels --meta wrote it.
TEST(Runner, HasTheTextsOfTheFile) {
  const Runner net = Runner::open((source_dir() / "tests/format/corpus/v3_texts.sinter").c_str());
  ASSERT_TRUE(net.ok()) << net.error();
  const Model& model = net.model();
  ASSERT_EQ(model.metadata_count(), 3u);
  EXPECT_STREQ(model.metadata_key(0), "license");
  EXPECT_STREQ(model.metadata_value(0), "MIT");
  EXPECT_STREQ(model.metadata("model.version"), "7");
  EXPECT_EQ(model.metadata("none"), nullptr);
  ASSERT_EQ(model.label_count("y"), 3u);
  EXPECT_STREQ(model.label("y", 1), "h\xc3\xbchner");
  EXPECT_EQ(model.label("y", 3), nullptr);
  EXPECT_EQ(model.label_count("x"), 0u);
}

TEST(Runner, RunsAModelInMemory) {
  const AlignedBytes bytes = file();
  Runner net = Runner::open(bytes.span());
  net.set("x", kX);
  net.run();
  EXPECT_THAT(net.get<float>("y"), ElementsAre(0, 2, 4, 3, 0, 6));
  EXPECT_TRUE(net.ok()) << net.error();
  EXPECT_STREQ(net.error(), "");
  EXPECT_GT(net.bytes(), 0u);
  EXPECT_THAT(net.shape("x"), ElementsAre(2, 3));
  EXPECT_EQ(net.dtype("y"), DType::kFloat32);
}

TEST(Runner, RunsAFile) {
  std::string path = ::testing::TempDir() + "runner-XXXXXX";
  const int handle = ::mkstemp(path.data());
  ASSERT_GE(handle, 0);
  const AlignedBytes bytes = file();
  ASSERT_EQ(::write(handle, bytes.span().data(), bytes.span().size()),
            static_cast<ssize_t>(bytes.span().size()));
  ::close(handle);
  for (const bool copied : {false, true}) {
    Runner net = Runner::open(path.c_str(), {.threads = 2, .copy_file = copied});
    ASSERT_TRUE(net.ok()) << net.error();
    ASSERT_TRUE(net.set("x", kX) && net.run()) << net.error();
    std::array<float, 6> y = {};
    ASSERT_TRUE(net.copy("y", y)) << net.error();
    EXPECT_THAT(y, ElementsAre(0, 2, 4, 3, 0, 6));
  }
  std::remove(path.c_str());
  const Runner gone = Runner::open(path.c_str());
  EXPECT_FALSE(gone.ok());
  EXPECT_EQ(gone.code(), Code::kInvalidArgument);
  EXPECT_THAT(gone.error(), HasSubstr(path));
}

TEST(Runner, ReportsWrongNamesTypesAndSizes) {
  const AlignedBytes bytes = file();
  Runner net = Runner::open(bytes.span());
  const auto error_of = [&](bool done) {
    EXPECT_FALSE(done);
    std::string text = net.error();
    net.clear_error();
    return text;
  };
  EXPECT_EQ(error_of(net.set("z", kX)), "the model does not have an input 'z'; its inputs are 'x'");
  EXPECT_EQ(error_of(net.set("x", std::vector<float>(5))),
            "input 'x' is float32[2,3], 6 elements, but 5 were given or asked for");
  EXPECT_EQ(error_of(net.set("x", std::vector<double>(6))),
            "input 'x' is float32[2,3], but elements of another type, of 8 bytes, were given or asked for");
  EXPECT_EQ(error_of(net.set("x", 1.0f)),
            "input 'x' is float32[2,3], 6 elements, but 1 were given or asked for");
  EXPECT_EQ(error_of(!net.get<int32_t>("y").empty()),
            "output 'y' is float32[2,3], but elements of another type, of 4 bytes, were given or asked for");
  std::vector<float> short_of(2);
  EXPECT_EQ(error_of(net.copy("y", short_of)),
            "output 'y' is float32[2,3], 6 elements, but 2 were given or asked for");
  EXPECT_TRUE(net.shape("z").empty());
  EXPECT_EQ(net.dtype("z"), DType::kNone);
  // Raw bytes are of any type.
  EXPECT_TRUE(net.set("x", std::as_bytes(std::span(kX)))) << net.error();
}

TEST(Runner, RunnersShareAnArena) {
  const AlignedBytes bytes = file();
  const Runner alone = Runner::open(bytes.span());
  AlignedBytes values(4096);
  SharedArena arena(values.span());
  Runner a = Runner::open(bytes.span(), {.arena = &arena}), b = a.another({.arena = &arena});
  EXPECT_LT(a.bytes(), alone.bytes());
  for (Runner* net : {&a, &b, &a}) {
    net->set("x", kX);
    net->run();
    EXPECT_THAT(net->get<float>("y"), ElementsAre(0, 2, 4, 3, 0, 6)) << net->error();
  }
  SharedArena small(values.span().first(64));
  EXPECT_THAT(Runner::open(bytes.span(), {.arena = &small}).error(),
              HasSubstr("of shared arena but it has 64"));
}

TEST(Runner, KeepsItsFirstFailure) {
  const AlignedBytes bytes = file();
  Runner net = Runner::open(bytes.span());
  net.set("nothing", kX);
  EXPECT_FALSE(net.set("x", kX));
  EXPECT_FALSE(net.run());
  EXPECT_TRUE(net.get<float>("y").empty());
  EXPECT_THAT(net.error(), HasSubstr("'nothing'"));
  net.clear_error();
  EXPECT_TRUE(net.set("x", kX) && net.run()) << net.error();
}

TEST(Runner, RefusesWhatIsNotAModel) {
  const AlignedBytes bytes(256);
  Runner net = Runner::open(bytes.span());
  EXPECT_FALSE(net);
  EXPECT_EQ(net.code(), Code::kCorrupt);
  net.clear_error();  // it was never open
  EXPECT_FALSE(net);
  EXPECT_FALSE(net.set("x", kX));
  EXPECT_FALSE(net.run());
  EXPECT_FALSE(net.another().ok());
  Runner empty;
  EXPECT_FALSE(empty.ok());
  EXPECT_FALSE(empty.run());
  EXPECT_STRNE(empty.error(), "");
  EXPECT_EQ(empty.bytes(), 0u);
  EXPECT_FALSE(empty.another().ok());
}

TEST(Runner, AnotherSharesTheModelAndRunsAtTheSameTime) {
  const AlignedBytes bytes = file();
  Runner first = Runner::open(bytes.span());
  Runner second = first.another();
  ASSERT_TRUE(second.ok()) << second.error();
  EXPECT_EQ(first.model().state(), second.model().state());
  const auto work = [](Runner& net, float offset, float* last) {
    for (int i = 0; i < 200 && net.ok(); ++i) {
      std::vector<float> x = kX;
      for (float& v : x) v += offset;
      net.set("x", x);
      net.run();
      *last = net.get<float>("y")[5];
    }
  };
  float a = 0, b = 0;
  std::thread other(work, std::ref(second), 100.0f, &b);
  work(first, 10.0f, &a);
  other.join();
  EXPECT_EQ(a, 16);
  EXPECT_EQ(b, 106);
  first = Runner();  // the model lives as long as one of its Runners
  EXPECT_TRUE(second.set("x", kX) && second.run()) << second.error();
  EXPECT_EQ(second.get<float>("y")[5], 6);
}

TEST(Runner, TakesOptionsOfSessions) {
  const AlignedBytes bytes = file();
  Runner reference = Runner::open(bytes.span(), {.backend = "reference"});
  ASSERT_TRUE(reference.ok()) << reference.error();
  EXPECT_STREQ(reference.session().step_backend(0), "reference");
  EXPECT_THAT(Runner::open(bytes.span(), {.profile = "none"}).error(), HasSubstr("none"));
  EXPECT_THAT(Runner::open(bytes.span(), {.threads = -1}).error(), HasSubstr("-1 threads"));
  EXPECT_THAT(Runner::open(bytes.span(), {.threads = 5000}).error(),
              HasSubstr("5000 threads; give 1 to 1024"));
  EXPECT_EQ(PthreadPool(PthreadPool::kMostThreads + 1).status().code, Code::kInvalidArgument);
  alignas(kBufferAlignment) float x[32] = {1, 1, 1, 1, 1, 1};
  const Binding bound[] = {{"x", std::as_writable_bytes(std::span(x))}};
  Runner net = Runner::open(bytes.span(), {.bindings = bound});
  ASSERT_TRUE(net.run()) << net.error();
  EXPECT_THAT(net.get<float>("y"), ElementsAre(2, 3, 4, 2, 3, 4));
}

}  // namespace
}  // namespace sinter::testing
