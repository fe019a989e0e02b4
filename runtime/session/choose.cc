// Chooses the backend of a step: the first candidate that accepts it, or the one that the caller requests;
// the reference kernels if none does. A step that is not computed by the first one is a fallback.
#include <cstring>

#include "runtime/session/creator.h"

namespace sinter::detail {
namespace {

const Status kNotItsMemory = error(Code::kInternal, "a backend without device memory requests some");
const Status kInOrder =
    unsupported("the plan places the result over its operand, which only the reference kernels compute");

}  // namespace

int Creator::thread_count() const {
  return options_.threads != nullptr ? options_.threads->thread_count() : 1;
}

// Of as many threads as the plan has workspace for: all, half of them, and so on. Fewer threads are better
// than a kernel that was planned as the lesser.
Status Creator::measure_step(Backend& backend, const OpCall& call, const fb::StepPlan& plan, StepNeeds* needs,
                             uint8_t* pool) const {
  const bool shared = plan.max_threads() != 1 && !plan.in_order();
  *pool = 0;
  for (int threads = shared ? thread_count() : 1; threads > 1; threads /= 2, ++*pool) {
    SINTER_RETURN_IF_ERROR(backend.measure(call, threads, needs));
    if (needs->workspace <= plan.workspace_bytes()) return ok_status();
  }
  *pool = RunStep::kOneThread;
  return backend.measure(call, 1, needs);
}

// The parts of the caller's threads, in both passes.
Status Creator::take_pools() {
  size_t count = 0;
  for (int threads = thread_count() / 2; threads > 1; threads /= 2) ++count;
  if (count == 0) return ok_status();
  auto* parts = control_.allocate_array<PartOfPool>(count);
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(parts != nullptr, kDisagree);
  session_->parts = parts;
  int threads = thread_count();
  for (size_t i = 0; i < count; ++i) new (parts + i) PartOfPool(options_.threads, threads /= 2);
  return ok_status();
}

Status Creator::open_slot(Slot& slot) {
  if (slot.open) return ok_status();
  BumpArena own;
  SINTER_RETURN_IF_ERROR(slot.backend->open(own));
  slot.open = true;
  slot.bytes = own.used();
  return ok_status();
}

Status Creator::try_backend(size_t i, const OpCall& call, const fb::StepPlan& plan, Choice* choice,
                            Packing* packing, bool last) {
  Slot& slot = slots_[i];
  if (slot.backend == nullptr) return unsupported("the application does not link it");
  if (slot.backend->memory() != nullptr) return unsupported("the backend computes in device memory");
  SINTER_RETURN_IF_ERROR(open_slot(slot));
  StepNeeds needs;
  SINTER_RETURN_IF_ERROR(measure_step(*slot.backend, call, plan, &needs, &choice->pool));
  if (needs.workspace > plan.workspace_bytes()) {
    if (!last)
      return unsupported(
          "the kernel needs more workspace than planned; convert with --backends plans for it");
    return error(Code::kOutOfMemory, "the kernel needs %a bytes of workspace and the plan has %b",
                 static_cast<int64_t>(needs.workspace), static_cast<int64_t>(plan.workspace_bytes()));
  }
  slot.used = true;
  choice->slot = static_cast<uint8_t>(i);
  choice->prepared = needs.prepared;
  choice->packed = needs.packed;
  choice->call = needs.call;
  choice->scratch = needs.scratch;
  *packing = needs.packing;
  return needs.device_prepared == 0 ? ok_status() : kNotItsMemory;
}

// The first candidate that takes the step, and how it packs constants; the reference kernels come last.
// `*refusal`: the first one's reason, if it does not take the step.
Status Creator::choose(const OpCall& call, const fb::StepPlan& plan, Choice* choice, Packing* packing,
                       Status* refusal) {
  const size_t reference = slot_count_ - 1;
  if (plan.in_order()) {
    *refusal = kInOrder;
    return try_backend(reference, call, plan, choice, packing, true);
  }
  const auto attempt = [&](size_t i, bool* done) -> Status {
    const Status status = try_backend(i, call, plan, choice, packing, false);
    *done = status.code != Code::kUnsupported;
    if (!*done && refusal->ok()) *refusal = status;
    return *done ? status : ok_status();
  };
  bool done = false;
  if (override_) {
    for (size_t i = 0; i < reference && !done; ++i) SINTER_RETURN_IF_ERROR(attempt(i, &done));
  } else {
    for (const uint8_t c : items(plan.candidates()))
      if (!done) SINTER_RETURN_IF_ERROR(attempt(c, &done));
  }
  return done ? ok_status() : try_backend(reference, call, plan, choice, packing, true);
}

const char* Creator::expected_backend(const fb::StepPlan& plan) const {
  if (override_) return options_.backend;
  const auto candidates = items(plan.candidates());
  return candidates.empty() ? "reference" : profile_->backends()->Get(candidates[0])->c_str();
}

// Counts and reports the step if another backend computes it than expected.
Status Creator::note_fallback(const Frame& frame, uint32_t s, const fb::StepPlan& plan, const Choice& choice,
                              const Status& refusal) {
  const char* expected = expected_backend(plan);
  const char* chosen = slots_[choice.slot].backend->name();
  if (std::strcmp(expected, chosen) == 0) return ok_status();
  ++fallbacks_;
  if (options_.on_fallback.report != nullptr)
    options_.on_fallback.report(options_.on_fallback.context, {frame.index, s, expected, chosen, refusal});
  return options_.require_planned ? unsupported("backend %s must compute this step but does not: %t",
                                                name_of(expected), name_of(refusal.message))
                                  : ok_status();
}

}  // namespace sinter::detail
