#include "converter/cost/kernel_order.h"

#include <algorithm>

#include "runtime/backend/window.h"

namespace sinter::convert {
namespace {

constexpr int64_t kFewChannels = 8, kFewInputs = 4, kFewColumns = 16, kNarrowColumns = 16, kDeepWindow = 1024,
                  kManyChannels = 16, kManyRows = 4, kManyTaps = 25, kShortRow = 8;

int64_t channels(const TensorView& v) { return v.rank > 0 ? v.dims[v.rank - 1] : 1; }

bool has_window(const TensorView& weights) {
  for (int i = 1; i + 1 < weights.rank; ++i)
    if (weights.dims[i] != 1) return true;
  return false;
}

bool has_one_row(const TensorView& matrix) { return matrix.rank >= 2 && matrix.dims[matrix.rank - 2] == 1; }

// One operand is broadcast along the channels, or all but the channels, and these are few.
bool has_short_rows(const OpCall& call) {
  const TensorView &a = call.in(0), &b = call.in(1), &y = call.out(0);
  return channels(y) <= kShortRow && a.size() != b.size() && std::min(a.size(), b.size()) > 1;
}

// Few columns of output are computed like another window.
CallClass depthwise_class(const WindowGeometry& g) {
  const int64_t columns = g.kernel[2];
  if (g.taps() > kManyTaps) return CallClass::kManyTaps;
  const bool usual =
      (columns == 3 || columns == 5) && g.stride[2] <= 2 && g.dilation[2] == 1 && g.out[2] >= 4;
  return usual ? CallClass::kUsual : CallClass::kOtherWindow;
}

}  // namespace

CallClass class_of(const OpCall& call) {
  switch (call.op) {
    case Op::kConv: {
      const TensorView &weights = call.in(1), &y = call.out(0);
      const int64_t columns = channels(y);
      const bool window = has_window(weights), one_group = call.attrs<ConvAttrs>().group == 1;
      if (window && one_group && columns <= kFewChannels) return CallClass::kFewChannels;
      if (window && one_group && channels(weights) <= kFewInputs) return CallClass::kFewInputs;
      // By columns of the image alone, so that stripes of lines are computed like the whole.
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

const KernelTime* listed_time(const Platform& platform, Cpu cpu, const OpCall& call) {
  const auto row_of = [&](CallClass calls) -> const KernelTime* {
    for (const KernelTime& row : platform.times)
      if (row.op == call.op && row.calls == calls && row.cpu == cpu) return &row;
    return nullptr;
  };
  const KernelTime* row = row_of(class_of(call));
  // Only 32-bit ARM has rows of many taps.
  return row == nullptr && call.op == Op::kQDepthwiseConv ? row_of(CallClass::kUsual) : row;
}

size_t kept_bytes(const Platform& platform, const OpCall& call) {
  return platform.kept_bytes == nullptr ? 0 : platform.kept_bytes(call);
}

bool is_preferred(const Platform& a, const Platform& b, Cpu cpu, const OpCall& call, Preference preference) {
  if (call.op == Op::kConv && call.attrs<ConvAttrs>().winograd != 0)
    if (a.computes_winograd != b.computes_winograd) return a.computes_winograd;
  const auto reads = [&](const Platform& p) {
    return p.reads_large_weights != nullptr && p.reads_large_weights(call);
  };
  if (reads(a) != reads(b)) return reads(a);
  // Writing as much, when a session is created, takes longer than the faster kernel saves in a few runs.
  constexpr size_t kMuch = 4 << 20;
  const size_t kept = kept_bytes(a, call), other_kept = kept_bytes(b, call);
  if (preference == Preference::kMemory && kept != other_kept) return kept < other_kept;
  if ((kept >= kMuch) != (other_kept >= kMuch)) return other_kept >= kMuch;
  const KernelTime *time = listed_time(a, cpu, call), *other = listed_time(b, cpu, call);
  return time != nullptr && other != nullptr && time->time < other->time;
}

}  // namespace sinter::convert
