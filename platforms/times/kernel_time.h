// Times of kernels by class of call, which platforms that compute the same calls list, each in its own
// folder, and the time of a call by such a list. bench/kernel_times.py prints the rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/backend/cpu.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/window.h"

namespace sinter::kernel_time {

// Calls of one operation between which the faster kernel differs. Calls of no other class are usual.
enum class CallClass : uint8_t {
  kUsual,
  kFewChannels,   // of output, up to 8 of one group: Conv with a window, QConv
  kFewInputs,     // channels, up to 4 of one group: Conv with a window and more than 8 channels of output
  kFewColumns,    // of output, 9 to 16: Conv of one group without a window, of wider images
  kNarrowImage,   // of up to 16 columns: Conv without a window, or with at least 1024 weights a channel
  kManyChannels,  // of output: QConv, more than 16 a group
  kWindow,        // of more than one tap: QConv of 9 to 16 channels of output, or up to 16 in each of several
                  // groups
  kShortRows,     // Add, Sub, Mul, Div: broadcast to up to 8 channels
  kOneRow,        // MatMul: one row by a computed matrix
  kManyRows,      // QFullyConnected: more than 4
  kOtherWindow,   // DepthwiseConv: not of 3 or 5 adjacent columns with a stride of 1 or 2; up to 25 taps
  kManyTaps,      // DepthwiseConv, QDepthwiseConv: more than 25
};

// The time of a representative call of its class, on one thread. Rows of the same operation, class and
// processor have the same representative call (bench/device/op_cases.cc) and unit, in the lists of all
// platforms.
struct KernelTime {
  Op op;
  CallClass calls;
  Cpu cpu;
  double time;  // nanoseconds; instructions where they are counted
  Provenance provenance;
};

// A row of a platform's kernel_times.def.
#define SINTER_KERNEL_TIME(op, calls, cpu, time, provenance)                                            \
  ::sinter::kernel_time::KernelTime{Op::k##op, ::sinter::kernel_time::CallClass::k##calls, Cpu::k##cpu, \
                                    time, Provenance::k##provenance},

inline constexpr int64_t kFewChannels = 8, kFewInputs = 4, kFewColumns = 16, kNarrowColumns = 16,
                         kDeepWindow = 1024, kManyChannels = 16, kManyRows = 4, kManyTaps = 25, kShortRow = 8;

inline int64_t channels(const TensorView& v) { return v.rank > 0 ? v.dims[v.rank - 1] : 1; }

inline bool has_window(const TensorView& weights) {
  for (int i = 1; i + 1 < weights.rank; ++i)
    if (weights.dims[i] != 1) return true;
  return false;
}

inline bool has_one_row(const TensorView& matrix) {
  return matrix.rank >= 2 && matrix.dims[matrix.rank - 2] == 1;
}

// Returns whether one operand is broadcast along the channels, or all but the channels, and these are few.
inline bool has_short_rows(const OpCall& call) {
  const TensorView &a = call.in(0), &b = call.in(1), &y = call.out(0);
  return channels(y) <= kShortRow && a.size() != b.size() && std::min(a.size(), b.size()) > 1;
}

// Windows of few columns of output are computed like another window.
inline CallClass depthwise_class(const WindowGeometry& g) {
  const int64_t columns = g.kernel[2];
  if (g.taps() > kManyTaps) return CallClass::kManyTaps;
  const bool usual =
      (columns == 3 || columns == 5) && g.stride[2] <= 2 && g.dilation[2] == 1 && g.out[2] >= 4;
  return usual ? CallClass::kUsual : CallClass::kOtherWindow;
}

inline CallClass class_of(const OpCall& call) {
  switch (call.op) {
    case Op::kConv: {
      const TensorView &weights = call.in(1), &y = call.out(0);
      const int64_t columns = channels(y);
      const bool window = has_window(weights), one_group = call.attrs<ConvAttrs>().group == 1;
      if (window && one_group && columns <= kFewChannels) return CallClass::kFewChannels;
      if (window && one_group && channels(weights) <= kFewInputs) return CallClass::kFewInputs;
      // It depends on the columns of the image alone, so that stripes of lines are computed like the whole.
      const bool narrow = y.rank >= 4 && y.dims[y.rank - 2] <= kNarrowColumns;
      if (narrow && (!window || weights.size() >= kDeepWindow * columns)) return CallClass::kNarrowImage;
      return !window && one_group && columns > kFewChannels && columns <= kFewColumns ? CallClass::kFewColumns
                                                                                      : CallClass::kUsual;
    }
    case Op::kDepthwiseConv:
      return depthwise_class(window_geometry<DepthwiseConvAttrs>(call));
    case Op::kQDepthwiseConv:
      return window_geometry<QDepthwiseConvAttrs>(call).taps() > kManyTaps ? CallClass::kManyTaps
                                                                           : CallClass::kUsual;
    case Op::kQConv:
      if (channels(call.out(0)) > kManyChannels * call.attrs<QConvAttrs>().group)
        return CallClass::kManyChannels;
      if (channels(call.out(0)) <= kFewChannels && call.attrs<QConvAttrs>().group == 1)
        return CallClass::kFewChannels;
      return has_window(call.in(1)) ? CallClass::kWindow : CallClass::kUsual;
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
      return has_short_rows(call) ? CallClass::kShortRows : CallClass::kUsual;
    case Op::kMatMul:
      return !call.in(1).constant && has_one_row(call.in(0)) ? CallClass::kOneRow : CallClass::kUsual;
    case Op::kQFullyConnected:
      return call.in(0).size() > kManyRows * channels(call.in(0)) ? CallClass::kManyRows : CallClass::kUsual;
    default:
      return CallClass::kUsual;
  }
}

// Returns the time that `rows` list for the class of the call on `cpu`; nullopt: none.
inline std::optional<double> listed_time(std::span<const KernelTime> rows, Cpu cpu, const OpCall& call) {
  const auto time_of = [&](CallClass calls) -> std::optional<double> {
    for (const KernelTime& row : rows)
      if (row.op == call.op && row.calls == calls && row.cpu == cpu) return row.time;
    return std::nullopt;
  };
  const std::optional<double> time = time_of(class_of(call));
  // Only 32-bit ARM has rows of many taps.
  return !time && call.op == Op::kQDepthwiseConv ? time_of(CallClass::kUsual) : time;
}

// Implements Platform::time for a platform that lists `kRows`.
template <const auto& kRows>
std::optional<double> time_by(Cpu cpu, const OpCall& call) {
  return listed_time(kRows, cpu, call);
}

}  // namespace sinter::kernel_time
