// Signal processing: DFT, STFT, the window functions, MelWeightMatrix.
#include <cmath>
#include <numbers>

#include "converter/import/lowering.h"

namespace sinter::convert {
namespace {

// Entries of a table that is made here.
constexpr int64_t kMostCells = int64_t{1} << 25;

// DFT-17 (axis attribute, default 1) and DFT-20 (axis input, default -2).
bool lower_dft(NodeLowering& n) {
  DftAttrs a;
  const int64_t rank = n.rank(n.input(0));
  a.axis = n.opset() < 20 ? n.attr_int("axis", 1) : -2;
  if (n.opset() >= 20 && n.has_input(2)) {
    const auto axis = n.constant_int(2);
    if (!axis) return false;
    a.axis = *axis;
  }
  if (!n.normalize_axis(&a.axis, rank)) return false;
  if (n.has_input(1)) {
    const auto length = n.constant_int(1);
    if (!length) return false;
    a.length = *length;
  }
  a.inverse = n.attr_int("inverse", 0);
  a.onesided = n.attr_int("onesided", 0);
  return n.output(0, n.emit(a, {n.input(0)}));
}

// STFT-17: frames of the signal, windowed, transformed.
bool lower_stft(NodeLowering& n) {
  ValueId signal = n.input(0);
  const auto step = n.constant_int(1);
  if (!step || *step < 1) return n.refuse("frame_step must be a positive constant");
  if (n.rank(signal) == 2) signal = n.unsqueeze(signal, 2);
  if (n.rank(signal) != 3) return n.refuse_shapes("the signal has rank {}", n.rank(signal));
  const Dims d = n.dims(signal);
  int64_t length = n.has_input(2) ? n.size(n.input(2)) : 0;
  if (n.has_input(3)) {
    const auto given = n.constant_int(3);
    if (!given) return false;
    if (length != 0 && *given != length)
      return n.refuse_shapes("the window has {} values but a frame {}", length, *given);
    length = *given;
  }
  if (length < 1 || length > d[1]) return n.refuse("frames of {} from a signal of {}", length, d[1]);
  const int64_t frames = (d[1] - length) / *step + 1;
  if (frames > kMostCells / length) return n.refuse("{} frames of {} values are too many", frames, length);
  std::vector<int64_t> at(static_cast<size_t>(frames * length));
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < length; ++i) at[static_cast<size_t>(f * length + i)] = f * *step + i;
  const ValueId index = n.add_constant(Constant::of<int64_t>(DType::kInt64, {frames, length}, at));
  ValueId x = n.emit(GatherAttrs{1}, {signal, index});  // [B, frames, length, 1 or 2]
  if (n.has_input(2)) x = n.mul(x, n.reshape(n.input(2), {length, 1}));
  DftAttrs a;
  a.axis = 2;
  a.onesided = n.attr_int("onesided", 1);
  return n.output(0, n.emit(a, {x}));
}

// com.microsoft's Rfft, [..., n] -> [..., n / 2 + 1, 2], and Irfft, its inverse (divided by the number of
// elements of a signal). signal_ndim axes are the signal: of the last one, one side is kept, of the others
// all.
bool lower_real_fft(NodeLowering& n) {
  const bool inverse = n.node().op_type == "Irfft";
  const int64_t axes = n.attr_int("signal_ndim", 1), normalized = n.attr_int("normalized", 0),
                onesided = n.attr_int("onesided", 1);
  if (axes < 1 || axes > 3 || normalized != 0 || onesided != 1)
    return n.refuse("signal_ndim {}, normalized {} and onesided {}; 1 to 3, 0 and 1 are supported", axes,
                    normalized, onesided);
  ValueId x = n.input(0);
  if (n.rank(x) < axes + inverse) return n.refuse_shapes("X has rank {}", n.rank(x));
  if (!inverse) x = n.unsqueeze(x, n.rank(x));
  const int64_t last = n.rank(x) - 2;
  DftAttrs a;
  a.inverse = inverse;
  // The inverse ends with the axis of one side, where the others have made the rest a real signal's spectrum.
  for (int64_t i = 0; i < axes; ++i) {
    a.axis = inverse ? last - axes + 1 + i : last - i;
    a.onesided = a.axis == last;
    x = n.emit(a, {x});
  }
  if (inverse && x >= 0) x = n.reshape(x, Dims(n.dims(x).begin(), n.dims(x).end() - 1));
  return n.output(0, x);
}

// The constant's type by ONNX's number; 1 is float32.
ValueId typed(NodeLowering& n, const Dims& dims, const std::vector<double>& items) {
  const DType to = dtype_from_onnx(n.attr_int("output_datatype", 1));
  if (to == DType::kNone) return n.refuse("output_datatype is not a number type");
  return n.cast(n.add_constant(Constant::of<double>(DType::kFloat64, dims, items)), to);
}

// a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N)
bool window(NodeLowering& n, double a0, double a1, double a2) {
  const auto size = n.constant_int(0);
  if (!size || *size < 0) return n.refuse("the size must be a constant");
  if (*size > kMostCells) return n.refuse("a window of {} is too large", *size);
  const bool periodic = n.attr_int("periodic", 1) != 0;
  const auto period = static_cast<double>(periodic ? *size : *size - 1);
  std::vector<double> items;
  for (int64_t i = 0; i < *size; ++i) {
    const double angle = period > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / period : 0;
    items.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return n.output(0, typed(n, {*size}, items));
}

bool lower_hann(NodeLowering& n) { return window(n, 0.5, 0.5, 0); }
bool lower_hamming(NodeLowering& n) { return window(n, 25.0 / 46, 21.0 / 46, 0); }
bool lower_blackman(NodeLowering& n) { return window(n, 0.42, 0.5, 0.08); }

// MelWeightMatrix-17: triangular filters, equally spaced on the mel scale, over the bins of a spectrum.
bool lower_mel(NodeLowering& n) {
  const auto bins = n.constant_int(0), dft = n.constant_int(1), rate = n.constant_int(2);
  const auto low = n.constant_double(3), high = n.constant_double(4);
  if (!bins || !dft || !rate || !low || !high) return n.refuse("all inputs must be constant");
  if (*bins < 1 || *dft < 1 || *rate < 1) return n.refuse("sizes must be positive");
  if (*bins > kMostCells || *dft > kMostCells || *bins > kMostCells / (*dft / 2 + 1))
    return n.refuse("{} bins of a spectrum of {} are too many", *bins, *dft);
  const auto to_mel = [](double hz) { return 2595 * std::log10(1 + hz / 700); };
  const double first = to_mel(*low), step = (to_mel(*high) - first) / static_cast<double>(*bins + 2);
  std::vector<int64_t> edges;
  const int64_t rows = *dft / 2 + 1;
  for (int64_t i = 0; i < *bins + 2; ++i) {
    const double hz = 700 * (std::pow(10.0, (static_cast<double>(i) * step + first) / 2595) - 1);
    const double edge = std::floor((static_cast<double>(*dft) + 1) * hz / static_cast<double>(*rate));
    if (!(edge >= 0 && edge <= static_cast<double>(rows)))
      return n.refuse("an edge frequency is outside the spectrum");
    edges.push_back(static_cast<int64_t>(edge));
  }
  std::vector<double> out(static_cast<size_t>(rows * *bins));
  const auto cell = [&](int64_t row, int64_t column) -> double& {
    return out[static_cast<size_t>(row * *bins + column)];
  };
  for (int64_t i = 0; i < *bins; ++i) {
    const int64_t lower = edges[static_cast<size_t>(i)], center = edges[static_cast<size_t>(i) + 1],
                  upper = edges[static_cast<size_t>(i) + 2];
    if (center == lower && center < rows) cell(center, i) = 1;
    for (int64_t j = lower; center > lower && j <= center && j < rows; ++j)
      cell(j, i) = static_cast<double>(j - lower) / static_cast<double>(center - lower);
    for (int64_t j = center; upper > center && j < upper && j < rows; ++j)
      cell(j, i) = static_cast<double>(upper - j) / static_cast<double>(upper - center);
  }
  return n.output(0, typed(n, {rows, *bins}, out));
}

}  // namespace

std::span<const OnnxOperator> signal_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"DFT", 17, lower_dft, "F i i", kNoTraits},
      {"STFT", 17, lower_stft, "F i F i", kNoTraits},
      {"Rfft", 1, lower_real_fft, "F", kNoTraits, kMicrosoft},
      {"Irfft", 1, lower_real_fft, "F", kNoTraits, kMicrosoft},
      {"HannWindow", 17, lower_hann, "", kNoTraits},
      {"HammingWindow", 17, lower_hamming, "", kNoTraits},
      {"BlackmanWindow", 17, lower_blackman, "", kNoTraits},
      {"MelWeightMatrix", 17, lower_mel, "", kNoTraits},
  };
  return kRules;
}

}  // namespace sinter::convert
