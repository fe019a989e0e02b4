// The planner's checker: checks the rules of schemas/FORMAT.md ("Planned memory"), independently of how the
// plan was made.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "converter/ir/call_view.h"
#include "converter/plan/elide.h"
#include "converter/plan/planner.h"
#include "runtime/kernels/reference.h"
#include "runtime/model/overlap.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostRegions = 16;  // of a file

struct Interval {
  uint32_t region;
  uint64_t begin, end;
  int first, last;
  ValueId value;  // kAbsent: a workspace
  int step;
};

bool both_live(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }
bool overlap(const Interval& a, const Interval& b) {
  return a.region == b.region && a.begin < b.end && b.begin < a.end;
}

class ProgramCheck {
 public:
  ProgramCheck(const PlannedModel& model, const PlannedProgram& program)
      : model_(model),
        program_(program),
        entry_(&program == &model.programs[0]),
        graph_(*program.graph),
        data_(graph_.values.size()) {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<ValueId>(i);
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (program.steps[n].elided)
        for (const ValueId in : graph_.nodes[n].inputs) merge(in, graph_.nodes[n].outputs[0]);
  }

  std::string run() {
    if (std::string fault = check_regions(); !fault.empty()) return fault;
    if (std::string fault = check_memories(); !fault.empty()) return fault;
    std::vector<Interval> all;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const PlannedValue& v = program_.values[i];
      if (!v.placed) continue;
      if (v.offset + v.bytes + kReadPadding > program_.regions[v.region].bytes)
        return fmt::format("value {} leaves the arena", i);
      if (v.bytes == 0) continue;
      Interval interval{
          v.region, v.offset, v.offset + v.bytes, v.first_step, v.last_step, static_cast<ValueId>(i), -1};
      if (const GraphState* state = entry_ ? graph_.state_read(interval.value) : nullptr; state != nullptr) {
        if (std::string fault = check_state(*state); !fault.empty()) return fault;
        // The old content is needed up to its last reader; the bytes again when the new one is copied.
        interval.last = last_reader(interval.value);
        if (!program_.in_place(*state)) {
          Interval target = interval;
          target.first = target.last = static_cast<int>(graph_.nodes.size());
          all.push_back(target);
        }
      }
      all.push_back(interval);
    }
    for (size_t n = 0; n < program_.steps.size(); ++n) {
      const PlannedStep& s = program_.steps[n];
      if (s.workspace_offset + s.workspace_bytes + kReadPadding > program_.regions[s.workspace_region].bytes)
        return fmt::format("the workspace of step {} leaves the arena", n);
      const int step = static_cast<int>(n);
      if (s.workspace_bytes > 0)
        all.push_back({s.workspace_region, s.workspace_offset, s.workspace_offset + s.workspace_bytes, step,
                       step, kAbsent, step});
      for (const PlannedDeviceWorkspace& w : s.device_workspaces)
        all.push_back({w.region, w.offset, w.offset + w.bytes, step, step, kAbsent, step});
    }
    const std::vector<int32_t> blocks = block_of_each(all);
    if (std::string fault = check_apart(all, blocks); !fault.empty()) return fault;
    return check_together(all, blocks);
  }

 private:
  // A number for each interval: the same for values that may share bytes while both are live, because they
  // are the same data or one is written in the other's place.
  std::vector<int32_t> block_of_each(const std::vector<Interval>& all) {
    std::vector<ValueId> block = data_;
    const auto root = [&](ValueId v) {
      while (block[static_cast<size_t>(v)] != v)
        v = block[static_cast<size_t>(v)] = block[static_cast<size_t>(block[static_cast<size_t>(v)])];
      return v;
    };
    std::vector<const Interval*> of_value(block.size());
    for (const Interval& i : all)
      if (i.value != kAbsent) of_value[static_cast<size_t>(i.value)] = &i;
    for (const Node& node : graph_.nodes)
      for (const ValueId in : node.inputs)
        for (const ValueId out : node.outputs) {
          if (!placed(in) || !placed(out)) continue;
          const Interval *before = of_value[static_cast<size_t>(in)],
                         *after = of_value[static_cast<size_t>(out)];
          if (before != nullptr && after != nullptr && overlap(*before, *after) && explained(*before, *after))
            block[static_cast<size_t>(root(in))] = root(out);
        }
    std::vector<int32_t> result;
    auto next = static_cast<int32_t>(block.size());
    for (const Interval& i : all) result.push_back(i.value == kAbsent ? next++ : root(i.value));
    return result;
  }

  // Intervals of different blocks never have a byte in common while both are live.
  std::string check_apart(const std::vector<Interval>& all, const std::vector<int32_t>& blocks) const {
    std::vector<uint64_t> base(program_.regions.size() + 1);
    for (size_t r = 0; r < program_.regions.size(); ++r) base[r + 1] = base[r] + program_.regions[r].bytes;
    std::vector<detail::Box> boxes;
    for (size_t i = 0; i < all.size(); ++i)
      boxes.push_back({base[all[i].region] + all[i].begin, base[all[i].region] + all[i].end, all[i].first,
                       all[i].last, blocks[i], all[i].value});
    BumpArena measured;
    detail::measure_disjoint(boxes.size(), measured);
    std::vector<std::byte> scratch(measured.used() + kBufferAlignment);
    void* start = scratch.data();
    size_t room = scratch.size();
    std::align(kBufferAlignment, measured.used(), start, room);
    BumpArena arena(std::span(static_cast<std::byte*>(start), room));
    const Status apart = detail::prove_disjoint(boxes, arena);
    return apart.ok() ? ""
                      : fmt::format("values {} and {} share bytes while both are live", apart.a, apart.b);
  }

  // Within a block, what shares bytes with live ones is explained. Those of the same data are passed over
  // together, so that a long Concat is not a comparison of all its parts.
  std::string check_together(const std::vector<Interval>& all, const std::vector<int32_t>& blocks) {
    std::map<int32_t, std::vector<const Interval*>> members;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].value != kAbsent) members[blocks[i]].push_back(&all[i]);
    for (auto& [block, intervals] : members) {
      std::stable_sort(intervals.begin(), intervals.end(),
                       [](const Interval* a, const Interval* b) { return a->first < b->first; });
      std::map<ValueId, std::vector<const Interval*>> live;  // by data
      for (const Interval* now : intervals) {
        const ValueId data = find(now->value);
        for (auto it = live.begin(); it != live.end();) {
          if (it->first == data) {
            ++it;
            continue;
          }
          std::erase_if(it->second, [&](const Interval* other) { return other->last < now->first; });
          for (const Interval* other : it->second)
            if (overlap(*other, *now) && both_live(*other, *now) && !explained(*other, *now))
              return fmt::format("values {} and {} share bytes while both are live", other->value,
                                 now->value);
          it = it->second.empty() ? live.erase(it) : std::next(it);
        }
        live[data].push_back(now);
      }
    }
    return {};
  }

  // Host memory first, each memory once.
  std::string check_regions() const {
    uint64_t sum = 0;
    for (size_t r = 0; r < program_.regions.size(); ++r) {
      const auto kind = [&](size_t i) {
        return 2 * program_.regions[i].memory + (program_.regions[i].state ? 1 : 0);
      };
      if (r == 0 ? kind(r) != 0 : kind(r) <= kind(r - 1))
        return fmt::format("region {} is of the wrong memory", r);
      sum += program_.regions[r].bytes;
    }
    if (program_.regions.empty() || program_.regions.size() > kMostRegions)
      return "too few or too many regions";
    return sum == program_.arena_bytes ? "" : "the arena is not the sum of the regions";
  }

  int last_reader(ValueId id) const {
    int last = -1;
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (std::count(graph_.nodes[n].inputs.begin(), graph_.nodes[n].inputs.end(), id) > 0)
        last = static_cast<int>(n);
    return last;
  }
  // In a region of its own, and of the type, shape and memory that it has after a run.
  std::string check_state(const GraphState& state) const {
    const ValueId begin = graph_.inputs[state.input], end = graph_.outputs[state.output];
    if (!program_.regions[program_.values[static_cast<size_t>(begin)].region].state || !placed(end))
      return fmt::format("state '{}' is in the wrong region", state.input_name);
    const Value &old = graph_.value(begin), &fresh = graph_.value(end);
    if (old.dtype != fresh.dtype || old.dims != fresh.dims || memory(begin) != memory(end) ||
        !program_.values[static_cast<size_t>(begin)].strides.empty() ||
        !program_.values[static_cast<size_t>(end)].strides.empty() ||
        (state.initial && (state.initial->dtype() != old.dtype || state.initial->dims() != old.dims)))
      return fmt::format("state '{}' changes its type, shape or memory", state.input_name);
    return {};
  }

  // Captured values are their owner's.
  uint8_t memory(ValueId id) const {
    return placed(id) ? program_.regions[program_.values[static_cast<size_t>(id)].region].memory
           : id >= 0  ? graph_.value(id).memory
                      : uint8_t{0};
  }
  bool placed(ValueId id) const { return id >= 0 && program_.values[static_cast<size_t>(id)].placed; }
  // Constants are brought to where a step reads them.
  bool touched(ValueId id) const { return id >= 0 && !graph_.is_constant(id); }

  // Everything is in memory that its users can reach.
  std::string check_memories() const {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (program_.values[i].region >= program_.regions.size())
        return fmt::format("value {} has no region", i);
      if (memory(static_cast<ValueId>(i)) != graph_.values[i].memory ||
          (graph_.values[i].constant && graph_.values[i].memory != 0))
        return fmt::format("value {} is in the wrong memory", i);
      for (const auto& [axis, count] : graph_.values[i].bounded_dims)
        if (memory(count) != 0) return fmt::format("value {} has a length that the host does not see", i);
    }
    for (const auto* list : {&graph_.inputs, &graph_.outputs})
      for (const ValueId id : *list)
        if (entry_ && memory(id) != 0 && graph_.state_read(id) == nullptr &&
            graph_.state_written(id) == nullptr)
          return fmt::format("port {} is not in host memory", id);
    for (size_t n = 0; n < program_.steps.size(); ++n) {
      if (program_.steps[n].workspace_region >= program_.regions.size())
        return fmt::format("the workspace of step {} has no region", n);
      const bool control = !graph_.nodes[n].bodies.empty();
      if (std::string fault = control ? check_control(graph_.nodes[n], program_.steps[n])
                                      : check_step(graph_.nodes[n], program_.steps[n]);
          !fault.empty())
        return fmt::format("step {}: {}", n, fault);
    }
    return {};
  }

  std::string check_step(const Node& node, const PlannedStep& step) const {
    std::vector<uint8_t> seen;  // memories of its operands
    for (const auto* list : {&node.inputs, &node.outputs})
      for (const ValueId id : *list)
        if (touched(id)) seen.push_back(memory(id));
    const uint8_t most = seen.empty() ? uint8_t{0} : *std::max_element(seen.begin(), seen.end());
    const bool mixed = std::count(seen.begin(), seen.end(), most) != static_cast<ptrdiff_t>(seen.size());
    if (mixed) {
      // A transfer.
      const auto fits = [&](ValueId id) { return touched(id) && (memory(id) == 0 || memory(id) == most); };
      if (node.op() != Op::kCopy || step.elided || !fits(node.inputs[0]) || !fits(node.outputs[0]))
        return "operands in different memories";
      if (step.workspace_bytes > 0) return "a transfer has a workspace";
    } else if (step.workspace_bytes > 0 && program_.regions[step.workspace_region].memory != most) {
      return "the workspace is in another memory than the operands";
    }
    if (most > 0 && step.candidates != std::vector<uint8_t>{static_cast<uint8_t>(most - 1)})
      return "another backend's candidates";
    return most == 0 ? check_host_step(step) : std::string();
  }

  std::string check_host_step(const PlannedStep& step) const {
    for (const PlannedRegion& region : model_.programs[0].regions)
      if (region.memory > 0 &&
          std::count(step.candidates.begin(), step.candidates.end(), region.memory - 1) > 0)
        return "a candidate that does not see host memory";
    return {};
  }

  // Checks that the values which the session copies into bodies and out of them stay in its memory, and that
  // the bodies' regions fit.
  std::string check_control(const Node& node, const PlannedStep& step) const {
    const auto* loop = node.as<LoopAttrs>();
    const auto carried = loop != nullptr ? static_cast<size_t>(loop->carried) : 0;
    if (memory(node.inputs[0]) != 0 || (loop != nullptr && memory(node.inputs[1]) != 0))
      return "a condition that the host does not see";
    for (const PlannedDeviceWorkspace& w : step.device_workspaces)
      if (w.region >= program_.regions.size() || program_.regions[w.region].memory != w.memory ||
          w.offset + w.bytes + kReadPadding > program_.regions[w.region].bytes)
        return "a workspace on a device leaves its region";
    for (const uint32_t sub : step.subprograms) {
      const PlannedProgram& body = model_.programs[sub];
      for (const PlannedRegion& region : body.regions) {
        uint64_t room = region.memory == 0 ? step.workspace_bytes : 0;
        for (const PlannedDeviceWorkspace& w : step.device_workspaces)
          if (w.memory == region.memory) room = w.bytes;
        if (region.bytes > room) return "a body leaves the workspace";
      }
      const auto inside = [&](ValueId id) { return body.graph->value(id).memory; };
      const auto &parameters = body.graph->inputs, &results = body.graph->outputs;
      for (size_t i = 0; i < parameters.size(); ++i) {
        const size_t from = i < body.own_inputs ? i : node.inputs.size() - parameters.size() + i;
        if (loop != nullptr && i < 2 ? inside(parameters[i]) != 0
                                     : memory(node.inputs[from]) != inside(parameters[i]))
          return "a body's parameter is in another memory than what it is given";
      }
      for (size_t i = 0; i < results.size(); ++i) {
        const uint8_t place = inside(results[i]);
        if (loop != nullptr && i == 0 ? place != 0
                                      : i <= carried && loop != nullptr && place != inside(parameters[i + 1]))
          return "a body's result is in another memory than its parameter";
        const size_t to = loop != nullptr ? i - 1 : i;
        if ((loop == nullptr || i > 0) && node.outputs[to] >= 0 && memory(node.outputs[to]) != place)
          return "a body's result is in another memory than the step's";
      }
    }
    return check_host_step(step);
  }

  ValueId find(ValueId v) {
    return data_[static_cast<size_t>(v)] == v
               ? v
               : data_[static_cast<size_t>(v)] = find(data_[static_cast<size_t>(v)]);
  }
  void merge(ValueId a, ValueId b) { data_[static_cast<size_t>(find(a))] = find(b); }

  bool explained(const Interval& a, const Interval& b) {
    if (a.value == kAbsent || b.value == kAbsent) return false;
    if (find(a.value) == find(b.value)) return true;
    return in_place(a, b) || in_place(b, a) || in_order(a, b) || in_order(b, a);
  }
  // `later` is output 0 of a step in order that reads `earlier`, its operand 0, for the last time.
  bool in_order(const Interval& earlier, const Interval& later) const {
    if (later.first < 0 || later.first != earlier.last || later.begin > earlier.begin) return false;
    const Node& node = graph_.nodes[static_cast<size_t>(later.first)];
    if (!program_.steps[static_cast<size_t>(later.first)].in_order || node.inputs[0] != earlier.value ||
        node.outputs[0] != later.value)
      return false;
    const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(node.op()))];
    const CallView view(graph_, node);
    size_t lead = 0;
    return kernel->lead != nullptr && kernel->lead(view.call, &lead).ok() &&
           earlier.begin - later.begin >= lead;
  }
  // `later` is a result that a step may place on `earlier`, which it reads for the last time.
  bool in_place(const Interval& earlier, const Interval& later) const {
    if (later.first < 0 || later.first != earlier.last || later.begin != earlier.begin ||
        later.end != earlier.end)
      return false;
    const Node& node = graph_.nodes[static_cast<size_t>(later.first)];
    return works_in_place(node, earlier.value) == later.value &&
           graph_.value(earlier.value).dims == graph_.value(later.value).dims &&
           program_.values[static_cast<size_t>(earlier.value)].strides ==
               program_.values[static_cast<size_t>(later.value)].strides;
  }

  const PlannedModel& model_;
  const PlannedProgram& program_;
  const bool entry_;
  const Graph& graph_;
  std::vector<ValueId> data_;  // union-find: values that are the same data
};

}  // namespace

std::string check_plan(const PlannedModel& model) {
  for (const PlannedProgram& program : model.programs)
    if (std::string fault = ProgramCheck(model, program).run(); !fault.empty()) return fault;
  return {};
}

}  // namespace sinter::convert
