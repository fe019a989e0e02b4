// The meaning of an integer tensor: the number (q - zero_point) * scale.
#pragma once

#include <optional>

#include "converter/ir/graph.h"

namespace sinter::convert {

struct QuantParams {
  DType type = DType::kNone;  // the type of q
  double scale = 1;           // a float32 number
  int64_t zero_point = 0;
  bool operator==(const QuantParams&) const = default;

  // Returns the q of a number, rounded half to even and saturated.
  int64_t quantize(double x) const;
};

// The smallest and largest q of a type; int4 to int16, signed or not.
struct QuantRange {
  int64_t min = 0, max = 0;
};
QuantRange quant_range(DType type);

inline bool is_byte(DType type) { return type == DType::kInt8 || type == DType::kUint8; }
// The difference between a uint8 number and the int8 number in its place.
inline constexpr int64_t kToUnsigned = 128;

// Returns int16 parameters that cover int8 ones, with 128 steps for one of theirs and no zero point.
QuantParams finer(const QuantParams& p);

// Returns the parameters of a Quantize or Dequantize of float32 with one scale and at most one zero point.
std::optional<QuantParams> quant_params(const Graph& graph, const Node& node);

}  // namespace sinter::convert
