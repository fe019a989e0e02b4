// A weight as rows that scales belong to, and back.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "converter/ir/constant.h"
#include "converter/quantize/weights/block_codes.h"

namespace sinter::convert {

using Weights = std::span<const float>;

// Rows run along `axis`, or, if it is a channel, are what belongs to one of its indices.
struct RowAxis {
  int64_t axis = 0;
  bool channel = false;
  auto operator<=>(const RowAxis&) const = default;
};

// As rows [rows, columns], and back to the constant's order: [outer, middle, inner].
class Arrangement {
 public:
  Arrangement(const Dims& dims, const RowAxis& by) : channel_(by.channel) {
    middle_ = static_cast<size_t>(dims[static_cast<size_t>(by.axis)]);
    for (size_t i = 0; i < dims.size(); ++i)
      if (static_cast<int64_t>(i) != by.axis)
        (static_cast<int64_t>(i) < by.axis ? outer_ : inner_) *= static_cast<size_t>(dims[i]);
    const auto others = static_cast<int64_t>(outer_ * inner_), length = static_cast<int64_t>(middle_);
    shape.rows = by.channel ? length : others;
    shape.columns = by.channel ? others : length;
  }
  std::vector<float> rows(Weights lying) const {
    std::vector<float> result(lying.size());
    for_each([&](size_t lies, size_t row) { result[row] = lying[lies]; });
    return result;
  }
  std::vector<int8_t> lying(const std::vector<int8_t>& rows) const {
    std::vector<int8_t> result(rows.size());
    for_each([&](size_t lies, size_t row) { result[lies] = rows[row]; });
    return result;
  }
  BlockShape shape;

 private:
  // Calls use(place in the constant, place in the rows), in tiles that fit a cache.
  template <class Use>
  void for_each(const Use& use) const {
    constexpr size_t kTile = 32;
    for (size_t o = 0; o < outer_; ++o)
      for (size_t m0 = 0; m0 < middle_; m0 += kTile)
        for (size_t n0 = 0; n0 < inner_; n0 += kTile)
          for (size_t m = m0; m < std::min(middle_, m0 + kTile); ++m)
            for (size_t n = n0; n < std::min(inner_, n0 + kTile); ++n)
              use((o * middle_ + m) * inner_ + n,
                  channel_ ? (m * outer_ + o) * inner_ + n : (o * inner_ + n) * middle_ + m);
  }
  bool channel_;
  size_t outer_ = 1, middle_ = 1, inner_ = 1;
};

// The float32 numbers of a constant while they are read.
class LoadedFloats {
 public:
  explicit LoadedFloats(const Constant& c) : loaded_(c.load()) {
    const size_t count = loaded_.bytes.size() / sizeof(float);
    if (reinterpret_cast<uintptr_t>(loaded_.bytes.data()) % alignof(float) == 0) {
      items_ = {reinterpret_cast<const float*>(loaded_.bytes.data()), count};
      return;
    }
    copy_.resize(count);  // inside a model file
    if (count > 0) std::memcpy(copy_.data(), loaded_.bytes.data(), loaded_.bytes.size());
    items_ = copy_;
  }
  LoadedFloats(const LoadedFloats&) = delete;
  LoadedFloats& operator=(const LoadedFloats&) = delete;
  Weights items() const { return items_; }

 private:
  LoadedBytes loaded_;
  std::vector<float> copy_;
  Weights items_;
};

}  // namespace sinter::convert
