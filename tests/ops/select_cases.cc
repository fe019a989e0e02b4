// Compare and Where of broadcast operands and extreme numbers.
#include <cmath>
#include <limits>

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

// Condition or first, second, third operand.
struct Shapes {
  Shape a, b, c;
};
const Shapes kShapes[] = {{{}, {}, {}},
                          {{5}, {}, {5}},
                          {{2, 3, 37}, {2, 3, 37}, {2, 3, 37}},
                          {{2, 3, 37}, {37}, {3, 1}},
                          {{3, 1}, {1, 70}, {}},
                          {{4, 33, 3}, {4, 33, 1}, {3}},
                          {{2, 1, 5, 9}, {3, 1, 9}, {2, 3, 5, 9}},
                          {{0, 4}, {4}, {1}},
                          {{20000}, {20000}, {20000}},
                          {{20000}, {1}, {1}},
                          {{2, 17000}, {2, 1}, {17000}},
                          {{1}, {1, 1, 1}, {65}},
                          {{2, 1}, {2, 131}, {2, 131}}};

template <class T>
void check_compare() {
  for (int64_t fn = 0; fn < 6; ++fn) {
    SCOPED_TRACE(fn);
    const CompareAttrs attrs{.fn = fn};
    for (const Shapes& s : kShapes) {
      SCOPED_TRACE(testing::PrintToString(s.a) + " with " + testing::PrintToString(s.b));
      const Tensor a = noise<T>(s.a, -3, 3, 1), b = noise<T>(s.b, -3, 3, 2);
      check_taken_by("simd", attrs, {a, b});
      check_taken_by("simd", attrs, {b, a});
    }
  }
  for (int64_t n = 0; n < 70; ++n)
    check_taken_by("simd", CompareAttrs{.fn = 2}, {noise<T>({n}, -3, 3, 1), noise<T>({n}, -3, 3, 2)});
}

TEST(Compare, Broadcasts) {
  check_compare<float>();
  check_compare<int32_t>();
  check_compare<int64_t>();
}

TEST(Compare, Extremes) {
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  const std::vector<float> floats{
      0, -0.0f, kNan, kInf, -kInf, kLeast, -kLeast, 1, std::nextafter(1.0f, 2.0f)};
  const std::vector<int64_t> wide{0, 1, -1, INT64_MAX, INT64_MIN, 1ll << 32, (1ll << 32) + 1, -(1ll << 32)};
  const std::vector<int32_t> narrow{0, 1, -1, INT32_MAX, INT32_MIN};
  for (int64_t fn = 0; fn < 6; ++fn) {
    const CompareAttrs attrs{.fn = fn};
    check_taken_by("simd", attrs, {tensor<float>({9, 1}, floats), tensor<float>({1, 9}, floats)});
    check_taken_by("simd", attrs, {tensor<int64_t>({8, 1}, wide), tensor<int64_t>({1, 8}, wide)});
    check_taken_by("simd", attrs, {tensor<int32_t>({5, 1}, narrow), tensor<int32_t>({1, 5}, narrow)});
  }
}

// Conditions, any byte that is not zero among them.
Tensor conditions(const Shape& dims) {
  Tensor t = noise<uint8_t>(dims, 0, 4, 5);
  for (std::byte& b : t.bytes) b = b == std::byte{3} ? std::byte{0} : b == std::byte{2} ? std::byte{0x80} : b;
  t.dtype = DType::kBool;
  return t;
}

template <class T>
void check_where() {
  SCOPED_TRACE(dtype_name(dtype_of<T>()));
  for (const Shapes& s : kShapes) {
    SCOPED_TRACE(testing::PrintToString(s.a) + ", " + testing::PrintToString(s.b) + ", " +
                 testing::PrintToString(s.c));
    check_taken_by("simd", WhereAttrs{},
                   {conditions(s.a), noise<T>(s.b, 0, 100, 1), noise<T>(s.c, 0, 100, 2)});
    check_taken_by("simd", WhereAttrs{},
                   {conditions(s.b), noise<T>(s.c, 0, 100, 1), noise<T>(s.a, 0, 100, 2)});
    check_taken_by("simd", WhereAttrs{},
                   {conditions(s.c), noise<T>(s.a, 0, 100, 1), noise<T>(s.b, 0, 100, 2)});
  }
  for (int64_t n = 0; n < 140; ++n)
    check_taken_by("simd", WhereAttrs{},
                   {conditions({n}), noise<T>({n}, 0, 100, 1), noise<T>({n}, 0, 100, 2)});
}

TEST(Where, Broadcasts) {
  check_where<uint8_t>();
  check_where<int16_t>();
  check_where<float>();
  check_where<int64_t>();
}

TEST(Where, KeepsTheBitsOfNan) {
  const Tensor odd = bits_tensor<uint32_t>(DType::kFloat32, {3}, {0x7f800001, 0xffc12345, 0x80000000});
  check_taken_by("simd", WhereAttrs{}, {conditions({3}), odd, tensor<float>({}, {1})});
  check_taken_by("simd", WhereAttrs{}, {tensor<bool>({}, {true}), odd, tensor<float>({}, {1})});
}

}  // namespace
}  // namespace sinter::test
