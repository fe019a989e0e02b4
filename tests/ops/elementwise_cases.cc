// Element-wise operations on every class of numbers, where kernels that take several elements at a time end a
// row.
#include <algorithm>
#include <cmath>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

constexpr char kDevice[] = "cuda-emulated";

template <class T>
void check_rows(int64_t length) {
  const Tensor x = noise<T>({3, 2, length}, -90, 90, 1), row = noise<T>({length}, 1, 100, 2),
               column = noise<T>({3, 1, 1}, 1, 100, 3), one = noise<T>({}, 1, 100, 4);
  for (const Tensor& y : {x, row, column, one}) {
    check_taken_by(kDevice, SubAttrs{}, {x, y});
    check_taken_by(kDevice, DivAttrs{}, {x, y});
    check_taken_by(kDevice, CompareAttrs{.fn = static_cast<int64_t>(CompareFn::kLess)}, {y, x});
    check_taken_by(kDevice, WhereAttrs{}, {tensor<bool>({2, 1}, {true, false}), x, y});
  }
}

TEST(Elementwise, RowsOfAnyLength) {
  for (const int64_t length : {1, 4, 7}) {
    SCOPED_TRACE(length);
    check_rows<int8_t>(length);
    check_rows<uint8_t>(length);
    check_rows<int16_t>(length);
    check_rows<uint32_t>(length);
    check_rows<int64_t>(length);
    check_rows<float>(length);
    check_rows<double>(length);
  }
}

TEST(Elementwise, SpecialNumbersOfFloat64) {
  const double infinity = kInfinity, nan = std::nan("");
  const Tensor x = tensor<double>({2, 7}, {nan, -infinity, infinity, -0.0, 0.0, 2.5, -3.5, 1e300, -1e-310,
                                           0.49, -7, 1, -1, 1.7976931348623157e308}),
               y = tensor<double>({7}, {1, -1, infinity, 3, nan, -2.5, 0});
  check_taken_by(kDevice, NegAttrs{}, {x});
  check_taken_by(kDevice, SignAttrs{}, {x});
  for (int64_t fn = 0; fn < 3; ++fn) check_taken_by(kDevice, RoundAttrs{.fn = fn}, {x});
  for (int64_t mask = 0; mask < 8; ++mask) check_taken_by(kDevice, ClassifyAttrs{.mask = mask}, {x});
  for (int64_t fn = 0; fn < 6; ++fn) check_taken_by(kDevice, CompareAttrs{.fn = fn}, {x, y});
  check_taken_by(kDevice, ModAttrs{.fmod = 1}, {x, y});
  check_taken_by(kDevice, WhereAttrs{}, {tensor<bool>({2, 1}, {true, false}), x, y});
}

// Every special number to the power of every other, in each class of numbers, and results from the smallest
// normal number to the largest.
TEST(Elementwise, Powers) {
  const std::vector<float> special = {0.0f, -0.0f, 1,          -1,          2,          -3,
                                      0.5f, kInf,  -kInf,      kNan,        1e-30f,     -3e38f,
                                      7.5f, -2.5f, 16777215.f, -16777216.f, 8388607.5f, 3};
  const auto n = static_cast<int64_t>(special.size());
  const Tensor x = tensor<float>({n, 1}, special), y = tensor<float>({n}, special);
  check_taken_by(kDevice, PowAttrs{}, {x, y});
  check_taken_by(kDevice, PowAttrs{}, {x, tensor<int32_t>({4, 1, 1}, {0, 2, -1, 3})});
  check_taken_by(kDevice, PowAttrs{}, {tensor<int16_t>({4, 1}, {0, 2, -1, 3}), y});
  std::vector<float> bases, exponents;
  for (int i = 1; i <= 900; ++i) {
    const float base =
        std::exp2(static_cast<float>(i * 37 % 901) / 30 - 15) * (1 + static_cast<float>(i) / 3000);
    bases.push_back(base);
    exponents.push_back(static_cast<float>(i * 71 % 247 - 123) / std::max(std::fabs(std::log2(base)), 0.01f));
  }
  check_taken_by(kDevice, PowAttrs{}, {tensor<float>({900}, bases), tensor<float>({900}, exponents)});
}

// More elements than a block of any kernel takes.
TEST(Elementwise, RangesOfManyElements) {
  for (const int64_t n : {4097, 70001}) {
    auto v = noise<float>({n}, -3, 5).values<float>();
    v[7] = kNan, v[static_cast<size_t>(n) - 2] = 9;
    check_taken_by(kDevice, DynamicQuantizeAttrs{}, {tensor<float>({n}, v)}, {.outputs = 3});
    check_taken_by(kDevice, DynamicQuantizeAttrs{}, {noise<double>({n}, -3, 5)}, {.outputs = 3});
  }
  check_taken_by(kDevice, DynamicQuantizeAttrs{}, {tensor<float>({2}, {kInf, -1})}, {.outputs = 3});
  check_taken_by(kDevice, DynamicQuantizeAttrs{}, {noise<float>({40}, -3, 5)}, {.unwanted = {1, 2}});
}

}  // namespace
}  // namespace sinter::test
