// Weights are coded in the bits that were asked for, or in 8 where fewer are not possible or not good enough.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "converter/quantize/weights/block_codes.h"
#include "converter/quantize/weights/weight_rows.h"
#include "runtime/core/weight_format.h"
#include "runtime/model/format.h"

namespace sinter::convert {

// The coding of a constant.
struct Scheme {
  int bits = 8;
  int64_t block = 0;  // 0: one scale a row
  bool zeros = false;
  auto operator<=>(const Scheme&) const = default;
  // Returns the number of weights of a row of `columns` that share a scale.
  int64_t block_of(int64_t columns) const { return block > 0 ? std::min(block, columns) : columns; }
  WeightFormat format() const { return weight_format(bits, zeros ? CodeKind::kUnsigned : CodeKind::kSigned); }
};

struct Coded {
  Scheme scheme;
  BlockCodes codes;
  std::string note;  // why it is not as requested
};

// Returns "4 bits, 32 to a scale, 21.3 dB", and the note.
std::string describe(const Coded& coded);

class WeightCoder {
 public:
  // `bits`: as requested, 3 to 6 or 8. `block`: weights that share a scale, where it is not one for a row.
  WeightCoder(int bits, int64_t block) : bits_(bits), block_(block) {}

  struct Choices {
    bool blocks = false;  // 8 bits may be in blocks
    bool zeros = false;   // 4 to 6 bits may have zero points
    bool kept = false;    // the codes are kept for equal weights that come later
  };
  // Codes weights for readers of an integer type; `narrow`: it may have 4 bits.
  Coded code(Weights rows, const BlockShape& shape, bool narrow, const Choices& choices) {
    return code_in(narrow && bits_ <= 4 ? 4 : 8, rows, shape, choices);
  }
  // Codes weights in `bits` below 8 if that is possible and good enough; else in 8 bits with one scale a row,
  // or in blocks where that is much better.
  Coded code_in(int bits, Weights rows, const BlockShape& shape, const Choices& choices);

 private:
  // The codes of a table, which is often the weight of the last product, too.
  struct Kept {
    format::Digest digest;  // of the weights
    Scheme scheme;
    BlockCodes codes;
  };

  int bits_;
  int64_t block_;
  std::vector<Kept> kept_;
};

}  // namespace sinter::convert
