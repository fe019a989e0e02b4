// The .npy format (NumPy's NEP 1): one array with a text header.
#pragma once

#include <span>
#include <string>

#include "converter/ir/constant.h"

namespace sinter::convert {

// `what` names the source in errors. Versions 1 to 3, little-endian, either order, and nothing behind the
// data. Throws DataError.
ConstantPtr parse_npy(std::span<const std::byte> bytes, const std::string& what);
Bytes make_npy(const Constant& array);

// The header before the data.
struct NpyHeader {
  DType dtype = DType::kNone;
  Dims dims;
  bool column_major = false;  // and that makes a difference
  size_t header_bytes = 0;    // the data begin here
  size_t data_bytes = 0;
};
// Bytes that have to be read to learn how long the header is.
inline constexpr size_t kNpyPrefix = 12;
// `bytes` holds at least the prefix. Throws DataError where it is not a .npy array.
size_t npy_header_bytes(std::span<const std::byte> bytes, const std::string& what);
// `bytes` holds the whole header.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& what);
// Throws DataError where a file of so many bytes does not end where the array does.
void check_npy_length(const NpyHeader& header, uint64_t bytes, const std::string& what);
// The array of these data (header.data_bytes of them), in row-major order.
ConstantPtr npy_in_rows(const NpyHeader& header, std::span<const std::byte> data);

}  // namespace sinter::convert
