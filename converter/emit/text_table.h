// The texts of a file, each followed by a zero. A text that is the end of another has the other's bytes.
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
  // Returns the start of a text that was placed. The empty text is at 0.
  uint32_t at(const std::string& text) const {
    return text.empty() ? 0 : texts_.at(std::string(text.rbegin(), text.rend()));
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  // Texts from the last letter to the first, so that an end of a text sorts before the text.
  std::map<std::string, uint32_t> texts_;
  std::vector<uint8_t> bytes_;
};

}  // namespace sinter::convert
