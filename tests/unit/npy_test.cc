// Arrays in .npy form, from good ones to broken ones.
#include "converter/import/read/npy.h"

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

std::string refusal(const Bytes& bytes) {
  try {
    parse_npy(bytes, "t");
  } catch (const DataError& e) {
    return e.what();
  }
  return "";
}

TEST(Npy, HeadersThatNumPyWritesAreRead) {
  for (const char* header : {"{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2), }          \n",
                             "{\"shape\":(1,2),\"fortran_order\":False,\"descr\":\"<i2\"}",
                             "{'descr': '<i2', 'fortran_order': False, 'shape': (1L, 2L)}\n"})
    EXPECT_EQ(parse_npy(with_header(header, "abcd"), "t")->dims(), (Dims{1, 2})) << header;
  for (const char version : {'\1', '\2', '\3'}) {
    std::string text = "\x93NUMPY";
    text += version, text += '\0';
    const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n";
    text += static_cast<char>(header.size()), text += '\0';
    if (version > 1) text += std::string(2, '\0');
    text += header + "abc";
    const auto* p = reinterpret_cast<const std::byte*>(text.data());
    EXPECT_EQ(parse_npy(Bytes(p, p + text.size()), "t")->dims(), (Dims{3}));
    for (const auto& [at, other] : {std::pair(6u, 0), {6u, 4}, {6u, 9}, {7u, 1}}) {
      std::string foreign = text;
      foreign[at] = static_cast<char>(other);
      const auto* f = reinterpret_cast<const std::byte*>(foreign.data());
      EXPECT_NE(refusal(Bytes(f, f + foreign.size())).find("of version"), std::string::npos) << at << other;
    }
  }
}

// Two readers of such a file could see two arrays.
TEST(Npy, AmbiguousHeadersAreRefused) {
  const auto refused = [](const char* header, const char* word) {
    const std::string text = refusal(with_header(header, "abcd"));
    EXPECT_NE(text.find(word), std::string::npos) << header << ": " << text;
  };
  refused("{'descr': '<i2', 'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", "'descr' twice");
  refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), 'shape': (1,)}", "'shape' twice");
  refused("{'descr': '<i2', 'fortran_order': False, 'fortran_order': True, 'shape': (2,)}", "twice");
  refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), 'order': 1}", "'order', which is unknown");
  refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), } more", "goes on");
  refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2), }", "not a tuple");
  refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2,, ), }", "not a tuple");
  refused("{'descr': '<i2', 'fortran_order': False, 'shape': 2, }", "'(' is missing");
  refused("{'descr': '<i2', 'fortran_order': 0, 'shape': (2,), }", "neither True nor False");
  refused("{'descr': '<i2', 'fortran_order': False }", "no 'shape'");
  refused("{'descr': '<i2', 'shape': (2,), }", "no 'fortran_order'");
  refused("{'fortran_order': False, 'shape': (2,), }", "no 'descr'");
  refused("{'a': {'descr': '<i2'}, 'fortran_order': False, 'shape': (2,), }", "unknown");
  refused("{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (2,), }", "not supported");
  refused("{'descr': '<i2', 'fortran_order': False, 'shape': (2,", "is damaged");
  refused("'descr': '<i2', 'fortran_order': False, 'shape': (2,)", "is damaged");
  refused("{'descr': '<i2\x1b[31m', 'fortran_order': False, 'shape': (2,)}", "\\x1b[31m");
}

TEST(Npy, NothingIsBehindTheData) {
  const Bytes whole = make_npy(*Constant::int64s(std::vector<int64_t>{1, 2, 3}));
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_NE(refusal(longer).find("longer than its header states, by 1 bytes"), std::string::npos);
  longer.insert(longer.end(), whole.begin(), whole.end());
  EXPECT_NE(refusal(longer).find("longer"), std::string::npos);
}

}  // namespace
}  // namespace sinter::convert
