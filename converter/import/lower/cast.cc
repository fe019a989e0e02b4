// Changes of element type.
#include <algorithm>
#include <cmath>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/result_readers.h"
#include "converter/ir/integer_range.h"
#include "converter/types/representable.h"

namespace sinter::convert {
namespace {

// Large weights are not scanned: infinities in them are not intended.
constexpr int64_t kMostLookedAt = int64_t{1} << 22;

// Returns the number at which a type saturates; infinity: it does not.
double saturated_at(DType t) {
  switch (t) {
    case DType::kFloat8E4M3FN:
      return 448;
    case DType::kFloat8E4M3FNUZ:
      return 240;
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return 57344;
    case DType::kFloat4E2M1:
      return 6;
    default:
      return HUGE_VAL;
  }
}
constexpr double kBeyondRounding = 1.25;  // rounding to the nearest changes less

// The number as text, if the integer type does not hold its whole part (NaN has none); else empty.
std::string beyond(double v, DType type) {
  const auto range = range_of_integers(type);
  const double low = range ? static_cast<double>(range->low) : 0;  // uint64
  const double end = range ? static_cast<double>(range->high) + 1 : 0x1p64;
  return std::trunc(v) >= low && std::trunc(v) < end ? std::string() : fmt::format("{}", v);
}
std::string beyond(int64_t v, DType from, DType type) {
  const bool huge = from == DType::kUint64 && v < 0;
  const auto range = range_of_integers(type);
  const bool held = range ? !huge && range->low <= v && v <= range->high : huge || v >= 0;
  return held ? std::string() : huge ? fmt::format("{}", static_cast<uint64_t>(v)) : fmt::format("{}", v);
}

// Warns of numbers that an integer type does not hold. Integers whose bits alone are read may lose the upper
// ones.
void report_integers(NodeLowering& n, const Constant& from, const Constant& to) {
  const DType type = to.dtype();
  const bool whole = !is_float(from.dtype());
  if (whole)
    if (const auto range = integer_range(from); range && holds_range(type, *range)) return;
  if (whole && read_as_bits(n.parent().source(), n.node().outputs[0])) return;
  const std::vector<double> reals = whole ? std::vector<double>() : from.as_doubles();
  const std::vector<int64_t> integers = whole ? from.as_int64s() : std::vector<int64_t>();
  size_t count = 0, first = 0;
  std::string example;
  for (size_t i = 0; i < static_cast<size_t>(from.size()); ++i) {
    const std::string text = whole ? beyond(integers[i], from.dtype(), type) : beyond(reals[i], type);
    if (!text.empty() && count++ == 0) example = text, first = i;
  }
  if (count == 0) return;
  n.warn_advising(
      "correct these numbers, or cast to a type that holds them",
      "changes {} of its numbers, which {} does not hold, for example {} to {}; the Cast is applied as "
      "written",
      count, dtype_name(type), example, to.as_int64s()[first]);
}

// Rule cast.explicit: the cast is done as it is written, with a warning where it makes numbers infinite or
// NaN, cuts them to the type's largest, rounds integers, or gives others than these in an integer type.
void report_losses(NodeLowering& n, const Constant& from, ValueId result) {
  const ConstantPtr to = n.constant(result);
  if (!to || from.size() > kMostLookedAt) return;
  if (is_integer(to->dtype()) || (is_sub_byte(to->dtype()) && !is_float(to->dtype())))
    return report_integers(n, from, *to);
  if (!is_float(to->dtype())) return;
  if (is_integer(from.dtype()) && !survives(from, to->dtype(), true))
    n.warn_advising("cast to a type that holds them, if they are meant exactly",
                    "{} numbers of '{}' are not all {} numbers; the Cast rounds them as written",
                    dtype_name(from.dtype()), n.node().inputs[0], dtype_name(to->dtype()));
  if (!is_float(from.dtype())) return;
  const std::vector<double> before = from.as_doubles(), after = to->as_doubles();
  size_t infinite = 0, nan = 0, cut = 0, last = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (!std::isfinite(before[i])) continue;
    const bool clamped = std::abs(before[i]) > kBeyondRounding * saturated_at(to->dtype());
    infinite += std::isinf(after[i]), nan += std::isnan(after[i]), cut += clamped && std::isfinite(after[i]);
    if (!std::isfinite(after[i]) || clamped) last = i;
  }
  const auto report = [&](size_t count, const char* what) {
    if (count > 0)
      n.warn_advising("correct these numbers, or cast to a type that holds them",
                      "makes {} of its numbers {} in {}, for example {}; the Cast is applied as written",
                      count, what, dtype_name(to->dtype()), before[last]);
  };
  report(infinite, "infinite"), report(nan, "NaN"), report(cut, "the largest number");
}

// ONNX's complex128, to which no Cast of the standard leads, has the number of PyTorch's bfloat16.
constexpr int64_t kComplex128 = 15;

bool has_bfloat16(const ImportedGraph& graph) {
  const auto is = [](const auto& v) { return v.dtype == DType::kBFloat16; };
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), is) ||
         std::any_of(graph.initializers.begin(), graph.initializers.end(), is);
}

std::string unsupported_advice(int64_t number) {
  if (number != kComplex128) return type_advice(onnx_type_name(number));
  return "if the model is meant to be bfloat16, this is a known exporter bug, which writes PyTorch's number "
         "of that type (15) instead of ONNX's (16): correct the attribute, or export in float32; " +
         type_advice("complex128");
}

bool cast_to(NodeLowering& n, DType to) {
  const ValueId x = n.input(0);
  const int64_t saturate = n.attr_int("saturate", 1);
  // Matters for float8e8m0 alone, which rounds up by default.
  const std::string mode = n.attr_string("round_mode", "up");
  if (mode != "up" && to == DType::kFloat8E8M0) return n.refuse("round_mode '{}' is not supported", mode);
  if (n.dtype(x) == to) return n.output(0, x);
  const ValueId y = n.emit(CastAttrs{static_cast<int64_t>(to), saturate}, {x});
  if (const ConstantPtr from = n.constant(x); from && y >= 0) report_losses(n, *from, y);
  return n.output(0, y);
}

// Cast-1 names the type, later ones number it.
bool lower_cast(NodeLowering& n) {
  int64_t number = 0;
  const ImportedAttribute* to = n.node().find("to");
  if (to == nullptr) return n.refuse("has no attribute 'to'");
  if (to->kind == ImportedAttribute::Kind::kString) {
    const std::string name = n.attr_string("to", "");
    constexpr std::string_view kNames[] = {"UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                           "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
                                           "FLOAT16",   "DOUBLE", "UINT32", "UINT64"};
    for (size_t i = 0; i < std::size(kNames); ++i)
      if (name == kNames[i]) number = static_cast<int64_t>(i);
  } else {
    number = n.attr_int("to", 0);
  }
  DType dtype = dtype_from_onnx(number);
  if (number == kComplex128 && has_bfloat16(n.parent().model().graph)) {
    n.warn(
        "complex128 is read as bfloat16, which the model has: some exporters write PyTorch's number of the "
        "type");
    dtype = DType::kBFloat16;
  }
  if (dtype == DType::kNone)
    return n.refuse_advising(unsupported_advice(number), "element type {} is not supported",
                             onnx_type_name(number));
  return cast_to(n, dtype);
}

bool lower_cast_like(NodeLowering& n) { return cast_to(n, n.dtype(n.input(1))); }

// The same bits under another type of the same width.
bool lower_bit_cast(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int64_t number = n.attr_int("to", 0);
  const DType to = dtype_from_onnx(number);
  if (to == DType::kNone || bit_width(to) != bit_width(n.dtype(x)))
    return n.refuse("{} cannot be read as {}", dtype_name(n.dtype(x)), onnx_type_name(number));
  if (n.dtype(x) == to) return n.output(0, x);
  return n.output(0, n.emit(ViewAttrs{int_list(n.dims(x)), static_cast<int64_t>(to)}, {x}));
}

}  // namespace

std::span<const OnnxOperator> cast_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Cast", 1, lower_cast, "", kTakesBounded},
      {"CastLike", 15, lower_cast_like, "", kTakesBounded | kTwoInputs},
      {"BitCast", 26, lower_bit_cast, "", kNoTraits},
  };
  return kRules;
}

}  // namespace sinter::convert
