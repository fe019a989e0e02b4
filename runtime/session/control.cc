// If and Loop: bodies run inside the step's workspaces; captured values are the owner's own buffers. What is
// in device memory is copied there, by the device's queue, behind what was started before. A list of steps
// ends with a wait if the host reads or writes what its transfers do.
#include <cstring>

#include "runtime/session/session_state.h"

namespace sinter::detail {

namespace {

Status copy(const CopyItem& item) {
  if (item.from == item.to || item.bytes == 0) return ok_status();
  if (item.queue != nullptr) return item.queue->copy(item.to, item.from, item.bytes);
  std::memmove(item.to, item.from, item.bytes);
  return ok_status();
}

Status zero(const CopyItem& item, std::byte* at, size_t bytes) {
  if (item.queue != nullptr) return item.queue->zero(at, bytes);
  std::memset(at, 0, bytes);
  return ok_status();
}

}  // namespace

Status copy_all(std::span<const CopyItem> items) {
  for (const CopyItem& item : items) SINTER_RETURN_IF_ERROR(copy(item));
  return ok_status();
}

Status run_if(void* state, const OpCall&, RunContext&) {
  IfState& s = *static_cast<IfState*>(state);
  const int branch = *s.condition != std::byte{0} ? 0 : 1;
  SINTER_RETURN_IF_ERROR(run_steps(*s.session, *s.steps[branch]));
  return copy_all(s.results[branch]);
}

Status run_loop(void* state, const OpCall&, RunContext&) {
  LoopState& s = *static_cast<LoopState*>(state);
  int64_t trip_count = INT64_MAX;
  if (s.trip_count != nullptr) std::memcpy(&trip_count, s.trip_count, sizeof(trip_count));
  bool condition = s.condition == nullptr || *s.condition != std::byte{0};
  SINTER_RETURN_IF_ERROR(copy_all(s.initial));
  int64_t i = 0;
  for (; i < trip_count && condition; ++i) {
    SINTER_RETURN_UNLESS(!s.session->cancelled(), kCancelled);  // a body may have no steps
    SINTER_RETURN_UNLESS(
        i < s.max_trips,
        error(Code::kOutOfRange, "the loop would continue after its planned %a trips", s.max_trips));
    if (s.iteration != nullptr) std::memcpy(s.iteration, &i, sizeof(i));
    if (s.condition_parameter != nullptr) *s.condition_parameter = std::byte{1};
    SINTER_RETURN_IF_ERROR(run_steps(*s.session, *s.steps));
    condition = *s.condition_result != std::byte{0};
    for (const CopyItem& item : s.scanned)
      SINTER_RETURN_IF_ERROR(
          copy({item.from, item.to + static_cast<size_t>(i) * item.bytes, item.bytes, item.queue}));
    SINTER_RETURN_IF_ERROR(copy_all(s.carry));
  }
  SINTER_RETURN_IF_ERROR(copy_all(s.finals));
  for (const CopyItem& item : s.scanned)
    if (item.bytes > 0 && i < s.max_trips)
      SINTER_RETURN_IF_ERROR(zero(item, item.to + static_cast<size_t>(i) * item.bytes,
                                  static_cast<size_t>(s.max_trips - i) * item.bytes));
  if (s.trips != nullptr) std::memcpy(s.trips, &i, sizeof(i));
  return ok_status();
}

}  // namespace sinter::detail
