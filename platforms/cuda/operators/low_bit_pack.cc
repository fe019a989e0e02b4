// Packed forms of weights of few bits.
#include <cstring>

#include "platforms/cuda/operators/low_bit.h"

namespace sinter::cuda {
namespace {

// Writes number k of a row in planes (kernels/low_bit/low_bit.h), which is zeros so far.
void put_number(std::byte* row, int bits, int64_t k, uint32_t number) {
  const int64_t segment = k / 32 * bits;
  const auto i = static_cast<int>(k % 32);
  const auto put = [&](int word, int shift, uint32_t part) {
    uint32_t v;
    std::byte* at = row + (segment + word) * 4;
    std::memcpy(&v, at, 4);
    v |= part << shift;
    std::memcpy(at, &v, 4);
  };
  if (bits >= 5) put(i / 8, i % 8 * 4, number & 15);
  if (low_bit_has_twos(bits)) {
    const int first = low_bit_twos(bits);
    put(first + i / 16, i % 16 * 2, number >> first & 3);
  }
  if (low_bit_has_ones(bits)) put(low_bit_ones(bits), i, number >> (bits - 1) & 1);
}

}  // namespace

int64_t low_bit_pitch(const LowBitMatrix& m) {
  const int bits = m.format.bits;
  if (low_bit_in_planes(bits)) return (m.depth + 31) / 32 * (4 * bits);
  return ((m.depth * bits + 7) / 8 + 15) / 16 * 16;
}

// Rows of 4 or 8 bits begin at multiples of 16 bytes. In planes, the highest bit of signed numbers is
// flipped, so that all are unsigned.
void pack_low_bit(const OpCall& call, std::span<std::byte> to) {
  const LowBitMatrix m = low_bit_matrix(call);
  const int bits = m.format.bits;
  const int64_t pitch = low_bit_pitch(m);
  std::memset(to.data(), 0, to.size());
  const auto rows = static_cast<int64_t>(to.size()) / pitch;
  for (int64_t n = 0; n < rows; ++n) {
    std::byte* row = to.data() + n * pitch;
    for (int64_t k = 0; k < m.depth; ++k) {
      const unsigned code = weight_code(m.format, m.weights, m.depth, n, k);
      if (low_bit_in_planes(bits))
        put_number(row, bits, k, code ^ m.format.sign_bit());
      else
        row[k * bits / 8] |= static_cast<std::byte>(code << (k * bits % 8));
    }
  }
}

}  // namespace sinter::cuda
