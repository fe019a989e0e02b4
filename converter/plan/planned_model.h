// PlannedModel: every program with its steps' kernel choice and every value's place in memory. What the
// emitter writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "runtime/backend/target.h"

namespace sinter::convert {

// The part of a device's memory that a control step's bodies take.
struct PlannedDeviceWorkspace {
  uint8_t memory = 0;   // as in Value::memory
  uint32_t region = 0;  // index into PlannedProgram::regions
  uint64_t offset = 0, bytes = 0;
};

struct PlannedStep {
  std::vector<uint8_t> candidates;  // indices into PlannedModel::backends, in order of preference
  std::vector<uint64_t> needs;      // workspace of each candidate on one thread
  uint32_t workspace_region = 0;    // index into PlannedProgram::regions
  uint64_t workspace_offset = 0, workspace_bytes = 0;
  std::vector<uint64_t> wider;  // workspace_bytes for more threads, those for the most first
  std::vector<uint64_t> later;  // workspace_bytes for the candidates behind the first, one after another;
                                // those that find no room are given up
  uint32_t max_threads = 0;     // 0: all
  bool elided = false;
  bool in_order = false;  // output 0 is placed over operand 0, from before its start on
  // Bytes by which operand 0 must begin behind output 0 for that; kNever: impossible.
  static constexpr uint64_t kNever = UINT64_MAX;
  uint64_t lead = kNever;
  std::vector<uint32_t> subprograms;
  std::vector<PlannedDeviceWorkspace> device_workspaces;  // ascending by memory
};

// A value's place; steps are node indices, -1: before the first, nodes.size(): after the last.
struct PlannedValue {
  bool placed = false;  // constants and captured values are not
  uint32_t region = 0;  // index into PlannedProgram::regions
  uint64_t offset = 0, bytes = 0;
  int first_step = 0, last_step = 0;
  ValueId alias_of = kAbsent;
  std::vector<int64_t> strides;  // in bytes; empty: dense
};

// The strides of placed values, for CallView.
struct PlacedStrides {
  const std::vector<PlannedValue>& values;
  const std::vector<int64_t>& strides(ValueId id) const { return values[static_cast<size_t>(id)].strides; }
};

// The memory of one kind that values and the workspaces of its steps take.
struct PlannedRegion {
  uint8_t memory = 0;        // as in Value::memory
  bool state = false;        // of the blocks that states are in, and of nothing else
  uint64_t bytes = 0;        // padding included
  uint64_t lower_bound = 0;  // in this order of steps no arrangement takes less, padding included
  bool proved = false;       // bytes is the minimum
};

struct PlannedProgram {
  std::shared_ptr<const Graph> graph;
  size_t own_inputs = 0;  // the graph's other inputs are captured
  std::vector<PlannedStep> steps;
  std::vector<PlannedValue> values;
  std::vector<PlannedRegion> regions;  // of host memory first, then those of other memories in use,
                                       // ascending; of each memory: that of state last
  uint64_t arena_bytes = 0;            // sum of the regions'
  uint64_t lower_bound = 0;            // likewise
  bool proved = false;                 // all of them are
  uint64_t given_order_bytes = 0;      // arena_bytes of the graph's own order
  bool order_proved = false;           // no order of the steps has a smaller sum of live bytes
  uint64_t copied_state_bytes =
      0;  // that a run copies when it ends, since not all states are updated in place

  // Whether the output of the state is in the state's own bytes, so that nothing has to be copied.
  bool in_place(const GraphState& state) const {
    const PlannedValue &begin = values[static_cast<size_t>(graph->inputs[state.input])],
                       &end = values[static_cast<size_t>(graph->outputs[state.output])];
    return begin.region == end.region && begin.offset == end.offset;
  }
};

struct PlannedModel {
  std::string target;  // the profile's name: "x86_64+avx2"
  Architecture architecture = Architecture::kPortable;
  std::vector<std::string> backends;     // names; the last is "reference"
  std::vector<PlannedProgram> programs;  // 0: the first entry
  std::vector<size_t> entries = {0};     // indices into `programs`: of each shape set
};

// Appends the entry of a plan for the same target and backends as a further shape set.
void add_entry(PlannedModel& model, PlannedModel&& other);

}  // namespace sinter::convert
