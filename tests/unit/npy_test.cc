// Arrays in .npy form, from good ones to broken ones.
#include "converter/import/npy.h"

#include <gtest/gtest.h>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

Bytes with_header(const std::string& header, const std::string& data) {
  std::string text = "\x93NUMPY";
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  text += header + data;
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(p, p + text.size());
}

TEST(Npy, WritesWhatItReads) {
  const std::vector<float> items{1, -2, 3.5f, 0, 5, 6};
  const ConstantPtr array = Constant::of<float>(DType::kFloat32, {2, 3}, items);
  const ConstantPtr again = parse_npy(make_npy(*array), "test");
  EXPECT_EQ(again->dtype(), DType::kFloat32);
  EXPECT_EQ(again->dims(), (Dims{2, 3}));
  EXPECT_EQ(again->as_doubles(), array->as_doubles());
}

TEST(Npy, ScalarsAndEmptyArraysKeepTheirShape) {
  EXPECT_EQ(parse_npy(make_npy(*Constant::scalar(DType::kInt64, 7)), "t")->dims(), Dims{});
  EXPECT_EQ(parse_npy(make_npy(*Constant::owned(DType::kUint8, {0, 4}, {})), "t")->dims(), (Dims{0, 4}));
}

TEST(Npy, ColumnMajorArraysAreReordered) {
  // NumPy's asfortranarray([[1, 2, 3], [4, 5, 6]], uint8)
  const Bytes bytes =
      with_header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", "\x01\x04\x02\x05\x03\x06");
  EXPECT_EQ(parse_npy(bytes, "t")->as_int64s(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, BrokenFilesAreRefused) {
  const Bytes good = make_npy(*Constant::int64s(std::vector<int64_t>{1, 2, 3}));
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_THROW(parse_npy(std::span(good).first(n), "t"), DataError) << n;
  EXPECT_THROW(
      parse_npy(with_header("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd"), "t"),
      DataError);
  EXPECT_THROW(
      parse_npy(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "abcd"), "t"),
      DataError);
  EXPECT_THROW(
      parse_npy(
          with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 8), }", ""),
          "t"),
      DataError);
}

}  // namespace
}  // namespace sinter::convert
