// The meaning of an integer tensor: the number (q - zero_point) * scale.
#pragma once

#include <optional>

#include "converter/ir/graph.h"

namespace sinter::convert {

struct QuantParams {
  DType type = DType::kNone;  // of q
  double scale = 1;           // a float32 number
  int64_t zero_point = 0;
  bool operator==(const QuantParams&) const = default;

  // The q of a number: rounded half to even, saturated.
  int64_t quantize(double x) const;
};

// Smallest and largest q of a type; int4 to int16, signed or not.
struct QuantRange {
  int64_t min = 0, max = 0;
};
QuantRange quant_range(DType type);

inline bool is_byte(DType type) { return type == DType::kInt8 || type == DType::kUint8; }
// What is added to an int8 number for the uint8 number that it stands for.
inline constexpr int64_t kToUnsigned = 128;

// int16 parameters that cover int8 ones: 128 steps for one of theirs, no zero point.
QuantParams finer(const QuantParams& p);

// Of a Quantize or Dequantize with one constant scale and at most one zero point, to or from float32.
std::optional<QuantParams> quant_params(const Graph& graph, const Node& node);

}  // namespace sinter::convert
