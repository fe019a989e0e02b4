// Steps that a backend computes together with the one before them.
#include "runtime/session/creator.h"

namespace sinter::detail {

void Creator::fuse(Frame& frame, RunStep* next) const {
  RunStep* first = frame.first;
  frame.first = next;
  // Those that have a place for the flag, or that need none.
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
