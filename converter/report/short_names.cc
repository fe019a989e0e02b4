#include "converter/report/short_names.h"

#include <algorithm>
#include <map>
#include <set>

namespace sinter::convert {
namespace {

using Letters = std::vector<std::string>;  // the UTF-8 characters of a name

constexpr const char* kCut = "\xE2\x80\xA6";

Letters letters_of(const std::string& text) {
  Letters letters;
  for (const char c : text) {
    if (letters.empty() || (static_cast<unsigned char>(c) & 0xC0) != 0x80) letters.emplace_back();
    letters.back() += c;
  }
  return letters;
}

std::string joined(const Letters& letters, size_t from, size_t to) {
  std::string text;
  for (size_t i = from; i < to; ++i) text += letters[i];
  return text;
}

bool separates(const std::string& letter) { return letter == "/" || letter == "." || letter == ":"; }

// Returns the number of letters in the common start of all names, up to the end of a part of the names.
size_t common_start(const std::vector<Letters>& names) {
  size_t same = names.front().size();
  for (const Letters& name : names)
    same = std::min<size_t>(
        same, static_cast<size_t>(
                  std::mismatch(name.begin(), name.end(), names.front().begin(), names.front().end()).first -
                  name.begin()));
  while (same > 0 && !separates(names.front()[same - 1])) --same;
  return same;
}

// Returns the end of a name, and before it the part with the letter at `mark` if the end does not have it.
std::string with_end(const Letters& name, size_t start, size_t mark, size_t most) {
  const size_t size = name.size() - start;
  if (size + (start > 0) <= most) return (start > 0 ? kCut : "") + joined(name, start, name.size());
  const size_t end = most - 1;  // the cut takes a letter
  if (mark >= name.size() - std::min(end, name.size()))
    return kCut + joined(name, name.size() - end, name.size());
  size_t part = mark;  // the start of the part that differs
  while (part > start && !separates(name[part - 1]) && mark - part < 6) --part;
  size_t stop = mark;  // the end of this part; a third of the room at most is for it
  while (stop < name.size() && stop - part < most / 3)
    if (separates(name[stop++])) break;
  const size_t tail = most - (stop - part) - 2;
  return (part > 0 ? kCut : "") + joined(name, part, stop) + kCut +
         joined(name, name.size() - tail, name.size());
}

}  // namespace

std::vector<std::string> short_names(const std::vector<std::string>& names, size_t most) {
  std::vector<std::string> result(names.size());
  if (names.empty()) return result;
  const std::set<std::string> distinct(names.begin(), names.end());
  std::vector<Letters> letters;
  for (const std::string& name : distinct) letters.push_back(letters_of(name));
  std::vector<Letters> too_long;
  for (const Letters& l : letters)
    if (l.size() > most) too_long.push_back(l);
  const size_t common = too_long.size() > 1 ? common_start(too_long) : 0;
  // Names are sorted, so that the name with the longest common start is a neighbour.
  std::map<std::string, std::vector<size_t>> by_short;
  std::vector<std::string> shorts(letters.size());
  const auto start_of = [&](const Letters& l) { return l.size() > most ? common : 0; };
  for (size_t i = 0; i < letters.size(); ++i) {
    shorts[i] = with_end(letters[i], start_of(letters[i]), letters[i].size(), most);
    by_short[shorts[i]].push_back(i);
  }
  std::set<std::string> taken;
  for (const auto& [text, alike] : by_short)
    if (alike.size() == 1) taken.insert(text);
  for (const auto& [text, alike] : by_short) {
    for (size_t k = 0; k < alike.size() && alike.size() > 1; ++k) {
      const Letters& name = letters[alike[k]];
      const Letters& other = letters[alike[k > 0 ? k - 1 : 1]];
      const auto mark = static_cast<size_t>(
          std::mismatch(name.begin(), name.end(), other.begin(), other.end()).first - name.begin());
      std::string candidate = with_end(name, start_of(name), mark, most);
      for (int n = 2; !taken.insert(candidate).second; ++n) {
        const std::string number = "~" + std::to_string(n);
        candidate = joined(letters_of(text), 0, most - number.size()) + number;
      }
      shorts[alike[k]] = candidate;
    }
  }
  std::map<std::string, std::string> short_of;
  size_t i = 0;
  for (const std::string& name : distinct) short_of[name] = shorts[i++];
  for (size_t n = 0; n < names.size(); ++n) result[n] = short_of[names[n]];
  return result;
}

}  // namespace sinter::convert
