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
      : graph_(*program.graph), program_(program), options_(options), members_(program.values.size()) {
    for (size_t i = 0; i < program.values.size(); ++i)
      if (program.values[i].placed)
        members_[static_cast<size_t>(root(static_cast<ValueId>(i)))].push_back(static_cast<ValueId>(i));
  }

  void run() {
    std::set<uint8_t> memories{0};
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (program_.values[i].placed) memories.insert(graph_.values[i].memory);
    program_.regions.clear();
    program_.arena_bytes = program_.lower_bound = 0;
    program_.proved = true;
    for (const uint8_t memory : memories) {
      program_.regions.push_back({memory});
      place(static_cast<uint32_t>(program_.regions.size() - 1));
      const PlannedRegion& region = program_.regions.back();
      program_.arena_bytes += region.bytes;
      program_.lower_bound += region.lower_bound;
      program_.proved &= region.proved;
    }
  }

 private:
  PlannedValue& at(ValueId id) { return program_.values[static_cast<size_t>(id)]; }
  // The value that all of its block lie on.
  ValueId root(ValueId id) {
    while (at(id).alias_of >= 0) id = at(id).alias_of;
    return id;
  }

  // What a block's values take when: where they do not live all the time, or not everywhere, other blocks may
  // lie in between.
  MemoryBlock block_of(ValueId root) {
    const std::vector<ValueId>& members = members_[static_cast<size_t>(root)];
    const uint64_t start = at(root).offset;
    MemoryBlock block{0, INT32_MAX, INT32_MIN, 0};
    std::vector<int> times;  // where something begins, or has ended
    for (const ValueId m : members) {
      block.bytes = std::max(block.bytes, at(m).offset - start + at(m).bytes);
      block.first = std::min(block.first, at(m).first_step);
      block.last = std::max(block.last, at(m).last_step);
      times.push_back(at(m).first_step), times.push_back(at(m).last_step + 1);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    for (size_t t = 0; t + 1 < times.size(); ++t) {
      std::vector<std::pair<uint64_t, uint64_t>> spans;
      for (const ValueId m : members)
        if (at(m).first_step <= times[t] && times[t] <= at(m).last_step && at(m).bytes > 0)
          spans.emplace_back(at(m).offset - start, at(m).offset - start + at(m).bytes);
      std::sort(spans.begin(), spans.end());
      for (size_t i = 0; i < spans.size();) {
        MemoryPiece piece{times[t], times[t + 1] - 1, spans[i].first, spans[i].second};
        for (++i; i < spans.size() && spans[i].first <= piece.end; ++i)
          piece.end = std::max(piece.end, spans[i].second);
        const auto before = std::find_if(block.pieces.begin(), block.pieces.end(), [&](const MemoryPiece& p) {
          return p.last + 1 == piece.first && p.begin == piece.begin && p.end == piece.end;
        });
        if (before != block.pieces.end())
          before->last = piece.last;
        else
          block.pieces.push_back(piece);
      }
    }
    if (block.pieces.size() == 1 && block.pieces[0].end - block.pieces[0].begin == block.bytes &&
        block.pieces[0].first == block.first && block.pieces[0].last == block.last)
      block.pieces.clear();
    return block;
  }

  void place(uint32_t index) {
    PlannedRegion& region = program_.regions[index];
    std::vector<MemoryBlock> memory;
    std::vector<std::pair<bool, size_t>> owner;  // (is a workspace, step or root value)
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].empty() || graph_.values[i].memory != region.memory) continue;
      memory.push_back(block_of(static_cast<ValueId>(i)));
      owner.emplace_back(false, i);
    }
    for (size_t n = 0; n < program_.steps.size(); ++n) {
      if (memory_of(graph_, graph_.nodes[n]) != region.memory) continue;
      program_.steps[n].workspace_region = index;
      if (program_.steps[n].workspace_bytes == 0) continue;
      memory.push_back({program_.steps[n].workspace_bytes, static_cast<int>(n), static_cast<int>(n), 0});
      owner.emplace_back(true, n);
    }
    const OffsetResult offsets = assign_offsets(memory, options_);
    region.bytes = offsets.bytes + kReadPadding;
    region.lower_bound = offsets.lower_bound + kReadPadding;
    region.proved = offsets.proved;
    for (size_t b = 0; b < memory.size(); ++b) {
      if (owner[b].first) {
        program_.steps[owner[b].second].workspace_offset = memory[b].offset;
        continue;
      }
      const uint64_t start = at(static_cast<ValueId>(owner[b].second)).offset;
      for (const ValueId m : members_[owner[b].second]) {
        at(m).region = index;
        at(m).offset = at(m).offset - start + memory[b].offset;
      }
    }
  }

  const Graph& graph_;
  PlannedProgram& program_;
  const OffsetOptions& options_;
  std::vector<std::vector<ValueId>> members_;  // by root
};

}  // namespace

void assign_region_offsets(PlannedProgram& program, const OffsetOptions& options) {
  RegionOffsets(program, options).run();
}

}  // namespace sinter::convert
