// Metadata and the names of classes: what a model gives back, and what the verifier refuses.
#include "tests/format/refusal.h"

namespace sinter::testing {
namespace {

struct Classifier : ModelBuilder {
  Classifier() {
    const int x = input("x", DType::kFloat32, {1, 2}), y = value(DType::kFloat32, {1, 2});
    step(NegAttrs{}, {x}, {y});
    output("y", y);
  }
};

TEST(Metadata, IsRead) {
  Classifier b;
  b.metadata = {{"a", "one"}, {"version", "2.5"}};
  b.labels = {{"y", {"cat", "dog"}}};
  const AlignedBytes file = b.build();
  const OpenOptions options{.kernels = reference_kernels()};
  AlignedBytes memory(Model::open_bytes(file.span(), options).value());
  const auto model = Model::open(file.span(), memory.span(), options);
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->metadata_count(), 2u);
  EXPECT_STREQ(model->metadata_key(1), "version");
  EXPECT_STREQ(model->metadata_value(1), "2.5");
  EXPECT_STREQ(model->metadata("a"), "one");
  EXPECT_EQ(model->metadata("b"), nullptr);
  ASSERT_EQ(model->label_count("y"), 2u);
  EXPECT_STREQ(model->label("y", 1), "dog");
  EXPECT_EQ(model->label("y", 2), nullptr);
  EXPECT_EQ(model->label_count("x"), 0u);
  EXPECT_EQ(model->label("x", 0), nullptr);
}

TEST(Metadata, DamageIsRefused) {
  const auto with = [](std::vector<std::pair<std::string, std::string>> metadata) {
    Classifier b;
    b.metadata = std::move(metadata);
    return b;
  };
  EXPECT_TRUE(opened(with({{std::string(255, 'k'), ""}})).ok());
  EXPECT_REFUSED(with({{std::string(256, 'k'), ""}}), "metadata");
  EXPECT_REFUSED(with({{"k", std::string((1 << 20) + 1, 'v')}}), "metadata");
  EXPECT_REFUSED(with({{"b", ""}, {"a", ""}}), "metadata");
  EXPECT_REFUSED(with({{"a", ""}, {"a", ""}}), "metadata");
  EXPECT_REFUSED(with({{"", ""}}), "metadata");
}

TEST(Metadata, DamagedLabelsAreRefused) {
  const auto with = [](std::vector<std::pair<std::string, std::vector<std::string>>> labels) {
    Classifier b;
    b.labels = std::move(labels);
    return b;
  };
  EXPECT_TRUE(opened(with({{"y", {"a", ""}}})).ok());
  EXPECT_REFUSED(with({{"x", {"a", "b"}}}), "labels");
  EXPECT_REFUSED(with({{"y", {"a", "b"}}, {"y", {"a", "b"}}}), "labels");
  EXPECT_REFUSED(with({{"y", {std::string(4096, 'l'), "b"}}}), "labels");
}

}  // namespace
}  // namespace sinter::testing
