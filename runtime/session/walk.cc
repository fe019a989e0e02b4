// The walk over an entry program and what it contains, done twice: with measuring arenas, then with memory.
// Both times the same allocations happen in the same order.
#include <bit>
#include <utility>

#include "runtime/session/session_creator.h"

namespace sinter::detail {

// Takes what precedes the steps: the session, the parts of the caller's threads, the states of devices.
Status SessionCreator::take_structures() {
  size_t part_count = 0;
  int threads = thread_count(entry_.options);
  for (int part = threads / 2; part > 1; part /= 2) ++part_count;
  PartOfPool* parts = nullptr;
  DeviceState* devices = nullptr;
  SINTER_RETURN_IF_ERROR(memory_.take(1, &session_));
  if (part_count > 0) SINTER_RETURN_IF_ERROR(memory_.take(part_count, &parts));
  SINTER_RETURN_IF_ERROR(memory_.take(entry_.device_count, &devices));
  if (!building()) return ok_status();
  for (size_t i = 0; i < part_count; ++i) parts[i] = PartOfPool(entry_.options.threads, threads /= 2);
  session_->parts = parts;
  session_->devices = devices;
  return ok_status();
}

Status SessionCreator::walk_entry() {
  Frame frame = entry_.root;
  StepList measured;
  frame.steps = building() ? &session_->main : &measured;
  SINTER_RETURN_IF_ERROR(walk(frame));
  return walk_ports(frame);
}

// Returns the place in which the choice for the step at `at` in the control structures is noted; null if
// memory ends before.
Choice* SessionCreator::note(size_t at) const {
  return at <= given_.size() && given_.size() - at >= sizeof(RunStep)
             ? reinterpret_cast<Choice*>(given_.data() + at)
             : nullptr;
}

Status SessionCreator::walk(Frame& frame) {
  uint32_t count = 0;
  (void)in_order(
      frame, [&](uint32_t, StepPlace) { return ++count, ok_status(); },
      [&](uint32_t devices, RunExtra*) {
        return count += static_cast<uint32_t>(std::popcount(devices)), ok_status();
      });
  size_t at = align_up(memory_.control.used(), alignof(RunStep));
  // Not initialised: the first pass has left notes here.
  auto* run = static_cast<RunStep*>(memory_.control.allocate_raw<RunStep>(count));
  SINTER_RETURN_UNLESS(!building() || run != nullptr, kDisagree);
  TrackedValues tracked;
  if (length(frame.program->prepare()) > 0) SINTER_RETURN_IF_ERROR(prepared_values_.begin(frame, tracked));
  frame.steps->steps = run;
  frame.steps->program = frame.index;
  uint8_t group = 0;  // the device that computed the last step
  const auto end_group = [&](uint8_t next) {
    const uint8_t last = std::exchange(group, next);
    return building() && last != 0 && last != next ? devices_.of(last).queue->end_group() : ok_status();
  };
  const auto step = [&](uint32_t s, StepPlace place) {
    SINTER_RETURN_IF_ERROR(end_group(place.memory));
    Choice* noted = note(at);
    SINTER_RETURN_UNLESS(!building() || noted == static_cast<void*>(run), kDisagree);
    const Status status = is_control(frame.step(s)) ? walk_control(frame, s, run)
                          : building()              ? build_step(frame, s, *noted, run)
                                                    : measure_step(frame, s, noted);
    if (!status.ok()) return status.at_step(s, frame.index);
    at += sizeof(RunStep);
    // destroy() releases those that are complete, should a later one fail.
    if (building()) fuse(frame, run), ++run, ++frame.steps->count;
    return ok_status();
  };
  const auto extra = [&](uint32_t devices, RunExtra* what) {
    if (devices != 0) SINTER_RETURN_IF_ERROR(end_group(0));
    for (uint32_t d = 0; d < entry_.device_count; ++d) {
      if ((devices & memory_bit(entry_.devices[d].kind)) == 0) continue;
      at += sizeof(RunStep);
      if (!building()) continue;
      new (run) RunStep();
      run->run = what;
      run->state = &session_->devices[d];
      run->step = RunStep::kNoStep;
      run->call = CallUse::kUnused;
      ++run, ++frame.steps->count;
    }
    return ok_status();
  };
  SINTER_RETURN_IF_ERROR(in_order(frame, step, extra));
  frame.kept = nullptr;
  return end_group(0);
}

void SessionCreator::fuse(Frame& frame, RunStep* next) const {
  RunStep* first = frame.first;
  frame.first = next;
  // A step can be fused if it has a place for the flag, or needs none.
  const auto kept = [](const RunStep& step) {
    return step.backend != RunStep::kNoBackend && step.call != CallUse::kLaidOut;
  };
  // Anything between, such as waiting for a device, keeps them apart.
  if (first == nullptr || first + first->fused + 1 != next || !kept(*first) || !kept(*next) ||
      first->backend != next->backend ||
      !session_->backends[first->backend]->fuse({first->run, first->state}, {next->run, next->state}))
    return;
  if (first->call == CallUse::kKept) first->kept->context.fused = true;
  ++first->fused;
  frame.first = first;
}

}  // namespace sinter::detail
