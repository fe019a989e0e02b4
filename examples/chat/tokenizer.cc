#include "tokenizer.h"

#include <fstream>

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

}  // namespace

Tokenizer Tokenizer::open(const char* path) {
  Tokenizer t;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::string bytes;
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
      if (digit(line[i]) < 0 || digit(line[i + 1]) < 0) return {};
      bytes.push_back(static_cast<char>(16 * digit(line[i]) + digit(line[i + 1])));
    }
    if (!bytes.empty()) t.numbers_.emplace(bytes, static_cast<int64_t>(t.tokens_.size()));
    t.tokens_.push_back(std::move(bytes));
  }
  // Without a token for each byte, some texts could not be encoded.
  for (int byte = 0; byte < 256; ++byte)
    if (!t.numbers_.contains(std::string(1, static_cast<char>(byte)))) return {};
  return t;
}

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int64_t> result;
  for (size_t i = 0; i < text.size();) {
    const size_t first = i;
    if (text[i] == ' ' && i + 1 < text.size() && is_letter(text[i + 1])) ++i;
    if (is_letter(text[i]))
      while (i < text.size() && is_letter(text[i])) ++i;
    else
      ++i;
    encode_piece(text.substr(first, i - first), &result);
  }
  return result;
}

void Tokenizer::encode_piece(std::string_view piece, std::vector<int64_t>* to) const {
  std::vector<std::string> parts;
  for (const char c : piece) parts.emplace_back(1, c);
  for (;;) {
    int64_t best = static_cast<int64_t>(tokens_.size());
    size_t at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = numbers_.find(parts[i] + parts[i + 1]);
      if (found != numbers_.end() && found->second < best) best = found->second, at = i;
    }
    if (best == static_cast<int64_t>(tokens_.size())) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  for (const std::string& part : parts) to->push_back(numbers_.at(part));
}

const std::string& Tokenizer::text(int64_t token) const {
  static const std::string none;
  return token >= 0 && static_cast<size_t>(token) < tokens_.size() ? tokens_[static_cast<size_t>(token)]
                                                                   : none;
}
