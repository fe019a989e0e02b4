// If and Loop: bodies run inside the step's workspace; captured values are the owner's own buffers.
#include <cstring>

#include "runtime/session/session_state.h"

namespace sinter::detail {

void copy_all(std::span<const CopyItem> items) {
  for (const CopyItem& item : items)
    if (item.from != item.to && item.bytes > 0) std::memmove(item.to, item.from, item.bytes);
}

Status run_if(void* state, const OpCall&, RunContext&) {
  IfState& s = *static_cast<IfState*>(state);
  const int branch = *s.condition != std::byte{0} ? 0 : 1;
  SINTER_RETURN_IF_ERROR(run_steps(*s.session, *s.steps[branch]));
  copy_all(s.results[branch]);
  return ok_status();
}

Status run_loop(void* state, const OpCall&, RunContext&) {
  LoopState& s = *static_cast<LoopState*>(state);
  int64_t trip_count = INT64_MAX;
  if (s.trip_count != nullptr) std::memcpy(&trip_count, s.trip_count, sizeof(trip_count));
  bool condition = s.condition == nullptr || *s.condition != std::byte{0};
  copy_all(s.initial);
  int64_t i = 0;
  for (; i < trip_count && condition; ++i) {
    SINTER_RETURN_UNLESS(
        i < s.max_trips,
        error(Code::kOutOfRange, "the loop would continue after its planned %a trips", s.max_trips));
    if (s.iteration != nullptr) std::memcpy(s.iteration, &i, sizeof(i));
    if (s.condition_parameter != nullptr) *s.condition_parameter = std::byte{1};
    SINTER_RETURN_IF_ERROR(run_steps(*s.session, *s.steps));
    condition = *s.condition_result != std::byte{0};
    for (const CopyItem& item : s.scanned)
      if (item.bytes > 0) std::memcpy(item.to + static_cast<size_t>(i) * item.bytes, item.from, item.bytes);
    copy_all(s.carry);
  }
  copy_all(s.finals);
  for (const CopyItem& item : s.scanned)
    if (item.bytes > 0 && i < s.max_trips)
      std::memset(item.to + static_cast<size_t>(i) * item.bytes, 0,
                  static_cast<size_t>(s.max_trips - i) * item.bytes);
  if (s.trips != nullptr) std::memcpy(s.trips, &i, sizeof(i));
  return ok_status();
}

}  // namespace sinter::detail
