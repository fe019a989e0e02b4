// ConstantPool: the distinct constants of all programs, in order of first use, and their places in the file.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "converter/ir/constant.h"
#include "runtime/model/format.h"

namespace sinter::convert {

class ConstantPool {
 public:
  struct Entry {
    ConstantPtr constant;
    uint64_t offset = 0;
    bool shared = false;  // it has an earlier entry's bytes, as another type or under other dims
  };
  enum class Layout {
    kDense,  // equal bytes are in the segment once, under equal type and dims as one entry
    kPages,  // large constants (large_bytes.h) have whole pages to themselves, and none is read
  };
  explicit ConstantPool(Layout layout = Layout::kDense) : layout_(layout) {}

  // Adds a constant unless it is in the pool, and returns its index.
  int32_t add(const ConstantPtr& constant);
  const std::vector<Entry>& entries() const { return entries_; }
  // Returns the bytes with the padding after the last constant; 0 if there are none.
  uint64_t segment_bytes() const { return entries_.empty() ? 0 : end_ + format::kSegmentPadding; }

 private:
  int32_t add_entry(const ConstantPtr& constant, std::optional<uint64_t> shared);

  Layout layout_;
  std::vector<Entry> entries_;
  std::map<const Constant*, int32_t> by_address_;
  std::multimap<uint64_t, int32_t> by_digest_;
  uint64_t end_ = 0;
};

}  // namespace sinter::convert
