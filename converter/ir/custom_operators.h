// CustomOperators: the custom operators that a program was given (sinter/custom_op.h), and the definitions of
// the nodes that use them. Graphs refer to both, so that this object must outlive them.
#pragma once

#include <deque>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "converter/ir/constant.h"
#include "converter/ir/graph.h"
#include "runtime/core/custom_ops.h"

namespace sinter::convert {

class CustomOperators {
 public:
  // Adds operators. Refuses (kInvalidArgument) an incomplete one, and one whose name and version are taken.
  Status add(CustomOps ops);
  CustomOps all() const { return ops_; }
  bool empty() const { return ops_.empty(); }

  // Returns the operator of that name with the largest since_version up to `version`, or null. `newer`
  // becomes the smallest since_version above `version`, or 0.
  const sinter_custom_op* find(std::string_view domain, std::string_view name, int64_t version,
                               uint32_t* newer) const;
  // Returns an aligned copy of the bytes, which lives as long as this object.
  AttrBytes keep(std::span<const std::byte> definition) const;

 private:
  std::vector<const sinter_custom_op*> ops_;
  mutable std::mutex mutex_;
  mutable std::deque<std::vector<uint64_t>> definitions_;
};

// Returns the operators that a graph and its bodies use, each once.
std::vector<const sinter_custom_op*> custom_ops_of(const Graph& graph);

}  // namespace sinter::convert
