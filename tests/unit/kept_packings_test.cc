// Sessions that share packings compute what sessions with their own do, and pack only what has changed.
#include "converter/quantize/ranges/kept_packings.h"

#include <gtest/gtest.h>

#include <vector>

#include "converter/ir/large_bytes.h"
#include "converter/quantize/ranges/observe.h"
#include "sinter/backends.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

constexpr int64_t kPackedColumns = 520, kDepth = 517;

ConstantPtr int8s(uint32_t seed) {
  std::vector<int8_t> items(static_cast<size_t>(kPackedColumns * kDepth));
  for (int8_t& x : items) x = static_cast<int8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
  return Constant::of<int8_t>(DType::kInt8, {kPackedColumns, kDepth}, items);
}

// Two products of one input, whose biases and multipliers are new objects in every graph.
struct Products {
  ConstantPtr first = int8s(1), second = int8s(2);

  Graph graph(int32_t bias) const {
    testing::Sketch s;
    const ValueId x = s.input({3, kDepth});
    s.graph.value(x).dtype = DType::kInt8;
    for (const ConstantPtr& w : {first, second}) {
      std::vector<int32_t> biases(kPackedColumns, w == first ? 7 : bias);
      const std::vector<float> multiplier = {0.001f};
      s.output(s.emit(QFullyConnectedAttrs{},
                      {x, s.graph.add_constant(w),
                       s.graph.add_constant(Constant::of<int32_t>(DType::kInt32, {kPackedColumns}, biases)),
                       s.graph.add_constant(Constant::of<float>(DType::kFloat32, {1}, multiplier))}),
               w == first ? "a" : "b");
    }
    return s.graph;
  }
};

std::vector<int8_t> run(const Graph& graph, KeptPackings* packings) {
  RunnerOptions options;
  options.backends = {default_backends().begin(), default_backends().end()};
  options.most_resident = 0;
  options.packings = packings;
  GraphRunner runner(graph, options);
  std::vector<int8_t> x(3 * kDepth), result;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(i * 37 % 255);
  runner.run({Constant::of<int8_t>(DType::kInt8, {3, kDepth}, x)});
  for (size_t i = 0; i < 2; ++i) {
    const TensorView y = runner.output(i);
    result.insert(result.end(), y.as<int8_t>(), y.as<int8_t>() + y.size());
  }
  return result;
}

TEST(KeptPackings, AreMadeAgainWhereSomethingHasChanged) {
  const Products products;
  ASSERT_GE(products.first->byte_size(), kLargeConstantBytes);
  KeptPackings packings(size_t{64} << 20);
  const auto check = [&](int32_t bias, int64_t made) {
    EXPECT_EQ(run(products.graph(bias), &packings), run(products.graph(bias), nullptr));
    EXPECT_EQ(packings.made(), made);
  };
  check(5, 2);
  check(5, 2);
  check(90, 3);
  check(5, 3);
  EXPECT_NE(run(products.graph(90), &packings), run(products.graph(5), &packings));
}

TEST(KeptPackings, AreOfOneConstantAndNotOfItsAddress) {
  KeptPackings packings(size_t{64} << 20);
  for (uint32_t i = 0; i < 8; ++i) {
    Products products;
    products.second = int8s(10 + i);
    EXPECT_EQ(run(products.graph(5), &packings), run(products.graph(5), nullptr));
  }
  EXPECT_EQ(packings.made(), 16);
}

TEST(KeptPackings, TakeNoMoreBytesThanTheyMay) {
  const Products products;
  KeptPackings none(1), one(size_t{kPackedColumns} * kDepth * 3 / 2);
  for (const int64_t made : {2, 4}) {
    EXPECT_EQ(run(products.graph(5), &none), run(products.graph(5), nullptr));
    EXPECT_EQ(none.made(), made);
  }
  for (const int64_t made : {2, 4}) {
    EXPECT_EQ(run(products.graph(5), &one), run(products.graph(5), nullptr));
    EXPECT_EQ(one.made(), made);
  }
}

}  // namespace
}  // namespace sinter::convert
