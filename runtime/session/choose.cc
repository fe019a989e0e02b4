// Chooses the backend of a step: the first candidate that accepts it, or the one that the caller requests;
// the reference kernels if none does. A step that is not computed by the first one is a fallback.
#include "runtime/session/choose.h"

#include <algorithm>
#include <cstring>

#include "runtime/session/creation_memory.h"

namespace sinter::detail {
namespace {

const Status kNotItsMemory = error(Code::kInternal, "a backend without device memory requests some");
const Status kInOrder =
    unsupported("the plan places the result over its operand, which only the reference kernels compute");

}  // namespace

Status Chooser::open(size_t i) {
  Slot& slot = slots_[i];
  if (slot.open) return ok_status();
  BumpArena own;
  SINTER_RETURN_IF_ERROR(entry_.backends[i]->open(own));
  slot.open = true;
  slot.bytes = own.used();
  return ok_status();
}

void Chooser::close_all() {
  for (size_t i = 0; i < entry_.backend_count; ++i)
    if (slots_[i].open) entry_.backends[i]->close(), slots_[i].open = false;
}

size_t Chooser::used() const {
  return static_cast<size_t>(
      std::count_if(std::begin(slots_), std::end(slots_), [](const Slot& slot) { return slot.used; }));
}

void Chooser::measure_used(BumpArena& prepared) const {
  for (const Slot& slot : slots_)
    if (slot.used) prepared.allocate(slot.bytes, kBufferAlignment);
}

Status Chooser::open_used(BumpArena& prepared, SessionState& session) {
  for (size_t i = 0; i < entry_.backend_count; ++i) {
    if (!slots_[i].used) continue;
    BumpArena own;
    SINTER_RETURN_IF_ERROR(take_part(prepared, slots_[i].bytes, &own));
    SINTER_RETURN_IF_ERROR(entry_.backends[i]->open(own));
    slots_[i].index = static_cast<uint8_t>(session.backend_count);
    session.backends[session.backend_count++] = entry_.backends[i];
  }
  return ok_status();
}

// Measures a step for as many threads as the plan has workspace for: all, half of them, and so on. Fewer
// threads are better than a kernel that was planned as the lesser.
Status Chooser::measure_step(Backend& backend, const OpCall& call, const fb::StepPlan& plan, StepNeeds* needs,
                             uint8_t* pool) const {
  const bool shared = plan.max_threads() != 1 && !plan.in_order();
  *pool = 0;
  for (int threads = shared ? thread_count(entry_.options) : 1; threads > 1; threads /= 2, ++*pool) {
    SINTER_RETURN_IF_ERROR(backend.measure(call, threads, needs));
    if (needs->workspace <= plan.workspace_bytes()) return ok_status();
  }
  *pool = RunStep::kOneThread;
  return backend.measure(call, 1, needs);
}

Status Chooser::try_backend(size_t i, const OpCall& call, const fb::StepPlan& plan, Choice* choice,
                            Packing* packing, bool last) {
  Backend* backend = entry_.backends[i];
  if (backend == nullptr) return unsupported("the application does not link it");
  if (backend->memory() != nullptr) return unsupported("the backend computes in device memory");
  SINTER_RETURN_IF_ERROR(open(i));
  StepNeeds needs;
  SINTER_RETURN_IF_ERROR(measure_step(*backend, call, plan, &needs, &choice->pool));
  if (needs.workspace > plan.workspace_bytes()) {
    if (!last)
      return unsupported(
          "the kernel needs more workspace than planned; convert with --backends plans for it");
    return error(Code::kOutOfMemory, "the kernel needs %a bytes of workspace and the plan has %b",
                 static_cast<int64_t>(needs.workspace), static_cast<int64_t>(plan.workspace_bytes()));
  }
  slots_[i].used = true;
  choice->accept(i, needs);
  *packing = needs.packing;
  return needs.device_prepared == 0 ? ok_status() : kNotItsMemory;
}

Status Chooser::choose(const Frame& frame, uint32_t s, const OpCall& call, Choice* choice, Packing* packing,
                       Status* refusal) {
  const fb::StepPlan& plan = frame.step_plan(s);
  const uint8_t memory = frame.place_of(s).memory;
  for (uint32_t d = 0; memory != 0 && d < entry_.device_count; ++d)
    if (entry_.devices[d].kind == memory)
      return choose_on_device(entry_.devices[d], call, plan, choice, packing);
  const size_t reference = entry_.reference();
  if (plan.in_order()) {
    *refusal = kInOrder;
    return try_backend(reference, call, plan, choice, packing, true);
  }
  bool done = false;
  const auto attempt = [&](size_t i) -> Status {
    const Status status = try_backend(i, call, plan, choice, packing, false);
    done = status.code != Code::kUnsupported;
    if (!done && refusal->ok()) *refusal = status;
    return done ? status : ok_status();
  };
  if (entry_.requested) {
    for (size_t i = 0; i < reference && !done; ++i) SINTER_RETURN_IF_ERROR(attempt(i));
  } else {
    for (const uint8_t c : items(plan.candidates()))
      if (!done) SINTER_RETURN_IF_ERROR(attempt(entry_.is_reference(c) ? reference : c));
  }
  return done ? ok_status() : try_backend(reference, call, plan, choice, packing, true);
}

Status Chooser::note_fallback(const Frame& frame, uint32_t s, const Choice& choice, const Status& refusal) {
  const auto candidates = items(frame.step_plan(s).candidates());
  const SessionOptions& options = entry_.options;
  const char* expected = entry_.requested     ? options.backend
                         : candidates.empty() ? "reference"
                                              : entry_.backend_name(static_cast<uint8_t>(candidates[0] + 1));
  const char* chosen = entry_.backends[choice.slot]->name();
  if (std::strcmp(expected, chosen) == 0) return ok_status();
  ++fallbacks;
  if (options.on_fallback.report != nullptr)
    options.on_fallback.report(options.on_fallback.context, {frame.index, s, expected, chosen, refusal});
  return options.require_planned ? unsupported("backend %s must compute this step but does not: %t",
                                               name_of(expected), name_of(refusal.message))
                                 : ok_status();
}

}  // namespace sinter::detail
