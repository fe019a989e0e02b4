// Packed forms of weights of few bits.
#include <cstring>

#include "platforms/cuda/operators/low_bit.h"
#include "runtime/core/bit_rows.h"

namespace sinter::cuda {
namespace {

const TensorView& weights_of(const OpCall& call) { return call.in(low_bit_places(call.op).weights); }
int64_t depth_of(const OpCall& call) { return call.in(0).dims[call.in(0).rank - 1]; }

// Rows of weights of 4 or 8 bits that begin at multiples of 16 bytes.
void pack_row(const TensorView& w, int64_t n, int64_t depth, std::byte* row) {
  if (bit_width(w.dtype) == 8) {
    if (depth > 0) std::memcpy(row, w.data + n * depth, static_cast<size_t>(depth));
    return;
  }
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t from = n * depth + k;
    const std::byte number = w.data[from / 2] >> (from % 2 * 4) & std::byte{15};
    row[k / 2] |= number << (k % 2 * 4);
  }
}

// Number k of a row in planes (kernels/low_bit/low_bit.h), which is zeros so far.
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

// A row of weights of another width. The highest bit of signed ones is flipped, so that all are unsigned.
void pack_planes(const TensorView& w, int bits, int64_t n, int64_t depth, std::byte* row) {
  const uint32_t flip = w.dtype == DType::kInt2 ? 2 : 0;
  for (int64_t k = 0; k < depth; ++k) {
    uint32_t number;
    if (is_sub_byte(w.dtype)) {
      const int64_t from = n * depth + k;
      number = static_cast<uint32_t>(w.data[from / 4]) >> (from % 4 * 2) & 3;
    } else {
      const auto* stored = reinterpret_cast<const uint8_t*>(w.data) + n * w.dims[w.rank - 1];
      number = bit_row_item(stored, bits, depth, k);
    }
    put_number(row, bits, k, number ^ flip);
  }
}

}  // namespace

LowBitPlaces low_bit_places(Op op) {
  return op == Op::kExpertFullyConnected ? LowBitPlaces{2, 3, 4, 5, 6} : LowBitPlaces{1, 2, 3, 4, 5};
}

int low_bit_width(const OpCall& call) {
  const int64_t bits = call.op == Op::kExpertFullyConnected ? call.attrs<ExpertFullyConnectedAttrs>().bits
                                                            : call.attrs<LowBitFullyConnectedAttrs>().bits;
  return bits != 0 ? static_cast<int>(bits) : bit_width(weights_of(call).dtype);
}

int64_t low_bit_pitch(const OpCall& call) {
  const int bits = low_bit_width(call);
  const int64_t depth = depth_of(call);
  if (low_bit_in_planes(bits)) return (depth + 31) / 32 * (4 * bits);
  return ((depth * bits + 7) / 8 + 15) / 16 * 16;
}

void pack_low_bit(const OpCall& call, std::span<std::byte> to) {
  const TensorView& w = weights_of(call);
  const int bits = low_bit_width(call);
  const int64_t depth = depth_of(call), pitch = low_bit_pitch(call);
  std::memset(to.data(), 0, to.size());
  const auto rows = static_cast<int64_t>(to.size()) / pitch;
  for (int64_t n = 0; n < rows; ++n) {
    std::byte* row = to.data() + n * pitch;
    low_bit_in_planes(bits) ? pack_planes(w, bits, n, depth, row) : pack_row(w, n, depth, row);
  }
}

}  // namespace sinter::cuda
