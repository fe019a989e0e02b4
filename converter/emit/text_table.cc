#include "converter/emit/text_table.h"

namespace sinter::convert {

void TextTable::place() {
  bytes_.assign(1, 0);
  const std::string* longer = nullptr;
  uint32_t end = 0;  // the end of `longer`
  for (auto it = texts_.rbegin(); it != texts_.rend(); ++it) {
    const std::string& reversed = it->first;
    if (longer == nullptr || !longer->starts_with(reversed)) {
      bytes_.insert(bytes_.end(), reversed.rbegin(), reversed.rend());
      end = static_cast<uint32_t>(bytes_.size());
      bytes_.push_back(0);
      longer = &reversed;
    }
    it->second = end - static_cast<uint32_t>(reversed.size());
  }
}

}  // namespace sinter::convert
