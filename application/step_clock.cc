#include "application/step_clock.h"

#include <time.h>

#include <algorithm>
#include <new>

namespace sinter {
namespace {

uint64_t now() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

size_t steps_of(const Model& model) {
  size_t steps = 0;
  for (uint32_t p = 0; p < model.program_count(); ++p) steps += model.step_count(p);
  return steps;
}
size_t places_bytes(const Model& model) {
  return align_up((size_t{model.program_count()} + 1) * sizeof(uint32_t), alignof(uint64_t));
}

}  // namespace

size_t StepClock::bytes(const Model& model) {
  return align_up(places_bytes(model) + steps_of(model) * sizeof(Timed), kBufferAlignment);
}

void StepClock::begin(const Model& model, std::span<std::byte> memory) {
  first_ = {reinterpret_cast<uint32_t*>(memory.data()), size_t{model.program_count()} + 1};
  steps_ = {reinterpret_cast<Timed*>(memory.data() + places_bytes(model)), steps_of(model)};
  uint32_t steps = 0;
  for (uint32_t p = 0; p < model.program_count(); ++p) {
    first_[p] = steps;
    steps += model.step_count(p);
  }
  first_.back() = steps;
  for (Timed& step : steps_) new (&step) Timed();
}

StepClock::Timed* StepClock::find(uint32_t program, uint32_t step) const {
  if (size_t{program} + 1 >= first_.size() || step >= first_[program + 1] - first_[program]) return nullptr;
  return &steps_[first_[program] + step];
}

void StepClock::before(const StepInfo& info) {
  if (Timed* step = find(info.program, info.step)) step->began = now();
}

void StepClock::after(const StepInfo& info) {
  const uint64_t end = now();
  Timed* step = find(info.program, info.step);
  if (step == nullptr) return;
  const uint64_t taken = end - step->began;
  StepTime& time = step->time;
  time.backend = info.backend, time.kernel = info.kernel;
  time.least = time.runs == 0 ? taken : std::min(time.least, taken);
  time.most = std::max(time.most, taken);
  time.nanoseconds += taken;
  ++time.runs;
}

StepTime StepClock::time_of(uint32_t program, uint32_t step) const {
  const Timed* timed = find(program, step);
  return timed != nullptr ? timed->time : StepTime();
}

}  // namespace sinter
