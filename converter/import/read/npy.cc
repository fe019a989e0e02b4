#include "converter/import/read/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/ir/dims.h"
#include "runtime/core/checked.h"

namespace sinter::convert {
namespace {

struct TypeCode {
  std::string_view descr;
  DType dtype;
};
// The first row of a dtype is how it is written.
constexpr TypeCode kTypes[] = {
    {"<f4", DType::kFloat32}, {"<f8", DType::kFloat64}, {"<f2", DType::kFloat16}, {"|i1", DType::kInt8},
    {"|u1", DType::kUint8},   {"<i2", DType::kInt16},   {"<u2", DType::kUint16},  {"<i4", DType::kInt32},
    {"<u4", DType::kUint32},  {"<i8", DType::kInt64},   {"<u8", DType::kUint64},  {"|b1", DType::kBool},
    {"<i1", DType::kInt8},    {"<u1", DType::kUint8},   {"|?", DType::kBool},
};

constexpr std::string_view kMagic = "\x93NUMPY";

// Reads the header's dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, with each of
// these keys once and no other, as NumPy does.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& what) : rest_(text), what_(what) {}

  void parse(NpyHeader* h) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      bool& seen = key == "descr" ? descr : key == "fortran_order" ? order : shape;
      if (&seen == &shape && key != "shape") fail(fmt::format("has a key '{}', which is unknown", key));
      if (seen) fail(fmt::format("has '{}' twice", key));
      seen = true;
      if (&seen == &descr)
        h->dtype = type();
      else if (&seen == &order)
        h->column_major = truth();
      else
        h->dims = tuple();
      if (take(',')) continue;
      expect('}');
      break;
    }
    for (const auto& [there, key] : {std::pair(descr, "descr"), {order, "fortran_order"}, {shape, "shape"}})
      if (!there) fail(fmt::format("has no '{}'", key));
    skip_space();
    if (!rest_.empty()) fail("goes on behind its dictionary");
  }

 private:
  [[noreturn]] void fail(const std::string& fault) const {
    throw DataError(fmt::format("{}: its .npy header {}; write it with numpy.save", what_, printable(fault)));
  }
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("is damaged: '{}' is missing", c));
  }
  std::string_view quoted() {
    skip_space();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("is damaged: a text is missing");
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  DType type() {
    skip_space();
    const bool plain = !rest_.empty() && (rest_.front() == '\'' || rest_.front() == '"');
    const std::string_view descr = plain ? quoted() : rest_.substr(0, 20);
    for (const TypeCode& t : kTypes)
      if (plain && t.descr == descr) return t.dtype;
    throw DataError(fmt::format("{}: arrays of type {} are not supported; store numbers or truth values",
                                what_, printable(descr.substr(0, 20))));
  }
  bool truth() {
    skip_space();
    for (const auto& [word, value] : {std::pair(std::string_view("True"), true), {"False", false}})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    fail("is damaged: 'fortran_order' is neither True nor False");
  }
  Dims tuple() {
    constexpr size_t kMostDims = 32;  // NumPy's
    Dims dims;
    expect('(');
    while (!take(')')) {
      skip_space();
      int64_t n = 0;
      const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
      if (fault != std::errc() || n < 0 || dims.size() == kMostDims)
        fail("is damaged: 'shape' is not a tuple of sizes");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      take('L');  // of Python 2
      dims.push_back(n);
      if (take(',')) continue;
      expect(')');
      if (dims.size() == 1) fail("is damaged: 'shape' is not a tuple of sizes");
      break;
    }
    return dims;
  }

  std::string_view rest_;
  const std::string& what_;
};

// Column-major bytes in row-major order.
Bytes transposed(std::span<const std::byte> in, const Dims& dims, size_t width) {
  Bytes out(in.size());
  std::vector<int64_t> index(dims.size());
  const size_t count = width == 0 ? 0 : in.size() / width;
  for (size_t i = 0; i < count; ++i) {
    size_t from = 0, stride = 1;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      from += static_cast<size_t>(index[axis]) * stride;
      stride *= static_cast<size_t>(dims[axis]);
    }
    std::memcpy(out.data() + i * width, in.data() + from * width, width);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace

size_t npy_header_bytes(std::span<const std::byte> bytes, const std::string& what) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  if (bytes.size() < kNpyPrefix || std::string_view(text, 6) != kMagic)
    throw DataError(what + " is not a .npy array");
  const auto byte_at = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
  constexpr size_t kNewest = 3;
  if (byte_at(6) == 0 || byte_at(6) > kNewest || byte_at(7) != 0)
    throw DataError(
        fmt::format("{} is a .npy array of version {}.{}, but versions 1.0 to {}.0 are read; write it "
                    "with numpy.save",
                    what, byte_at(6), byte_at(7), kNewest));
  const bool long_header = byte_at(6) >= 2;
  return (long_header ? 12 : 10) +
         (byte_at(8) | byte_at(9) << 8 | (long_header ? byte_at(10) << 16 | byte_at(11) << 24 : 0));
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& what) {
  NpyHeader h;
  h.header_bytes = npy_header_bytes(bytes, what);
  if (h.header_bytes > bytes.size()) throw DataError(what + " is truncated");
  const size_t start = static_cast<uint8_t>(bytes[6]) >= 2 ? 12 : 10;
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + start, h.header_bytes - start);
  HeaderParser(header, what).parse(&h);
  h.column_major = h.column_major && h.dims.size() > 1;
  int64_t need = 0;
  if (!plausible_dims(h.dtype, h.dims) || !checked_bytes(h.dtype, h.dims, &need))
    throw DataError(what + ": its shape is too large");
  h.data_bytes = static_cast<size_t>(need);
  return h;
}

void check_npy_length(const NpyHeader& h, uint64_t bytes, const std::string& what) {
  const uint64_t whole = uint64_t{h.header_bytes} + h.data_bytes;
  if (bytes < whole) throw DataError(fmt::format("{} is truncated: {} bytes of {}", what, bytes, whole));
  if (bytes > whole)
    throw DataError(
        fmt::format("{} is longer than its header states, by {} bytes; write each array to a file of "
                    "its own",
                    what, bytes - whole));
}

ConstantPtr parse_npy(std::span<const std::byte> bytes, const std::string& what) {
  const NpyHeader h = parse_npy_header(bytes, what);
  const std::span<const std::byte> data = bytes.subspan(h.header_bytes);
  check_npy_length(h, bytes.size(), what);
  return npy_in_rows(h, data.first(h.data_bytes));
}

ConstantPtr npy_in_rows(const NpyHeader& h, std::span<const std::byte> data) {
  if (h.column_major) return Constant::owned(h.dtype, h.dims, transposed(data, h.dims, byte_width(h.dtype)));
  return Constant::owned(h.dtype, h.dims, Bytes(data.begin(), data.end()));
}

Bytes make_npy(const Constant& array) {
  DType stored = array.dtype();
  if (stored == DType::kBFloat16) stored = DType::kUint16;
  if (is_float8(stored)) stored = DType::kUint8;
  std::string_view descr;
  for (const TypeCode& t : kTypes)
    if (t.dtype == stored && descr.empty()) descr = t.descr;
  if (descr.empty())
    throw DataError(fmt::format("{} cannot be stored in a .npz file", dtype_name(array.dtype())));
  std::string shape;
  for (const int64_t d : array.dims()) shape += fmt::format("{}, ", d);
  if (array.dims().size() > 1) shape.resize(shape.size() - 2);
  if (array.dims().size() == 1) shape.resize(shape.size() - 1);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.resize(align_up(10 + header.size() + 1, 64) - 10 - 1, ' ');
  header += '\n';
  Bytes out;
  const auto put = [&](const void* data, size_t n) {
    const auto* p = static_cast<const std::byte*>(data);
    out.insert(out.end(), p, p + n);
  };
  put(kMagic.data(), kMagic.size());
  const std::array<uint8_t, 4> version{1, 0, static_cast<uint8_t>(header.size() & 255),
                                       static_cast<uint8_t>(header.size() >> 8)};
  put(version.data(), version.size());
  put(header.data(), header.size());
  const LoadedBytes loaded = array.load();
  put(loaded.bytes.data(), loaded.bytes.size());
  return out;
}

}  // namespace sinter::convert
