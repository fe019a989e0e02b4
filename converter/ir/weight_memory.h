// A cache of results computed from constants, for as long as these live, because trials round the same
// weights repeatedly.
//
// Results are functions of the constant alone, so that remembering them changes nothing but the time. The
// least recently used is forgotten first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "converter/ir/constant.h"

namespace sinter::convert {

// While one of these lives, its thread remembers results.
class WeightMemory {
 public:
  explicit WeightMemory(size_t most_bytes = size_t{16} << 20);
  ~WeightMemory();
  WeightMemory(const WeightMemory&) = delete;
  WeightMemory& operator=(const WeightMemory&) = delete;

  // Returns make() for this constant and axis, or its earlier result. A T has bytes() and a number kKind.
  template <class T, class Make>
  static std::shared_ptr<const T> of(const ConstantPtr& constant, int64_t axis, const Make& make) {
    WeightMemory* const own = current();
    const Key key{constant.get(), axis, T::kKind};
    if (own != nullptr)
      if (auto found = own->find(key, constant)) return std::static_pointer_cast<const T>(found);
    auto made = std::make_shared<const T>(make());
    if (own != nullptr) own->keep(key, constant, made, made->bytes());
    return made;
  }

 private:
  struct Key {
    const Constant* constant;
    int64_t axis;
    int kind;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::weak_ptr<const Constant> constant;
    std::shared_ptr<const void> result;
    size_t bytes = 0;
    uint64_t asked = 0;
  };
  static WeightMemory*& current();
  std::shared_ptr<const void> find(const Key& key, const ConstantPtr& constant);
  void keep(const Key& key, const ConstantPtr& constant, std::shared_ptr<const void> result, size_t bytes);
  void forget(std::map<Key, Entry>::iterator at);

  WeightMemory* const before_;
  const size_t most_bytes_;
  size_t bytes_ = 0;
  uint64_t asked_ = 0;
  std::map<Key, Entry> entries_;
};

}  // namespace sinter::convert
