#include "converter/import/npy.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "converter/diagnostics/errors.h"
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

// The text behind 'key': in the header's dictionary.
std::string_view field(std::string_view header, std::string_view key, const std::string& what) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos)
    throw DataError(fmt::format("{}: its .npy header has no '{}'", what, key));
  std::string_view rest = header.substr(at + key.size() + 3);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

Dims parse_shape(std::string_view text, const std::string& what) {
  Dims dims;
  if (text.empty() || text.front() != '(') throw DataError(what + ": its .npy header has no shape");
  text.remove_prefix(1);
  while (true) {
    while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
    if (text.empty()) throw DataError(what + ": its .npy header has no shape");
    if (text.front() == ')') return dims;
    int64_t n = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (fault != std::errc() || n < 0) throw DataError(what + ": its .npy header has no shape");
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    dims.push_back(n);
  }
}

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
  std::string_view descr = field(header, "descr", what);
  if (descr.size() > 1 && descr.front() == '\'') {
    descr = descr.substr(1, descr.find('\'', 1) - 1);
    for (const TypeCode& t : kTypes)
      if (t.descr == descr) h.dtype = t.dtype;
  }
  if (h.dtype == DType::kNone)
    throw DataError(fmt::format("{}: arrays of type {} are not supported; store numbers or truth values",
                                what, descr.substr(0, 20)));
  h.dims = parse_shape(field(header, "shape", what), what);
  h.column_major = field(header, "fortran_order", what).substr(0, 4) == "True" && h.dims.size() > 1;
  int64_t need = 0;
  if (!plausible_dims(h.dtype, h.dims) || !checked_bytes(h.dtype, h.dims, &need))
    throw DataError(what + ": its shape is too large");
  h.data_bytes = static_cast<size_t>(need);
  return h;
}

ConstantPtr parse_npy(std::span<const std::byte> bytes, const std::string& what) {
  const NpyHeader h = parse_npy_header(bytes, what);
  const std::span<const std::byte> data = bytes.subspan(h.header_bytes);
  if (data.size() < h.data_bytes)
    throw DataError(fmt::format("{} is truncated: {} bytes of {}", what, data.size(), h.data_bytes));
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
