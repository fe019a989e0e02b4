// Overwrites, before each step of a session, the planned memory in which no value lives then: the remains of
// values that are no longer read, of values that are still to be written and of workspaces. Reads the plan by
// itself.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/model/lives.h"
#include "sinter/session.h"

namespace sinter::test {

class DeadMemory {
 public:
  // `arena`: where the session's regions begin.
  DeadMemory(const Model& model, const SessionOptions& options, std::byte* arena, std::byte poison);
  const StepObserver* observer() const { return &observer_; }

 private:
  struct Part {
    size_t from, to;
  };
  // The memory of a program's values: the regions, or the workspace of the step that owns the program.
  struct Home {
    std::byte* base = nullptr;
    size_t bytes = 0;
    const fb::Program* program = nullptr;
    const fb::ProgramPlan* plan = nullptr;
    std::vector<size_t> regions;  // their offsets
    std::vector<detail::Life> lives;
  };
  void place(uint32_t program, std::byte* base, size_t bytes, std::vector<size_t> regions);
  void poison_before(const StepInfo& info);

  const detail::ModelState& model_;
  const fb::Profile* profile_ = nullptr;
  std::vector<Home> homes_;  // by program
  std::vector<Part> live_;
  std::byte poison_;
  StepObserver observer_;
};

}  // namespace sinter::test
