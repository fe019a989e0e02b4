// Text to tokens and back, by byte pairs (tokens.py has the rules and the file's form).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

class Tokenizer {
 public:
  static constexpr int64_t kEnd = 0;  // begins and ends a text

  // Reads a file of one token a line; on failure size() is 0.
  static Tokenizer open(const char* path);
  size_t size() const { return tokens_.size(); }
  std::vector<int64_t> encode(std::string_view text) const;
  // The bytes of a token; "" for kEnd and numbers that are not tokens.
  const std::string& text(int64_t token) const;

 private:
  void encode_piece(std::string_view piece, std::vector<int64_t>* to) const;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t> numbers_;
};
