#include "converter/cli/ledger_view.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <sstream>

#include "converter/report/errors.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {

nlohmann::json ledger_of(const Model& model) {
  nlohmann::json entries = nlohmann::json::array();
  constexpr uint64_t kMostText = uint64_t{1} << 30;
  for (const format::Segment& segment : model.state()->segments) {
    if (segment.kind != static_cast<uint32_t>(format::SegmentKind::kDebug) || segment.bytes < 8) continue;
    const std::byte* data = model.state()->file.data() + segment.offset;
    uint64_t size = 0;
    std::memcpy(&size, data, 8);
    if (size > kMostText || size / 1100 > segment.bytes) throw DataError("the file's debug data are damaged");
    std::string text(size, '\0');
    uLongf length = size;
    if (uncompress(reinterpret_cast<Bytef*>(text.data()), &length, reinterpret_cast<const Bytef*>(data + 8),
                   segment.bytes - 8) != Z_OK ||
        length != size)
      throw DataError("the file's debug data are damaged");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
      if (entry.is_object()) entries.push_back(std::move(entry));
    }
  }
  return entries;
}

std::string ledger_line(const nlohmann::json& e) {
  const auto text = [&](const char* key) { return e.value(key, std::string()); };
  std::string line = text("value").empty() ? "a value without a name" : fmt::format("'{}'", text("value"));
  if (!text("node").empty()) line += fmt::format(" at node '{}' ({})", text("node"), text("op"));
  line += text("before") == text("after") ? fmt::format(": {}", text("before"))
                                          : fmt::format(": {} -> {}", text("before"), text("after"));
  line += fmt::format(", {} [{}]: {}", text("effect"), text("rule"), text("reason"));
  const auto number = [&](const char* key) {
    const auto at = e.find(key);
    return at != e.end() && at->is_number() ? at->get<double>() : 0;
  };
  if (number("scale") > 0) {
    line += number("least_scale") > 0
                ? fmt::format("; scales {:.6g} to {:.6g}", number("least_scale"), number("scale"))
                : fmt::format("; scale {:.6g}", number("scale"));
    line += fmt::format(", zero point {:.0f}", number("zero_point"));
  }
  if (const auto requests = e.find("requests");
      requests != e.end() && requests->is_array() && requests->size() > 1) {
    std::string asked;
    for (const auto& r : *requests)
      asked += fmt::format("{}{} {}{}", asked.empty() ? "" : ", ", r.value("operand", std::string()),
                           r.value("has", std::string()), r.value("constant", false) ? " (constant)" : "");
    line += fmt::format("; asked: {}", asked);
  }
  return line;
}

}  // namespace sinter::convert
