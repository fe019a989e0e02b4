#include "converter/repair/edits.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "converter/diagnostics/printable.h"
#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

const char* edit_name(EditKind kind) {
  switch (kind) {
    case EditKind::kCast:
      return "Cast inserted";
    case EditKind::kRetyped:
      return "constant retyped";
    case EditKind::kCloned:
      return "constant cloned";
    case EditKind::kDeclared:
      return "declaration corrected";
    case EditKind::kLeftOut:
      return "operand left out";
    case EditKind::kSorted:
      return "nodes sorted";
    case EditKind::kCopied:
      return "function copied";
    default:
      return "operator set raised";
  }
}

nlohmann::json to_json(const Edit& e) {
  return {{"edit", edit_name(e.kind)},
          {"value", e.value},
          {"node", e.node},
          {"op", e.op},
          {"rule", e.rule},
          {"reason", e.reason},
          {"made", e.made},
          {"before", e.before == 0 ? "" : onnx_type_name(e.before)},
          {"after", e.after == 0 ? "" : onnx_type_name(e.after)}};
}

std::string to_line(const Edit& e) {
  std::string line = fmt::format("'{}'", printable(e.value));
  if (!e.node.empty()) line += fmt::format(" at node '{}' ({})", printable(e.node), printable(e.op));
  if (e.after != 0)
    line += fmt::format(": {} -> {},", e.before == 0 ? "no type" : onnx_type_name(e.before),
                        onnx_type_name(e.after));
  else
    line += ":";
  line += fmt::format(" {}", edit_name(e.kind));
  if (!e.made.empty()) line += fmt::format(" as '{}'", printable(e.made));
  return line + fmt::format(" [{}]: {}", e.rule, printable(e.reason));
}

std::string body_key(size_t place, size_t n) { return fmt::format("{}#{}", place, n); }

}  // namespace sinter::convert
