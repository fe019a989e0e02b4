// Protobuf's wire format: the fields of a message, and texts made of parts of a file and new bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sinter::convert {

struct WireField {
  uint32_t number = 0;
  bool text = false;                 // length-delimited: a message, a string or bytes
  uint64_t value = 0;                // of a varint
  std::span<const std::byte> whole;  // with tag and length
  std::span<const std::byte> bytes;  // the content of a length-delimited field

  std::string_view string() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Returns the fields of a message. Throws ModelFileError where it is damaged.
std::vector<WireField> wire_fields(std::span<const std::byte> message);
// Returns the first length-delimited field of a number as a string; empty if there is none.
std::string_view wire_string(std::span<const std::byte> message, uint32_t number);

// A sequence of bytes.
class WireText {
 public:
  void add(std::span<const std::byte> kept);
  void add(std::string made);
  void add(WireText text);
  // Adds a length-delimited field.
  void add_field(uint32_t number, WireText content);
  void add_field(uint32_t number, std::string content);
  void add_varint(uint32_t number, uint64_t value);

  uint64_t size() const { return size_; }
  using Part = std::variant<std::span<const std::byte>, std::string>;
  const std::vector<Part>& parts() const { return parts_; }
  std::string joined() const;

 private:
  std::vector<Part> parts_;
  uint64_t size_ = 0;
};

}  // namespace sinter::convert
