// From the final graph to a PlannedModel: kernel choice per step, elided steps, in-place results, offsets.
#pragma once

#include <string>
#include <vector>

#include "converter/plan/planned_model.h"
#include "runtime/backend/platform.h"

namespace sinter::convert {

// The criterion between two platforms that comes before their times.
enum class Preference {
  kTime,    // memory decides where one keeps 4 MB or more and the other does not
  kMemory,  // the one that keeps less is preferred
};

struct PlanOptions {
  // Workspaces serve sessions of up to target.cores threads, each step as many as fit (grow_workspaces.h).
  Target target;
  std::vector<const Platform*> platforms;  // best first, without the reference kernels
  bool stored_weights = true;              // widened when a session is created, else in the file
  // More threads do not make the arena larger than this.
  uint64_t thread_arena = UINT64_MAX;
  // Results may be placed partly over the operand that they are made of, where only the reference kernels
  // compute a step; it then runs on one thread.
  bool overlap = false;
  bool strides = true;  // Slices and Concats are also elided where that makes operands strided
  Preference preference = Preference::kTime;  // between platforms
  bool thorough = false;                      // search for the minimum of memory: order of steps, offsets
  // The search goes on for this long if the result is not proved to be minimal. The result may
  // then depend on the machine.
  double seconds = 0;
  bool islands =
      false;          // keep steps in another memory even where moving their operands costs more than they do
  double effort = 1;  // of the budgets of these searches
};

// The graph must be well formed (check()) and not planned yet; it becomes a part of the result, with its
// bodies, which no other graph may share (deep_copy()). Throws std::logic_error for what only a bug can
// cause.
PlannedModel plan_model(std::shared_ptr<Graph> graph, const PlanOptions& options);

// Independent of how the plan was made: no two values that are live together share a byte unless an elided
// step or an in-place operation explains it; everything is inside the arena. Empty, or the first fault.
std::string check_plan(const PlannedModel& model);

}  // namespace sinter::convert
