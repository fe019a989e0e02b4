#include "converter/plan/common_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "converter/plan/planner.h"

namespace sinter::convert {
namespace {

// The bytes of a state's block on both sides of the state's first byte.
struct StateReach {
  uint64_t before = 0, after = 0;
};

class EntryStates {
 public:
  explicit EntryStates(PlannedProgram& entry) : entry_(entry), root_(entry.values.size(), kAbsent) {}

  const std::vector<GraphState>& states() const { return entry_.graph->states; }
  uint8_t memory(const GraphState& state) const { return entry_.graph->value(value_of(state)).memory; }

  // For each state.
  std::vector<StateReach> reaches() {
    std::vector<StateReach> result;
    for (const GraphState& state : states()) {
      const uint64_t start = at(value_of(state)).offset;
      StateReach& reach = result.emplace_back();
      for (const ValueId member : block_of(state)) {
        const PlannedValue& v = at(member);
        if (v.offset < start) reach.before = std::max(reach.before, start - v.offset);
        if (v.offset + v.bytes > start) reach.after = std::max(reach.after, v.offset + v.bytes - start);
      }
    }
    return result;
  }

  // `offsets`: of the states; `bytes`: of their region, without padding.
  void place(const std::vector<uint64_t>& offsets, uint64_t bytes) {
    const std::vector<GraphState>& list = states();
    std::vector<std::vector<ValueId>> blocks;
    for (const GraphState& state : list) blocks.push_back(block_of(state));
    for (size_t i = 0; i < list.size(); ++i) {
      const uint64_t start = at(value_of(list[i])).offset;
      for (const ValueId member : blocks[i]) at(member).offset = at(member).offset - start + offsets[i];
    }
    PlannedRegion& region = entry_.regions[at(value_of(list.front())).region];
    region.bytes = bytes + kReadPadding;
    region.proved = region.bytes == region.lower_bound;
    entry_.arena_bytes = 0, entry_.proved = true;
    for (const PlannedRegion& r : entry_.regions) entry_.arena_bytes += r.bytes, entry_.proved &= r.proved;
  }

 private:
  PlannedValue& at(ValueId id) { return entry_.values[static_cast<size_t>(id)]; }
  ValueId value_of(const GraphState& state) const { return entry_.graph->inputs[state.input]; }
  ValueId root(ValueId id) {
    ValueId& found = root_[static_cast<size_t>(id)];
    if (found != kAbsent) return found;
    ValueId last = id;
    while (at(last).alias_of != kAbsent) last = at(last).alias_of;
    return found = last;
  }
  // The values that move along with the state.
  std::vector<ValueId> block_of(const GraphState& state) {
    std::vector<ValueId> members;
    const ValueId of = root(value_of(state));
    for (size_t i = 0; i < entry_.values.size(); ++i)
      if (entry_.values[i].placed && root(static_cast<ValueId>(i)) == of)
        members.push_back(static_cast<ValueId>(i));
    return members;
  }

  PlannedProgram& entry_;
  std::vector<ValueId> root_;
};

}  // namespace

std::string give_states_common_places(std::span<PlannedModel> sets) {
  if (sets.size() < 2 || sets[0].programs.front().graph->states.empty()) return "";
  std::vector<EntryStates> entries;
  for (PlannedModel& set : sets) entries.emplace_back(set.programs.front());
  const std::vector<GraphState>& states = entries[0].states();
  std::vector<StateReach> most(states.size());
  for (EntryStates& entry : entries) {
    const std::vector<StateReach> own = entry.reaches();
    if (own.size() != most.size()) throw std::logic_error("shape sets have different states");
    for (size_t i = 0; i < own.size(); ++i) {
      if (entry.memory(entry.states()[i]) != 0)
        return fmt::format(
            "--state {}={}: the plan for {} has this state in the memory of the device, where sessions of "
            "several shape sets cannot share it; convert each set into a file of its own",
            states[i].output_name, states[i].input_name, sets[0].target);
      most[i].before = std::max(most[i].before, own[i].before);
      most[i].after = std::max(most[i].after, own[i].after);
    }
  }
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const StateReach& reach : most) {
    offsets.push_back(end + align_up(reach.before, kBufferAlignment));
    end = align_up(offsets.back() + reach.after, kBufferAlignment);
  }
  for (EntryStates& entry : entries) entry.place(offsets, end);
  for (const PlannedModel& set : sets)
    if (const std::string fault = check_plan(set); !fault.empty()) throw std::logic_error(fault);
  return "";
}

}  // namespace sinter::convert
