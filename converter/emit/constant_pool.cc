#include "converter/emit/constant_pool.h"

#include <cstring>

#include "converter/ir/large_bytes.h"
#include "runtime/core/checked.h"

namespace sinter::convert {

int32_t ConstantPool::add(const ConstantPtr& constant) {
  if (const auto it = by_address_.find(constant.get()); it != by_address_.end()) return it->second;
  if (layout_ == Layout::kPages) return add_entry(constant, std::nullopt);
  const LoadedBytes loaded = constant->load();
  const format::Digest digest = format::digest_of(loaded.bytes);
  uint64_t key = 0;
  std::memcpy(&key, digest.bytes, sizeof(key));
  std::optional<uint64_t> there;
  for (auto [it, last] = by_digest_.equal_range(key); it != last; ++it) {
    const Entry& entry = entries_[static_cast<size_t>(it->second)];
    const Constant& other = *entry.constant;
    const LoadedBytes same = other.load();
    if (same.bytes.size() != loaded.bytes.size() ||
        (!same.bytes.empty() && std::memcmp(same.bytes.data(), loaded.bytes.data(), same.bytes.size()) != 0))
      continue;
    if (!loaded.bytes.empty()) there = entry.offset;
    if (other.dtype() != constant->dtype() || other.dims() != constant->dims()) continue;
    by_address_.emplace(constant.get(), it->second);
    return it->second;
  }
  const int32_t index = add_entry(constant, there);
  by_digest_.emplace(key, index);
  return index;
}

int32_t ConstantPool::add_entry(const ConstantPtr& constant, std::optional<uint64_t> shared) {
  const auto index = static_cast<int32_t>(entries_.size());
  const uint64_t bytes = constant->byte_size();
  const bool pages = layout_ == Layout::kPages && bytes >= kLargeConstantBytes;
  const uint64_t offset = shared ? *shared : align_up(end_, pages ? page_bytes() : format::kAlignment);
  // The bytes of the next constant, or the segment's padding, can be read behind every constant.
  if (!shared) end_ = pages ? align_up(offset + bytes, page_bytes()) : offset + bytes;
  entries_.push_back({constant, offset, shared.has_value()});
  by_address_.emplace(constant.get(), index);
  return index;
}

}  // namespace sinter::convert
