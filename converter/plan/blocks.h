// Blocks: values at fixed distances from one another because a step is elided or works in place.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

class Blocks {
 public:
  explicit Blocks(size_t value_count)
      : root_(value_count), delta_(value_count), alias_(value_count, kAbsent), members_(value_count) {
    for (size_t i = 0; i < value_count; ++i) root_[i] = static_cast<ValueId>(i), members_[i] = {root_[i]};
  }
  ValueId root(ValueId v) const { return root_[static_cast<size_t>(v)]; }
  // Distance in bytes of v's first byte from its block's root.
  uint64_t delta(ValueId v) const { return delta_[static_cast<size_t>(v)]; }
  const std::vector<ValueId>& members(ValueId root_id) const {
    return members_[static_cast<size_t>(root_id)];
  }
  // The value that v (once the root of a block) was put onto, or kAbsent.
  ValueId alias_of(ValueId v) const { return alias_[static_cast<size_t>(v)]; }

  // Puts v's whole block `distance` bytes behind the start of `onto`; delta(v) must be 0.
  void join(ValueId v, ValueId onto, uint64_t distance) {
    const ValueId from = root(v), to = root(onto);
    const uint64_t shift = delta(onto) + distance;
    for (const ValueId m : members_[static_cast<size_t>(from)]) {
      root_[static_cast<size_t>(m)] = to;
      delta_[static_cast<size_t>(m)] += shift;
      members_[static_cast<size_t>(to)].push_back(m);
    }
    members_[static_cast<size_t>(from)].clear();
    alias_[static_cast<size_t>(from)] = onto;
  }

 private:
  std::vector<ValueId> root_;
  std::vector<uint64_t> delta_;
  std::vector<ValueId> alias_;
  std::vector<std::vector<ValueId>> members_;
};

}  // namespace sinter::convert
