// Every row of variants.def, forced by itself, computes the calls that it takes with the reference's bits
// (integers) or within the tolerance of the harness (floats), in every way in which the harness runs a step
// and on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>

#include "platforms/simd/simd_kernels.h"
#include "platforms/simd/variant.h"
#include "tests/op_harness/backends.h"
#include "tests/op_harness/instruction_sets.h"
#include "tests/ops/quantized_test.h"

namespace sinter::test {
namespace {

using simd::VariantRow;

// Returns the row that takes a call with constant weights, or null.
template <class A>
const VariantRow* row_of(const A& attrs, const std::vector<Tensor>& inputs) {
  StepNeeds needs;
  EXPECT_TRUE(measure_op(*tested_backend("simd"), A::kOp, &attrs, inputs, {}, &needs).ok());
  if (needs.packing.bytes == 0) return nullptr;
  return &simd::variant_rows()[static_cast<size_t>(needs.packing.parameters[0]) - 1];
}

// Runs the calls that a row takes with that row.
class ForcedRow {
 public:
  explicit ForcedRow(const VariantRow& row) : row_(row) { EXPECT_TRUE(force_simd_variant(row.name)); }
  ~ForcedRow() { force_simd_variant(nullptr); }
  ForcedRow(const ForcedRow&) = delete;
  ForcedRow& operator=(const ForcedRow&) = delete;

  template <class A>
  void operator()(const A& attrs, const std::vector<Tensor>& inputs) {
    if (A::kOp != row_.op) return;
    const InstructionSets& sets = *InstructionSets::of("simd");
    bool taken = false;
    for (const char* name : sets.names()) taken |= sets.limit(name) && row_of(attrs, inputs) == &row_;
    sets.limit(nullptr);
    taken_ += taken ? 1 : 0;
    if (taken) run_op(attrs, inputs);
  }
  int taken() const { return taken_; }

 private:
  const VariantRow& row_;
  int taken_ = 0;
};

template <class A>
A window(const IntList& pads, int64_t stride = 1) {
  A a{};
  a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = pads;
  return a;
}

void run_floats(ForcedRow& run) {
  const auto floats = [](const Shape& dims, uint64_t seed) { return noise<float>(dims, -1, 1, seed); };
  for (const int64_t tile : {0, 2, 4, 6})
    for (const int64_t outputs : {3, 8, 40}) {
      auto a = window<ConvAttrs>({1, 1, 1, 1});
      a.winograd = tile;
      run(a, {floats({2, 9, 11, 5}, 1), floats({outputs, 3, 3, 5}, 2), floats({outputs}, 3)});
    }
  // The calls have few columns and much depth; no window; groups.
  run(window<ConvAttrs>({1, 1, 1, 1}), {floats({1, 6, 9, 130}, 1), floats({1, 3, 3, 130}, 2)});
  run(window<ConvAttrs>({0, 0, 0, 0}), {floats({1, 9, 8, 37}, 1), floats({33, 1, 1, 37}, 2)});
  auto grouped = window<ConvAttrs>({1, 0, 1, 2}, 2);
  grouped.group = 2;
  run(grouped, {floats({1, 9, 8, 6}, 1), floats({40, 3, 3, 3}, 2)});
  for (const int64_t rows : {2, 50}) run(FullyConnectedAttrs{}, {floats({rows, 70}, 1), floats({41, 70}, 2)});
  LstmAttrs lstm;
  lstm.hidden_size = 21;
  run(lstm, {floats({3, 2, 7}, 1), floats({1, 84, 7}, 2), floats({1, 84, 21}, 3), floats({1, 168}, 4)});
}

template <class X>
void run_integers(ForcedRow& run) {
  constexpr bool kBytes = sizeof(X) == 1;
  const auto bounded = [](auto a) {
    a.x_zero = kBytes ? -7 : 0, a.y_zero = kBytes ? 3 : 0;
    a.q_min = kBytes ? -128 : -32768, a.q_max = kBytes ? 127 : 32767;
    a.to = static_cast<int64_t>(kBytes ? DType::kInt8 : DType::kInt16);
    return a;
  };
  const auto operands = [](const Shape& x, const Shape& w, int64_t columns, double sum) {
    return quantized::operands<X>(x, w, columns, sum, 1).tensors();
  };
  const double one = kBytes ? 128 * 128 : 32768 * 128;
  for (const int64_t outputs : {1, 4, 8, 40}) {
    run(bounded(window<QConvAttrs>({1, 1, 1, 1})),
        operands({2, 9, 13, 32}, {outputs, 3, 3, 32}, outputs, 6 * one));
    run(bounded(window<QConvAttrs>({0, 1, 2, 1}, 2)),
        operands({1, 9, 26, 3}, {outputs, 3, 3, 3}, outputs, 2 * one));
  }
  run(bounded(window<QConvAttrs>({0, 0, 0, 0})), operands({1, 9, 8, 37}, {33, 1, 1, 37}, 33, 2 * one));
  for (const int64_t rows : {1, 3, 50})
    run(bounded(QFullyConnectedAttrs{}), operands({rows, 72}, {41, 72}, 41, 3 * one));
  if (kBytes)
    run(bounded(window<QDepthwiseConvAttrs>({1, 1, 1, 1})), operands({1, 9, 13, 21}, {3, 3, 21}, 21, one));
}

// Returns whether the row is of other processors than this one.
bool is_of_other_processors(const VariantRow& row) {
  const std::string_view name = row.name;
  const auto sets = InstructionSets::of("simd")->names();
  if (name == "qs8_gemm_i8mm")
    return std::none_of(sets.begin(), sets.end(), [](std::string_view s) { return s == "i8mm"; });
  return name == "qs16_gemm" && kHostArchitecture != Architecture::kX86_64;
}

TEST(SimdVariants, EveryRowByItself) {
  for (const VariantRow& row : simd::variant_rows()) {
    SCOPED_TRACE(std::string(op_name(row.op)) + " by " + row.name);
    ForcedRow run(row);
    run_floats(run);
    run_integers<int8_t>(run);
    run_integers<int16_t>(run);
    EXPECT_TRUE(run.taken() > 0 || is_of_other_processors(row)) << "the row took no call";
  }
}

TEST(SimdVariants, FullNamesBeginWithThoseOfTheirRows) {
  const InstructionSets& sets = *InstructionSets::of("simd");
  for (const char* set : sets.names()) {
    ASSERT_TRUE(sets.limit(set));
    for (const VariantRow& row : simd::variant_rows())
      if (row.variant->full_name != nullptr) {
        EXPECT_EQ(std::string_view(row.variant->full_name()).find(row.name), 0u) << set;
      }
  }
  sets.limit(nullptr);
}

TEST(SimdVariants, OthersAreNotForced) {
  EXPECT_FALSE(force_simd_variant("f32_gem"));
  const Tensor x = noise<float>({7, 70}, -1, 1, 1), w = noise<float>({40, 70}, -1, 1, 2);
  ASSERT_TRUE(force_simd_variant("qs8_gemm"));
  EXPECT_STREQ(row_of(FullyConnectedAttrs{}, {x, w})->name, "f32_gemm") << "the forced row cannot compute it";
  EXPECT_TRUE(force_simd_variant(nullptr));
}

}  // namespace
}  // namespace sinter::test
