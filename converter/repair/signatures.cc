#include "converter/repair/signatures.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

namespace sinter::convert {
namespace {

struct SignatureRow {
  const char *domain, *op;
  int version;
  const char *operands, *results, *sets;
};

constexpr SignatureRow kSignatureRows[] = {
#define SINTER_ONNX_TYPES(domain, op, version, operands, results, sets) \
  {domain, op, version, operands, results, sets},
#include "converter/repair/onnx_types.def"
#undef SINTER_ONNX_TYPES
};

// The rows of each operator are together, by version.
const SignatureRow* row_of(const std::string& domain, const std::string& op, int64_t opset, bool or_first) {
  static const auto* const kFirst = [] {
    auto* first = new std::map<std::pair<std::string_view, std::string_view>, const SignatureRow*>;
    for (const SignatureRow& row : kSignatureRows) first->emplace(std::pair(row.domain, row.op), &row);
    return first;
  }();
  const auto at = kFirst->find({domain, op});
  if (at == kFirst->end()) return nullptr;
  const SignatureRow *row = at->second, *found = nullptr;
  for (; row != std::end(kSignatureRows) && op == row->op && domain == row->domain; ++row)
    if (row->version <= opset) found = row;
  return found == nullptr && or_first ? at->second : found;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = text.find(' ');
    if (end != 0) words.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

uint32_t number_in(std::string_view text, int base) {
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

}  // namespace

OnnxType TypeSet::only() const { return std::has_single_bit(types) ? std::countr_zero(types) : 0; }

std::vector<Signature::Port> Signature::ports(const char* words, const char* sets) {
  std::map<std::string_view, uint32_t> masks;
  for (const std::string_view set : words_of(sets)) {
    const size_t equal = set.find('=');
    masks[set.substr(0, equal)] = number_in(set.substr(equal + 1), 16);
  }
  std::vector<Port> ports;
  for (std::string_view word : words_of(words)) {
    Port& port = ports.emplace_back();
    port.repeats = word.back() == '+' || word.back() == '*';
    port.set.differ = word.back() == '*';
    if (port.repeats) word.remove_suffix(1);
    if (word[0] == '#') {
      const uint32_t type = number_in(word.substr(1), 10);
      port.set.types = type == 0 ? 0 : uint32_t{1} << type;
    } else {
      port.set.name = word, port.set.types = masks[word];
    }
  }
  return ports;
}

TypeSet Signature::port(const std::vector<Port>& ports, size_t i) {
  if (i < ports.size()) return ports[i].set;
  return !ports.empty() && ports.back().repeats ? ports.back().set : TypeSet();
}

std::optional<Signature> signature_of(const std::string& domain, const std::string& op, int64_t opset) {
  const SignatureRow* row = row_of(domain, op, opset, true);
  if (row == nullptr) return std::nullopt;
  Signature signature;
  signature.operands_ = Signature::ports(row->operands, row->sets);
  signature.results_ = Signature::ports(row->results, row->sets);
  signature.version_ = row->version;
  return signature;
}

int version_in_force(const std::string& domain, const std::string& op, int64_t opset) {
  const SignatureRow* row = row_of(domain, op, opset, false);
  return row == nullptr ? 0 : row->version;
}

OnnxType nearest_type(OnnxType type, const TypeSet& set) {
  if (set.has(type)) return type;
  // ONNX's numbers.
  enum { F32 = 1, U8, I8, U16, I16, I32, I64, kText, Bool, F16, F64, U32, U64, BF16 = 16, U4 = 21, I4 = 22 };
  static const std::map<OnnxType, std::vector<OnnxType>> kNearest = {
      {Bool, {U8, I8, I32, I64, F32, F16, F64}},
      {I8, {I16, I32, I64, F32, F64}},
      {U8, {U16, I16, I32, U32, I64, U64, F32, F64}},
      {I16, {I32, I64, F32, F64}},
      {U16, {I32, U32, I64, U64, F32, F64}},
      {I32, {I64, F64, F32}},
      {U32, {I64, U64, F64, F32}},
      {I64, {F64, F32}},
      {U64, {I64, F64, F32}},
      {I4, {I8, I16, I32, I64, F32}},
      {U4, {U8, U16, I32, I64, F32}},
      {F32, {F64}},
      {F64, {F32}},
  };
  const auto at = kNearest.find(type);
  if (at != kNearest.end()) {
    for (const OnnxType other : at->second)
      if (set.has(other)) return other;
  } else if (type == F16 || type == BF16 || (type >= 17 && type <= 24)) {  // floats of 16 bits and fewer
    for (const OnnxType other : {F32, F64})
      if (set.has(other)) return other;
  }
  return 0;
}

}  // namespace sinter::convert
