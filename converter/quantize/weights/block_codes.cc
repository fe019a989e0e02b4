// Candidates are the scales that span the block, shrunk and stretched; each is refitted to the integers that
// it gives (the least-squares scale for them), and rounded to the type that it is stored in before it is
// judged: the integers make up for that rounding. Blocks of one length are searched several at a time.
#include "converter/quantize/weights/block_codes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "converter/ir/builder.h"
#include "converter/ir/large_bytes.h"
#include "converter/quantize/cpu_tier.h"
#include "runtime/core/bit_rows.h"

namespace sinter::convert {
namespace {

constexpr size_t kCodeLanes = 8;       // blocks that are searched together
constexpr float kWhole = 0x1.8p23f;    // adding it leaves no place for a fraction
constexpr size_t kExactSquares = 512;  // numbers up to 127 whose squares add up to less than 2^24

#define SINTER_LOOPS "converter/quantize/weights/codes-inl.h"
#include "converter/quantize/every_tier-inl.h"

struct CodeLoops {
  decltype(&portable::sum_errors) sum_errors = SINTER_BEST_LOOP(sum_errors);
  decltype(&portable::write_codes) write_codes = SINTER_BEST_LOOP(write_codes);
  decltype(&portable::find_ends) find_ends = SINTER_BEST_LOOP(find_ends);
};
const CodeLoops& code_loops() {
  static const CodeLoops best;
  return best;
}

float to_bfloat16(double v) {
  const auto f = static_cast<float>(v);
  const auto bits = std::bit_cast<uint32_t>(f);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

template <class T>
using Lanes = std::array<T, kCodeLanes>;

constexpr std::array kShrinks4 = {0.70, 0.76, 0.82, 0.87, 0.91, 0.95, 1.0, 1.06, 1.12};
constexpr std::array kShrinks8 = {0.85, 0.90, 0.94, 0.97, 1.0};

// Up to kCodeLanes blocks of the same length.
class BlockGroup {
 public:
  struct Coding {
    int bits;
    bool zero_points, half_scale;
    // 2^(bits - 1), and the largest integer with zero points.
    int half() const { return 1 << (bits - 1); }
    int most() const { return 2 * half() - 1; }
    float low() const { return static_cast<float>(bits == 8 ? -127 : zero_points ? 0 : -half()); }
    float high() const { return static_cast<float>(zero_points ? most() : half() - 1); }
  };
  explicit BlockGroup(const Coding& coding) : coding_(coding) {}

  // Blocks at `first`, each `length` long.
  void load(const float* weights, std::span<const size_t> first, size_t length) {
    length_ = length;
    items_.assign(length * kCodeLanes, 0);
    for (size_t lane = 0; lane < first.size(); ++lane)
      for (size_t i = 0; i < length; ++i) items_[i * kCodeLanes + lane] = weights[first[lane] + i];
  }
  // Chooses their scales and zero points.
  void search() {
    const size_t length = length_;
    wide_.assign(items_.begin(), items_.end());
    // The choice for zeros, and for numbers that are too small to count.
    scale_.fill(1), zero_.fill(0), error_.fill(HUGE_VAL);
    Lanes<float> lows, highs;
    code_loops().find_ends(items_.data(), length, lows.data(), highs.data());
    for (size_t lane = 0; lane < kCodeLanes; ++lane) {
      least_[lane] = static_cast<double>(lows[lane]), most_[lane] = static_cast<double>(highs[lane]);
      present_[lane] = least_[lane] < 0 || most_[lane] > 0;
    }
    if (coding_.bits == 8)
      search_8();
    else if (coding_.zero_points)
      search_zero_points();
    else
      search_signed();
  }

  // Errors with what was chosen.
  Lanes<double> errors() const {
    Lanes<double> errors, wq, qq;
    code_loops().sum_errors(items_.data(), wide_.data(), length_, scale_.data(), zero_.data(), coding_.low(),
                            coding_.high(), errors.data(), wq.data(), qq.data());
    return errors;
  }
  // Sets a choice that was made before.
  void set(size_t lane, float scale, uint8_t zero) { scale_[lane] = scale, zero_[lane] = zero; }
  // Integers [length][kCodeLanes].
  void code(std::vector<int32_t>* codes) const {
    codes->resize(length_ * kCodeLanes);
    code_loops().write_codes(items_.data(), length_, scale_.data(), zero_.data(), coding_.low(),
                             coding_.high(), codes->data());
  }
  float scale(size_t lane) const { return scale_[lane]; }
  uint8_t zero(size_t lane) const { return static_cast<uint8_t>(zero_[lane]); }

 private:
  void search_8() {
    for (const double f : kShrinks8) {
      Lanes<double> scale;
      for (size_t l = 0; l < kCodeLanes; ++l) scale[l] = f * std::max(most_[l], -least_[l]) / 127;
      consider(scale, {}, present_);
    }
  }
  // The larger side gets the steps of the negative one, which has one more.
  void search_signed() {
    const int half = coding_.half();
    for (const double f : kShrinks4)
      for (const int steps : {-half, half - 1}) {
        Lanes<double> scale;
        for (size_t l = 0; l < kCodeLanes; ++l) {
          const double extreme = most_[l] > -least_[l] ? most_[l] : least_[l];
          scale[l] = extreme / steps * f;
        }
        consider(scale, {}, present_);
      }
  }
  void search_zero_points() {
    const int most = coding_.most();
    for (const double f : kShrinks4) {
      Lanes<double> step;
      Lanes<int> middle;
      for (size_t l = 0; l < kCodeLanes; ++l) {
        step[l] = (most_[l] - least_[l]) / most * f;
        middle[l] = present_[l] ? static_cast<int>(std::clamp(std::nearbyint(-least_[l] * f / step[l]), 0.0,
                                                              static_cast<double>(most)))
                                : 0;
      }
      for (const int beside : {-1, 0, 1}) {
        Lanes<float> zero;
        Lanes<bool> valid;
        for (size_t l = 0; l < kCodeLanes; ++l) {
          const int z = middle[l] + beside;
          zero[l] = static_cast<float>(z), valid[l] = present_[l] && z >= 0 && z <= most;
        }
        consider(step, zero, valid);
      }
    }
  }

  // Judges a scale for each block, and the one that suits its integers best.
  void consider(Lanes<double> scale, const Lanes<float>& zero, Lanes<bool> valid) {
    for (int round = 0; round < 2; ++round) {
      Lanes<float> s;
      bool any = false;
      for (size_t l = 0; l < kCodeLanes; ++l) {
        s[l] = !valid[l] ? 1 : coding_.half_scale ? to_bfloat16(scale[l]) : static_cast<float>(scale[l]);
        if (!std::isnormal(s[l])) valid[l] = false, s[l] = 1;
        any |= valid[l];
      }
      if (!any) return;
      Lanes<double> error, wq, qq;
      code_loops().sum_errors(items_.data(), wide_.data(), length_, s.data(), zero.data(), coding_.low(),
                              coding_.high(), error.data(), wq.data(), qq.data());
      for (size_t l = 0; l < kCodeLanes; ++l) {
        if (!valid[l]) continue;
        if (error[l] < error_[l]) error_[l] = error[l], scale_[l] = s[l], zero_[l] = zero[l];
        valid[l] = qq[l] != 0;
        if (valid[l]) scale[l] = wq[l] / qq[l];
      }
    }
  }

  Coding coding_;
  size_t length_ = 0;
  std::vector<float> items_;  // [length][kCodeLanes]
  std::vector<double> wide_;  // the same numbers
  Lanes<double> least_{}, most_{};
  Lanes<bool> present_{};  // not all zeros
  Lanes<float> scale_{}, zero_{};
  Lanes<double> error_{};
};

}  // namespace

double BlockCodes::db() const {
  return noise == 0 ? 999 : signal == 0 ? -999 : 10 * std::log10(signal / noise);
}

namespace {

BlockGroup::Coding coding_of(const BlockShape& shape, int bits, bool zero_points) {
  return {bits, zero_points, bits < 8 || shape.blocks() > 1};
}

// Loads the blocks of some rows, up to kCodeLanes of one length at a time: use(number of the first, where
// they begin, their length).
template <class Use>
void for_groups(std::span<const float> w, const BlockShape& shape, int64_t first_row, int64_t rows,
                BlockGroup& group, const Use& use) {
  const auto blocks = static_cast<size_t>(shape.blocks()), columns = static_cast<size_t>(shape.columns),
             block = static_cast<size_t>(shape.block), end = static_cast<size_t>(first_row + rows) * blocks;
  const auto length_of = [&](size_t at) { return std::min(block, columns - at % blocks * block); };
  for (size_t at = static_cast<size_t>(first_row) * blocks; at < end;) {
    const size_t length = length_of(at), from = at;
    Lanes<size_t> first;
    size_t lanes = 0;
    for (; lanes < kCodeLanes && at < end && length_of(at) == length; ++lanes, ++at)
      first[lanes] = at / blocks * columns + at % blocks * block;
    group.load(w.data(), std::span(first).first(lanes), length);
    use(from, std::span<const size_t>(first).first(lanes), length);
  }
}

}  // namespace

BlockCodes code_blocks(std::span<const float> w, const BlockShape& shape, int bits, bool zero_points) {
  if (bits < 2 || bits > 8 || (bits == 8 && zero_points) || shape.block < 1 ||
      w.size() != static_cast<size_t>(shape.rows * shape.columns))
    throw std::logic_error("weights cannot be coded so");
  BlockCodes codes;
  codes.shape = shape, codes.bits = bits;
  const auto count = static_cast<size_t>(shape.rows * shape.blocks());
  codes.scales.resize(count);
  if (zero_points) codes.zeros.resize(count);
  for (const float f : w) codes.signal += static_cast<double>(f) * static_cast<double>(f);
  BlockGroup group(coding_of(shape, bits, zero_points));
  for_groups(w, shape, 0, shape.rows, group, [&](size_t from, std::span<const size_t> first, size_t) {
    group.search();
    const Lanes<double> errors = group.errors();
    for (size_t lane = 0; lane < first.size(); ++lane) {
      codes.noise += errors[lane];
      codes.scales[from + lane] = group.scale(lane);
      if (zero_points) codes.zeros[from + lane] = group.zero(lane);
    }
  });
  return codes;
}

std::vector<int8_t> BlockCodes::integers(std::span<const float> w, int64_t first_row, int64_t rows) const {
  const auto begin = static_cast<size_t>(first_row * shape.columns);
  std::vector<int8_t> result(static_cast<size_t>(rows * shape.columns));
  BlockGroup group(coding_of(shape, bits, !zeros.empty()));
  std::vector<int32_t> q;
  for_groups(w, shape, first_row, rows, group,
             [&](size_t from, std::span<const size_t> first, size_t length) {
               for (size_t lane = 0; lane < first.size(); ++lane)
                 group.set(lane, scales[from + lane], zeros.empty() ? 0 : zeros[from + lane]);
               group.code(&q);
               for (size_t lane = 0; lane < first.size(); ++lane)
                 for (size_t i = 0; i < length; ++i)
                   result[first[lane] - begin + i] = static_cast<int8_t>(q[i * kCodeLanes + lane]);
             });
  return result;
}

namespace {

// Calls use(first row, integers) for a few rows at a time.
template <class Use>
void for_integers(std::span<const float> rows, const BlockCodes& codes, const Use& use) {
  constexpr int64_t kItems = 1 << 20;
  const BlockShape& shape = codes.shape;
  const int64_t step = std::max<int64_t>(1, kItems / std::max<int64_t>(1, shape.columns));
  for (int64_t n = 0; n < shape.rows; n += step)
    use(n, codes.integers(rows, n, std::min(step, shape.rows - n)));
}

// Writes integers of 4 or 8 bits, from the item `first` on.
template <class T>
void put_integers(DType type, size_t first, const std::vector<T>& items, std::span<std::byte> bytes) {
  for (size_t i = 0; i < items.size(); ++i)
    if (is_sub_byte(type))
      bytes[(first + i) / 2] |= static_cast<std::byte>((items[i] & 15) << ((first + i) % 2 * 4));
    else
      bytes[first + i] = static_cast<std::byte>(items[i]);
}

template <class T>
ConstantPtr as_constant(DType type, const Dims& dims, const std::vector<T>& items) {
  Bytes bytes(dense_bytes(type, dims));
  put_integers(type, 0, items, bytes);
  return Constant::owned(type, dims, std::move(bytes));
}

}  // namespace

ConstantPtr scales_constant(const Dims& dims, const std::vector<float>& scales) {
  const ConstantPtr wide = Constant::of<float>(DType::kFloat32, dims, scales);
  const bool half = std::all_of(scales.begin(), scales.end(),
                                [](float s) { return (std::bit_cast<uint32_t>(s) & 0xffff) == 0; });
  if (!half) return wide;
  const ConstantPtr narrow = evaluated(CastAttrs{static_cast<int64_t>(DType::kBFloat16), 1}, {wide});
  const ConstantPtr back =
      narrow ? evaluated(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {narrow}) : nullptr;
  return back ? back : wide;
}

ConstantPtr integers(DType type, const Dims& dims, const std::vector<int8_t>& items) {
  return as_constant(type, dims, items);
}
ConstantPtr integers(DType type, const Dims& dims, const std::vector<uint8_t>& items) {
  return as_constant(type, dims, items);
}

ConstantPtr integers(WeightFormat format, Dims dims, std::span<const float> rows, const BlockCodes& codes) {
  const int64_t columns = codes.shape.columns, row = format.row_elements(columns);
  if (format.in_planes()) dims.back() = row;
  ResultBytes result(dense_bytes(format.type, dims));
  for_integers(rows, codes, [&](int64_t first, const std::vector<int8_t>& items) {
    if (!format.in_planes())
      return put_integers(format.type, static_cast<size_t>(first * columns), items, result.span());
    auto* const bytes = reinterpret_cast<uint8_t*>(result.span().data()) + first * row;
    for (size_t i = 0; i < items.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      set_bit_row_item(bytes + at / columns * row, codes.bits, columns, at % columns,
                       static_cast<uint8_t>(items[i]));
    }
  });
  return Constant::held(format.type, dims, std::move(result).hold());
}

ConstantPtr nibbles(bool high) {
  std::vector<int8_t> table;
  for (int i = 0; i < 256; ++i) table.push_back(static_cast<int8_t>((((high ? i >> 4 : i) & 15) ^ 8) - 8));
  return Constant::of<int8_t>(DType::kInt8, {256}, table);
}

}  // namespace sinter::convert
