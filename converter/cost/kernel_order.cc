#include "converter/cost/kernel_order.h"

namespace sinter::convert {

size_t kept_bytes(const Platform& platform, const OpCall& call) {
  return platform.kept_bytes == nullptr ? 0 : platform.kept_bytes(call);
}

bool is_preferred(const Platform& a, const Platform& b, Cpu cpu, const OpCall& call, Preference preference) {
  const auto winograd = [&](const Platform& p) {
    return p.computes_winograd != nullptr && p.computes_winograd(call);
  };
  if (call.op == Op::kConv && call.attrs<ConvAttrs>().winograd != 0)
    if (winograd(a) != winograd(b)) return winograd(a);
  const auto reads = [&](const Platform& p) {
    return p.reads_large_weights != nullptr && p.reads_large_weights(call);
  };
  if (reads(a) != reads(b)) return reads(a);
  // Writing as much, when a session is created, takes longer than the faster kernel saves in a few runs.
  constexpr size_t kMuch = 4 << 20;
  const size_t kept = kept_bytes(a, call), other_kept = kept_bytes(b, call);
  if (preference == Preference::kMemory && kept != other_kept) return kept < other_kept;
  if ((kept >= kMuch) != (other_kept >= kMuch)) return other_kept >= kMuch;
  if (a.time == nullptr || b.time == nullptr) return false;
  const std::optional<double> time = a.time(cpu, call), other = b.time(cpu, call);
  return time && other && *time < *other;
}

}  // namespace sinter::convert
