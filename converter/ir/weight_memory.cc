#include "converter/ir/weight_memory.h"

#include <algorithm>

namespace sinter::convert {

WeightMemory*& WeightMemory::current() {
  thread_local WeightMemory* memory = nullptr;
  return memory;
}

WeightMemory::WeightMemory(size_t most_bytes) : before_(current()), most_bytes_(most_bytes) {
  current() = this;
}

WeightMemory::~WeightMemory() { current() = before_; }

std::shared_ptr<const void> WeightMemory::find(const Key& key, const ConstantPtr& constant) {
  const auto at = entries_.find(key);
  // Another constant may be at the same address.
  if (at == entries_.end() || at->second.constant.lock() != constant) return nullptr;
  at->second.asked = ++asked_;
  return at->second.result;
}

void WeightMemory::forget(std::map<Key, Entry>::iterator at) {
  bytes_ -= at->second.bytes;
  entries_.erase(at);
}

void WeightMemory::keep(const Key& key, const ConstantPtr& constant, std::shared_ptr<const void> result,
                        size_t bytes) {
  if (bytes > most_bytes_) return;
  // A result may own the constant of another one, so that each round may end further ones.
  for (bool any = true; any;) {
    any = false;
    for (auto at = entries_.begin(); at != entries_.end();) {
      const auto next = std::next(at);
      if (at->second.constant.expired() || at->first == key) forget(at), any = true;
      at = next;
    }
  }
  while (!entries_.empty() && bytes_ + bytes > most_bytes_)
    forget(std::min_element(entries_.begin(), entries_.end(),
                            [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; }));
  entries_[key] = {constant, std::move(result), bytes, ++asked_};
  bytes_ += bytes;
}

}  // namespace sinter::convert
