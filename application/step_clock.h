// StepClock: the time of each step of all programs, added up over observed runs, in memory of the caller.
#pragma once

#include <span>

#include "sinter/sinter.h"
#include "sinter/step_time.h"

namespace sinter {

class StepClock {
 public:
  // Returns the bytes that begin() takes, aligned to kBufferAlignment.
  static size_t bytes(const Model& model);
  // Begins to add up, from zero. `memory` has bytes().
  void begin(const Model& model, std::span<std::byte> memory);
  void end() { *this = {}; }
  bool running() const { return !steps_.empty(); }

  // To be called before and after each step.
  void before(const StepInfo& info);
  void after(const StepInfo& info);

  // Returns the time of a step; its `runs` are 0 if it has not run.
  StepTime time_of(uint32_t program, uint32_t step) const;

 private:
  struct Timed {
    StepTime time;
    uint64_t began = 0;
  };
  Timed* find(uint32_t program, uint32_t step) const;

  std::span<uint32_t> first_;  // by program: its first step in `steps_`; then the number of all
  std::span<Timed> steps_;
};

}  // namespace sinter
