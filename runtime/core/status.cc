#include "runtime/core/status.h"

#include <cstddef>

#include "runtime/core/axis_range.h"
#include "runtime/core/dtype.h"

namespace sinter {
namespace {

// A bounded, terminated text that is appended to.
struct Text {
  std::span<char> buffer;
  size_t used = 0;

  void put(char c) {
    if (used + 1 < buffer.size()) buffer[used++] = c;
  }
  void put(const char* s) {
    for (; *s; ++s) put(*s);
  }
  // Appends a text of the model or of the system without characters that a terminal would obey.
  void put_foreign(const char* s) {
    for (; *s; ++s) {
      const auto byte = static_cast<uint8_t>(*s);
      const bool control = byte < 0x20 || byte == 0x7F || (byte == 0xC2 && static_cast<uint8_t>(s[1]) < 0xA0);
      put(control ? '?' : *s);
      if (control && byte == 0xC2 && s[1] != '\0') ++s;
    }
  }
  void put(int64_t number) {
    char digits[20];
    int n = 0;
    uint64_t rest = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    do digits[n++] = static_cast<char>('0' + rest % 10), rest /= 10;
    while (rest != 0);
    if (number < 0) put('-');
    while (n > 0) put(digits[--n]);
  }
};

const char* place_name(Where where) {
  constexpr const char* kNames[] = {"",        "step ",    "prepare step ", "value ",  "input ",
                                    "output ", "segment ", "program ",      "backend "};
  return kNames[static_cast<size_t>(where)];
}

}  // namespace

size_t format_status(const Status& status, std::span<char> buffer, const PlaceNames& names) {
  if (buffer.empty()) return 0;
  Text text{buffer};
  if (status.ok()) text.put("ok");
  if (status.where != Where::kNone) {
    text.put(place_name(status.where));
    text.put(static_cast<int64_t>(status.index));
    if (status.program != 0) {
      text.put(" of program ");
      text.put(static_cast<int64_t>(status.program));
    }
    if (names.name[0] != '\0') text.put(" '"), text.put_foreign(names.name), text.put("'");
    if (names.kind[0] != '\0') text.put(" ("), text.put_foreign(names.kind), text.put(")");
  }
  if (status.operand >= 0) {
    text.put(status.where != Where::kNone ? ", input " : "input ");
    text.put(static_cast<int64_t>(status.operand));
  }
  if (status.where != Where::kNone || status.operand >= 0) text.put(": ");
  for (const char* p = status.message ? status.message : ""; *p; ++p) {
    if (p[0] == '%' && (p[1] == 'a' || p[1] == 'b')) {
      text.put(p[1] == 'a' ? status.a : status.b);
      ++p;
    } else if (p[0] == '%' && (p[1] == 'A' || p[1] == 'B')) {
      const int64_t type = p[1] == 'A' ? status.a : status.b;
      text.put(dtype_name(type >= 0 && type < static_cast<int64_t>(DType::kCount) ? static_cast<DType>(type)
                                                                                  : DType::kCount));
      ++p;
    } else if (p[0] == '%' && (p[1] == 's' || p[1] == 't')) {
      const auto* name =
          reinterpret_cast<const char*>(static_cast<intptr_t>(p[1] == 's' ? status.a : status.b));
      text.put_foreign(name != nullptr ? name : "");
      ++p;
    } else if (p[0] == '%' && p[1] == 'r') {
      const auto& range = *reinterpret_cast<const AxisRange*>(static_cast<intptr_t>(status.b));
      text.put("axis "), text.put(int64_t{range.axis});
      text.put(" has "), text.put(range.minimum);
      text.put(" to "), text.put(range.maximum), text.put(" entries");
      ++p;
    } else {
      text.put(*p);
    }
  }
  buffer[text.used] = '\0';
  return text.used;
}

}  // namespace sinter
