#include "converter/plan/region_offsets.h"

#include <algorithm>
#include <climits>
#include <set>

#include "converter/plan/place_memories.h"

namespace sinter::convert {
namespace {

class RegionOffsets {
 public:
  RegionOffsets(PlannedProgram& program, const OffsetOptions& options)
      : graph_(*program.graph),
        program_(program),
        options_(options),
        root_(program.values.size(), kAbsent),
        members_(program.values.size()) {
    for (size_t i = 0; i < program.values.size(); ++i)
      if (program.values[i].placed)
        members_[static_cast<size_t>(root(static_cast<ValueId>(i)))].push_back(static_cast<ValueId>(i));
  }

  void run() {
    std::set<uint8_t> memories{0};
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (program_.values[i].placed) memories.insert(graph_.values[i].memory);
    for (const PlannedStep& step : program_.steps)
      for (const PlannedDeviceWorkspace& w : step.device_workspaces) memories.insert(w.memory);
    program_.regions.clear();
    program_.arena_bytes = program_.lower_bound = 0;
    program_.proved = true;
    std::set<uint8_t> with_state;
    keeps_.resize(program_.values.size());
    for (const GraphState& s : graph_.states) {
      const ValueId block = root(graph_.inputs[s.input]);
      keeps_[static_cast<size_t>(block)] = true;
      with_state.insert(graph_.value(block).memory);
    }
    for (const uint8_t memory : memories) {
      add_region(memory, false);
      if (with_state.count(memory) > 0) add_region(memory, true);
    }
  }

 private:
  void add_region(uint8_t memory, bool state) {
    program_.regions.push_back({memory, state});
    place(static_cast<uint32_t>(program_.regions.size() - 1));
    const PlannedRegion& region = program_.regions.back();
    program_.arena_bytes += region.bytes;
    program_.lower_bound += region.lower_bound;
    program_.proved &= region.proved;
  }

  using Span = std::pair<uint64_t, uint64_t>;  // bytes, from the block's start

  PlannedValue& at(ValueId id) { return program_.values[static_cast<size_t>(id)]; }
  // The value on which all of its block is placed. Chains are long and followed once.
  ValueId root(ValueId id) {
    std::vector<ValueId> way;
    for (; root_[static_cast<size_t>(id)] == kAbsent && at(id).alias_of >= 0; id = at(id).alias_of)
      way.push_back(id);
    const ValueId found = at(id).alias_of >= 0 ? root_[static_cast<size_t>(id)] : id;
    for (const ValueId v : way) root_[static_cast<size_t>(v)] = found;
    return found;
  }

  // The occupation of a block over time: where they do not live all the time, or not everywhere, other blocks
  // may be placed in between.
  MemoryBlock block_of(ValueId root) {
    const std::vector<ValueId>& members = members_[static_cast<size_t>(root)];
    const uint64_t start = at(root).offset;
    MemoryBlock block{0, INT32_MAX, INT32_MIN, 0};
    struct Change {
      int step;  // that something begins with, or before which it has ended
      bool begins;
      Span span;
    };
    std::vector<Change> changes;
    for (const ValueId m : members) {
      const Span span{at(m).offset - start, at(m).offset - start + at(m).bytes};
      block.bytes = std::max(block.bytes, span.second);
      block.first = std::min(block.first, at(m).first_step);
      block.last = std::max(block.last, at(m).last_step);
      if (at(m).bytes == 0) continue;
      changes.push_back({at(m).first_step, true, span});
      changes.push_back({at(m).last_step + 1, false, span});
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.step < b.step; });
    std::vector<Span> living;    // sorted
    std::vector<size_t> latest;  // pieces that last until the step before
    for (size_t c = 0; c < changes.size();) {
      const int step = changes[c].step;
      for (; c < changes.size() && changes[c].step == step; ++c) {
        const Span& span = changes[c].span;
        const auto place = std::lower_bound(living.begin(), living.end(), span);
        if (changes[c].begins)
          living.insert(place, span);
        else
          living.erase(place);
      }
      if (living.empty()) {
        latest.clear();
        continue;
      }
      std::vector<size_t> now;
      for (size_t i = 0, before = 0; i < living.size();) {
        MemoryPiece piece{step, changes[c].step - 1, living[i].first, living[i].second};
        for (++i; i < living.size() && living[i].first <= piece.end; ++i)
          piece.end = std::max(piece.end, living[i].second);
        while (before < latest.size() && block.pieces[latest[before]].begin < piece.begin) ++before;
        if (before < latest.size() && block.pieces[latest[before]].begin == piece.begin &&
            block.pieces[latest[before]].end == piece.end) {
          block.pieces[latest[before]].last = piece.last;
          now.push_back(latest[before]);
        } else {
          now.push_back(block.pieces.size());
          block.pieces.push_back(piece);
        }
      }
      latest = std::move(now);
    }
    if (block.pieces.size() == 1 && block.pieces[0].end - block.pieces[0].begin == block.bytes &&
        block.pieces[0].first == block.first && block.pieces[0].last == block.last)
      block.pieces.clear();
    return block;
  }

  void place(uint32_t index) {
    PlannedRegion& region = program_.regions[index];
    std::vector<MemoryBlock> memory;
    struct Owner {
      size_t value = SIZE_MAX;     // a root; or
      uint64_t* offset = nullptr;  // of a workspace
    };
    std::vector<Owner> owner;
    const auto add_workspace = [&](size_t n, uint64_t bytes, uint64_t* offset) {
      memory.push_back({bytes, static_cast<int>(n), static_cast<int>(n), 0});
      owner.push_back({SIZE_MAX, offset});
    };
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].empty() || graph_.values[i].memory != region.memory || keeps_[i] != region.state)
        continue;
      memory.push_back(block_of(static_cast<ValueId>(i)));
      owner.push_back({i});
    }
    for (size_t n = 0; !region.state && n < program_.steps.size(); ++n) {
      PlannedStep& step = program_.steps[n];
      for (PlannedDeviceWorkspace& w : step.device_workspaces)
        if (w.memory == region.memory) w.region = index, add_workspace(n, w.bytes, &w.offset);
      if (memory_of(graph_, graph_.nodes[n]) != region.memory) continue;
      step.workspace_region = index;
      if (step.workspace_bytes > 0) add_workspace(n, step.workspace_bytes, &step.workspace_offset);
    }
    const OffsetResult offsets = assign_offsets(memory, options_);
    region.bytes = offsets.bytes + kReadPadding;
    region.lower_bound = offsets.lower_bound + kReadPadding;
    region.proved = offsets.proved;
    for (size_t b = 0; b < memory.size(); ++b) {
      if (owner[b].offset != nullptr) {
        *owner[b].offset = memory[b].offset;
        continue;
      }
      const uint64_t start = at(static_cast<ValueId>(owner[b].value)).offset;
      for (const ValueId m : members_[owner[b].value]) {
        at(m).region = index;
        at(m).offset = at(m).offset - start + memory[b].offset;
      }
    }
  }

  const Graph& graph_;
  PlannedProgram& program_;
  const OffsetOptions& options_;
  std::vector<bool> keeps_;                    // by root: the block has a state in it
  std::vector<ValueId> root_;                  // where it has been found
  std::vector<std::vector<ValueId>> members_;  // by root
};

}  // namespace

void assign_region_offsets(PlannedProgram& program, const OffsetOptions& options) {
  RegionOffsets(program, options).run();
}

}  // namespace sinter::convert
