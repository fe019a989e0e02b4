#include "converter/quantize/weights/weight_coding.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace sinter::convert {
namespace {

constexpr double kFair = 40;          // dB of weights in 8 bits; below, blocks are tried
constexpr double kWorthBlocks = 6;    // dB that they must gain then
constexpr double kWorthZeros = 0.75;  // dB that zero points must gain: what their bits are worth
constexpr double kLeastNarrow = 15;   // dB; weights with less in 4 to 6 bits get 8,
constexpr double kLeast3 = 9;         // and those with less in 3 bits

}  // namespace

std::string describe(const Coded& coded) {
  const Scheme& s = coded.scheme;
  return fmt::format("{} bits, {}{}, {:.1f} dB{}", s.bits,
                     s.block > 0 ? fmt::format("{} to a scale", s.block) : "a scale a row",
                     s.zeros ? " and zero point" : "", coded.codes.db(), coded.note);
}

Coded WeightCoder::code_in(int bits, Weights rows, const BlockShape& shape, const Choices& choices) {
  const auto is_alike = [&](const Kept& k) {
    return k.codes.shape.rows == shape.rows && k.codes.shape.columns == shape.columns;
  };
  std::optional<format::Digest> digest;
  if (choices.kept || std::any_of(kept_.begin(), kept_.end(), is_alike))
    digest = format::digest_of(std::as_bytes(rows));
  const auto coded = [&](const Scheme& s) {
    for (const Kept& k : kept_)
      if (digest && is_alike(k) && k.scheme == s && k.digest == *digest) return k.codes;
    BlockShape in_blocks = shape;
    in_blocks.block = s.block_of(shape.columns);
    BlockCodes codes = code_blocks(rows, in_blocks, s.bits, s.zeros);
    if (choices.kept) kept_.push_back({*digest, s, codes});
    return codes;
  };
  Coded best;
  // Planes of bits have no sign.
  const WeightFormat plain = weight_format(bits, CodeKind::kUnsigned);
  const bool planes = plain.in_planes();
  if (bits < 8 && shape.columns % plain.unit() == 0 && shape.columns >= block_ / 2 &&
      (!planes || block_ % 8 == 0)) {
    best.scheme = {bits, block_, planes};
    best.codes = coded(best.scheme);
    if (choices.zeros && !planes) {
      const Scheme with{bits, block_, true};
      if (BlockCodes other = coded(with); other.db() > best.codes.db() + kWorthZeros)
        best.scheme = with, best.codes = std::move(other);
    }
    if (best.codes.db() >= (bits == 3 ? kLeast3 : kLeastNarrow)) return best;
    best.note = fmt::format(": {} bits give only {:.1f} dB", bits, best.codes.db());
  } else if (bits_ < 8) {
    best.note = bits == 8 ? ": not a product of rows" : ": rows of odd length";
    if (planes) best.note = ": rows or blocks that are not multiples of 8";
  }
  best.scheme = {8, 0, false};
  best.codes = coded(best.scheme);
  if (!choices.blocks || best.codes.db() >= kFair) return best;
  const Scheme in_blocks{8, block_, false};
  if (BlockCodes other = coded(in_blocks); other.db() >= best.codes.db() + kWorthBlocks)
    best.scheme = in_blocks, best.codes = std::move(other);
  return best;
}

}  // namespace sinter::convert
