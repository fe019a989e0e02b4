// Definitions of custom operators: the verifier's check holds for every damaged copy of one.
#include "runtime/core/custom_definition.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "runtime/core/custom_ops.h"

namespace sinter::testing {
namespace {

// The bytes, aligned, as a file or the converter holds them.
class Definition {
 public:
  void part(const void* data, size_t bytes) {
    const size_t at = size_;
    size_ += (bytes + 7) / 8 * 8;
    words_.resize(size_ / 8);
    std::memcpy(data_at(at), data, bytes);
  }
  void text(const char* s) { part(s, std::strlen(s) + 1); }
  void head(uint32_t attributes) {
    const DefinitionHead head{kDefinitionLayout, 3, attributes, 9, 6, 0};
    part(&head, sizeof head);
    text("com.test"), text("Scale");
  }
  void attribute(sinter_attribute_kind kind, const char* name, const void* data, uint32_t bytes,
                 uint32_t count, sinter_type type = SINTER_NONE, std::vector<int64_t> dims = {}) {
    const AttributeHead head{static_cast<uint32_t>(kind),
                             static_cast<uint32_t>(std::strlen(name) + 1),
                             count,
                             bytes,
                             static_cast<uint32_t>(type),
                             static_cast<uint32_t>(dims.size())};
    part(&head, sizeof head);
    text(name);
    part(dims.data(), dims.size() * sizeof(int64_t));
    part(data, bytes);
  }
  char* data_at(size_t i) { return reinterpret_cast<char*>(words_.data()) + i; }
  size_t size() const { return size_; }
  AttrBytes view(size_t size) const {
    return {reinterpret_cast<const std::byte*>(words_.data()), static_cast<uint32_t>(size)};
  }
  AttrBytes view() const { return view(size_); }

 private:
  std::vector<uint64_t> words_ = std::vector<uint64_t>(1);
  size_t size_ = 0;
};

Definition sample() {
  const int64_t ints[] = {7, -1};
  const float floats[] = {0.5f, 2, 3};
  Definition d;
  d.head(8);
  d.attribute(SINTER_ATTRIBUTE_INT, "i", ints, 8, 1);
  d.attribute(SINTER_ATTRIBUTE_FLOAT, "f", floats, 4, 1);
  d.attribute(SINTER_ATTRIBUTE_TEXT, "s", "sin", 4, 3);
  d.attribute(SINTER_ATTRIBUTE_BYTES, "b", "a\0b", 3, 3);
  d.attribute(SINTER_ATTRIBUTE_INTS, "is", ints, 16, 2);
  d.attribute(SINTER_ATTRIBUTE_FLOATS, "fs", floats, 12, 3);
  d.attribute(SINTER_ATTRIBUTE_TEXTS, "ss", "ab\0\0c", 6, 3);
  d.attribute(SINTER_ATTRIBUTE_TENSOR, "t", floats, 12, 3, SINTER_FLOAT32, {3, 1});
  return d;
}

// Reads all that an operator could.
size_t read_all(const AttrBytes& definition) {
  size_t sum = std::strlen(custom_domain(definition)) + std::strlen(custom_name(definition));
  for (const char* name : {"i", "f", "s", "b", "is", "fs", "ss", "t", "none"}) {
    sinter_attribute a;
    if (find_custom_attribute(&definition, name, &a) == 0) continue;
    if (a.kind == SINTER_ATTRIBUTE_TEXT) sum += std::strlen(static_cast<const char*>(a.data));
    if (a.kind == SINTER_ATTRIBUTE_TEXTS)
      for (uint32_t i = 0; i < a.count; ++i) sum += std::strlen(sinter_custom_text_of(&a, i));
    for (int32_t d = 0; d < a.rank; ++d) sum += static_cast<size_t>(a.dims[d]);
  }
  return sum;
}

TEST(CustomDefinition, HoldsAttributesOfEveryKind) {
  const Definition d = sample();
  ASSERT_TRUE(check_definition(d.view()).ok());
  const AttrBytes view = d.view();
  EXPECT_STREQ(custom_domain(view), "com.test");
  EXPECT_STREQ(custom_name(view), "Scale");
  EXPECT_EQ(custom_version(view), 3u);
  sinter_attribute a;
  ASSERT_EQ(find_custom_attribute(&view, "is", &a), 1);
  EXPECT_EQ(static_cast<const int64_t*>(a.data)[1], -1);
  ASSERT_EQ(find_custom_attribute(&view, "ss", &a), 1);
  EXPECT_STREQ(sinter_custom_text_of(&a, 2), "c");
  ASSERT_EQ(find_custom_attribute(&view, "t", &a), 1);
  EXPECT_EQ(a.dims[0], 3);
  EXPECT_EQ(static_cast<const float*>(a.data)[2], 3);
  EXPECT_EQ(find_custom_attribute(&view, "none", &a), 0);
  EXPECT_EQ(a.data, nullptr);
}

TEST(CustomDefinition, EveryShorterOneIsRefused) {
  const Definition d = sample();
  for (size_t size = 0; size < d.size(); ++size) EXPECT_FALSE(check_definition(d.view(size)).ok()) << size;
}

// A damaged one that still passes the check can be read like any other.
TEST(CustomDefinition, DamagedOnesAreRefusedOrReadable) {
  std::mt19937 random(5);
  size_t refused = 0, sum = 0;
  constexpr size_t kTries = 50'000;
  for (size_t i = 0; i < kTries; ++i) {
    Definition d = sample();
    for (uint32_t n = random() % 3 + 1; n > 0; --n)
      *d.data_at(random() % d.size()) = static_cast<char>(random() % 4 == 0 ? random() % 256 : random() % 9);
    if (check_definition(d.view()).ok())
      sum += read_all(d.view());
    else
      ++refused;
  }
  EXPECT_GT(refused, kTries / 2);
  EXPECT_GT(sum, 0u);
}

TEST(CustomDefinition, FaultsByThemselves) {
  const int64_t one = 1;
  const auto refused = [&](auto&& add, uint32_t count = 1) {
    Definition d;
    d.head(count);
    add(d);
    return !check_definition(d.view()).ok();
  };
  const auto add = [&](sinter_attribute_kind kind, const void* data, uint32_t bytes, uint32_t count,
                       sinter_type type = SINTER_NONE, std::vector<int64_t> dims = {}) {
    return [=](Definition& d) { d.attribute(kind, "a", data, bytes, count, type, dims); };
  };
  EXPECT_FALSE(refused(add(SINTER_ATTRIBUTE_INT, &one, 8, 1)));
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_INT, &one, 8, 2)));
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_INT, &one, 4, 1)));
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_TEXT, "a\0b", 4, 3)));  // a zero byte within
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_TEXT, "abc", 3, 3)));   // without an end
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_TEXTS, "a\0b", 4, 3)));
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_INTS, &one, 8, 0x20000001)));
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_TENSOR, &one, 8, 2, SINTER_FLOAT32, {-1, -2})));
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_TENSOR, &one, 8, 2, SINTER_NONE, {2})));
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_TENSOR, &one, 8, 2, SINTER_FLOAT32, {int64_t{1} << 62, 4, 2})));
  EXPECT_TRUE(refused(add(static_cast<sinter_attribute_kind>(9), &one, 8, 1)));
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_INT, &one, 8, 1), 2));  // fewer attributes than stated
  EXPECT_TRUE(refused(add(SINTER_ATTRIBUTE_INT, &one, 8, 1), 0));  // more
  EXPECT_TRUE(refused(
      [&](Definition& d) {
        d.attribute(SINTER_ATTRIBUTE_INT, "a", &one, 8, 1);
        d.attribute(SINTER_ATTRIBUTE_INT, "a", &one, 8, 1);
      },
      2));
}

TEST(CustomOps, FaultsOfDescriptors) {
  static const auto infer = [](const sinter_custom_call*, sinter_custom_shape*) -> const char* {
    return nullptr;
  };
  static const auto compute = [](const sinter_custom_call*) -> const char* { return nullptr; };
  sinter_custom_op op = {};
  op.abi = SINTER_CUSTOM_OP_ABI, op.domain = "com.test", op.name = "A", op.since_version = 1;
  op.min_outputs = op.max_outputs = 1;
  op.infer = infer, op.compute = compute;
  const auto status = [](const sinter_custom_op& given) {
    const sinter_custom_op* const list[] = {&given};
    return check_custom_ops(list);
  };
  EXPECT_TRUE(status(op).ok());
  const auto refused = [&](auto&& change) {
    sinter_custom_op changed = op;
    change(changed);
    return status(changed).code == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](auto& o) { o.abi = 2; }));
  EXPECT_TRUE(refused([](auto& o) { o.domain = nullptr; }));
  EXPECT_TRUE(refused([](auto& o) { o.domain = "ai.onnx"; }));
  EXPECT_TRUE(refused([](auto& o) { o.name = ""; }));
  EXPECT_TRUE(refused([](auto& o) { o.since_version = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.infer = nullptr; }));
  EXPECT_TRUE(refused([](auto& o) { o.compute = nullptr; }));
  EXPECT_TRUE(refused([](auto& o) { o.min_inputs = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.max_inputs = 17; }));
  EXPECT_TRUE(refused([](auto& o) { o.min_outputs = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.attribute_count = 1; }));
  const sinter_custom_op* const twice[] = {&op, &op};
  EXPECT_FALSE(check_custom_ops(twice).ok());
  const sinter_custom_op* const none[] = {nullptr};
  EXPECT_FALSE(check_custom_ops(none).ok());
}

}  // namespace
}  // namespace sinter::testing
