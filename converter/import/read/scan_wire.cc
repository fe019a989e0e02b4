#include "converter/import/read/scan_wire.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "converter/import/read/varint.h"

namespace sinter::convert {
namespace {

// Messages on the way to tensors; everything else is copied as it is.
enum class Message { kLeaf, kModel, kGraph, kNode, kAttribute, kTensor, kSparse, kFunction };

Message child_of(Message kind, uint64_t field) {
  switch (kind) {
    case Message::kModel:
      return field == 7 ? Message::kGraph : field == 25 ? Message::kFunction : Message::kLeaf;
    case Message::kGraph:
      return field == 1    ? Message::kNode
             : field == 5  ? Message::kTensor
             : field == 15 ? Message::kSparse
                           : Message::kLeaf;
    case Message::kFunction:
      return field == 7 ? Message::kNode : field == 11 ? Message::kAttribute : Message::kLeaf;
    case Message::kNode:
      return field == 5 ? Message::kAttribute : Message::kLeaf;
    case Message::kAttribute:
      if (field == 5 || field == 10) return Message::kTensor;
      if (field == 6 || field == 11) return Message::kGraph;
      return field == 22 || field == 23 ? Message::kSparse : Message::kLeaf;
    case Message::kSparse:
      return field == 1 || field == 2 ? Message::kTensor : Message::kLeaf;
    default:
      return Message::kLeaf;
  }
}

constexpr uint64_t kRawData = 9;
constexpr uint64_t kMappedOffset = 536870000, kMappedLength = 536870001;
constexpr size_t kLongTensor = 256;
// Subgraphs in subgraphs cost three messages each.
constexpr int kMaxMessageDepth = 80;

struct Scanner {
  std::span<const std::byte> bytes;
  std::string fault;
  bool saw_graph = false;

  bool fail(std::string sentence) {
    if (fault.empty()) fault = std::move(sentence);
    return false;
  }
  std::optional<uint64_t> varint(size_t* at, size_t end) const { return read_varint(bytes.first(end), at); }
  void copy(size_t from, size_t to, std::string* out) const {
    out->append(reinterpret_cast<const char*>(bytes.data()) + from, to - from);
  }

  bool message(Message kind, size_t at, size_t end, int depth, std::string* out) {
    if (depth > kMaxMessageDepth) return fail("the file nests subgraphs too deeply");
    while (at < end) {
      const size_t start = at;
      const auto tag = varint(&at, end);
      if (!tag) return fail(fmt::format("the file is damaged or truncated at byte {}", start));
      const uint64_t field = *tag >> 3;
      size_t length = 0;
      switch (*tag & 7) {
        case 0:
          if (!varint(&at, end))
            return fail(fmt::format("the file is damaged or truncated at byte {}", start));
          break;
        case 1:
          length = 8;
          break;
        case 5:
          length = 4;
          break;
        case 2: {
          const auto announced = varint(&at, end);
          if (!announced) return fail(fmt::format("the file is damaged or truncated at byte {}", start));
          if (kind == Message::kModel && field == 7) saw_graph = true;
          if (*announced > end - at)
            return fail(fmt::format(
                "the file is truncated or damaged: {} bytes are announced at byte {}, {} are left",
                *announced, start, end - at));
          length = *announced;
          break;
        }
        default:
          return fail(fmt::format("the file is damaged at byte {}", start));
      }
      if (field == 0 || length > end - at)
        return fail(fmt::format("the file is damaged or truncated at byte {}", start));
      const Message child = (*tag & 7) == 2 ? child_of(kind, field) : Message::kLeaf;
      if (kind == Message::kTensor && (field == kMappedOffset || field == kMappedLength))
        return fail(fmt::format("the file is damaged at byte {}", start));
      if (child != Message::kLeaf) {
        std::string inner;
        if (!message(child, at, at + length, depth + 1, &inner)) return false;
        append_varint(*tag, out);
        append_varint(inner.size(), out);
        *out += inner;
      } else if (kind == Message::kTensor && field == kRawData && (*tag & 7) == 2 && length >= kLongTensor) {
        append_varint(kMappedOffset << 3, out);
        append_varint(at, out);
        append_varint(kMappedLength << 3, out);
        append_varint(length, out);
      } else {
        copy(start, at + length, out);
      }
      at += length;
    }
    return true;
  }
};

}  // namespace

bool scan_model(std::span<const std::byte> bytes, std::string* lean, std::string* fault) {
  if (bytes.empty()) {
    *fault = "the file is empty";
    return false;
  }
  Scanner scanner{bytes, {}, false};
  lean->clear();
  if (scanner.message(Message::kModel, 0, bytes.size(), 0, lean) && scanner.saw_graph) return true;
  // A file of another kind fails to parse before a graph begins, or never has one.
  *fault = scanner.saw_graph       ? scanner.fault
           : scanner.fault.empty() ? "not an ONNX model: it has no graph"
                                   : "not an ONNX file, or one that is truncated before its graph begins";
  return false;
}

}  // namespace sinter::convert
