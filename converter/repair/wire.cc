#include "converter/repair/wire.h"

#include "converter/diagnostics/errors.h"
#include "converter/import/read/varint.h"

namespace sinter::convert {
std::vector<WireField> wire_fields(std::span<const std::byte> message) {
  std::vector<WireField> fields;
  const auto damaged = [] {
    return ModelFileError("the ONNX file is damaged, or changed while it was read");
  };
  for (size_t at = 0; at < message.size();) {
    const size_t start = at;
    const auto tag = read_varint(message, &at);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 0x1fffffff) throw damaged();
    WireField field;
    field.number = static_cast<uint32_t>(*tag >> 3);
    uint64_t length = 0;
    switch (*tag & 7) {
      case 0: {
        const auto value = read_varint(message, &at);
        if (!value) throw damaged();
        field.value = *value;
        break;
      }
      case 1:
        length = 8;
        break;
      case 2: {
        const auto announced = read_varint(message, &at);
        if (!announced) throw damaged();
        field.text = true, length = *announced;
        break;
      }
      case 5:
        length = 4;
        break;
      default:
        throw damaged();
    }
    if (length > message.size() - at) throw damaged();
    field.bytes = message.subspan(at, length);
    at += length;
    field.whole = message.subspan(start, at - start);
    fields.push_back(field);
  }
  return fields;
}

std::string_view wire_string(std::span<const std::byte> message, uint32_t number) {
  for (const WireField& f : wire_fields(message))
    if (f.number == number && f.text) return f.string();
  return {};
}

void WireText::add(std::span<const std::byte> kept) {
  size_ += kept.size();
  // Neighbours become one part.
  if (!parts_.empty())
    if (auto* last = std::get_if<0>(&parts_.back());
        last != nullptr && last->data() + last->size() == kept.data()) {
      *last = {last->data(), last->size() + kept.size()};
      return;
    }
  parts_.emplace_back(kept);
}

void WireText::add(std::string made) {
  size_ += made.size();
  parts_.emplace_back(std::move(made));
}

void WireText::add(WireText text) {
  for (Part& part : text.parts_) {
    if (auto* kept = std::get_if<0>(&part))
      add(*kept);
    else
      add(std::move(std::get<1>(part)));
  }
}

void WireText::add_field(uint32_t number, WireText content) {
  std::string head;
  append_varint(uint64_t{number} << 3 | 2, &head);
  append_varint(content.size(), &head);
  add(std::move(head));
  add(std::move(content));
}

void WireText::add_field(uint32_t number, std::string content) {
  std::string head;
  append_varint(uint64_t{number} << 3 | 2, &head);
  append_varint(content.size(), &head);
  add(head + content);
}

void WireText::add_varint(uint32_t number, uint64_t value) {
  std::string text;
  append_varint(uint64_t{number} << 3, &text);
  append_varint(value, &text);
  add(std::move(text));
}

std::string WireText::joined() const {
  std::string all;
  for (const Part& part : parts_) {
    if (const auto* kept = std::get_if<0>(&part))
      all.append(reinterpret_cast<const char*>(kept->data()), kept->size());
    else
      all += std::get<1>(part);
  }
  return all;
}

}  // namespace sinter::convert
