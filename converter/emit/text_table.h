// The texts of a file, one after another, each followed by a zero; a text that is the end of another is not
// written again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sinter::convert {

class TextTable {
 public:
  void add(const std::string& text) { texts_.emplace(std::string(text.rbegin(), text.rend()), 0); }
  // Places the texts that were added so far.
  void place();
  // Where the text begins; it was placed. The empty text is at 0.
  uint32_t at(const std::string& text) const {
    return text.empty() ? 0 : texts_.at(std::string(text.rbegin(), text.rend()));
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  // From the last letter to the first, so that an end comes before what it ends.
  std::map<std::string, uint32_t> texts_;
  std::vector<uint8_t> bytes_;
};

}  // namespace sinter::convert
