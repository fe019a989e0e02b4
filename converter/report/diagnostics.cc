#include "converter/report/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace sinter::convert {
namespace {

const char* word(Severity s) {
  return s == Severity::kNote ? "note" : s == Severity::kWarning ? "warning" : "refused";
}

// Names come from the model: control characters would break the line (or the terminal).
std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string to_line(const Diagnostic& d) {
  std::string place;
  if (!d.node.empty()) place += fmt::format("node '{}'", d.node);
  if (!d.op.empty()) place += fmt::format("{}({})", place.empty() ? "" : " ", d.op);
  if (!place.empty()) place += ": ";
  return printable(
      fmt::format("{}: {}{}{}", word(d.severity), place, d.message, d.remedy.empty() ? "" : "; " + d.remedy));
}

void Diagnostics::add(Diagnostic d) {
  constexpr size_t kMost = 10'000;
  refused_ = refused_ || d.severity == Severity::kRefusal;
  if (items_.size() >= kMost) return void(++left_out_);
  std::string key(1, static_cast<char>(d.severity));
  for (const std::string* part : {&d.node, &d.op, &d.message, &d.remedy}) key += *part + '\0';
  if (known_.insert(std::move(key)).second) items_.push_back(std::move(d));
}
void Diagnostics::note(std::string node, std::string op, std::string message) {
  add({Severity::kNote, std::move(node), std::move(op), std::move(message), {}});
}
void Diagnostics::warn(std::string node, std::string op, std::string message, std::string remedy) {
  add({Severity::kWarning, std::move(node), std::move(op), std::move(message), std::move(remedy)});
}
void Diagnostics::refuse(std::string node, std::string op, std::string message, std::string remedy) {
  add({Severity::kRefusal, std::move(node), std::move(op), std::move(message), std::move(remedy)});
}

size_t Diagnostics::count(Severity severity) const {
  return static_cast<size_t>(std::count_if(items_.begin(), items_.end(),
                                           [&](const Diagnostic& d) { return d.severity == severity; }));
}

std::string Diagnostics::to_text(Severity least) const {
  std::string text;
  for (const Diagnostic& d : items_)
    if (d.severity >= least) text += to_line(d) + "\n";
  if (left_out_ > 0) text += fmt::format("and {} more\n", left_out_);
  return text;
}

nlohmann::json Diagnostics::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Diagnostic& d : items_) {
    list.push_back({{"severity", word(d.severity)},
                    {"node", printable(d.node)},
                    {"op", printable(d.op)},
                    {"message", printable(d.message)},
                    {"remedy", printable(d.remedy)}});
  }
  return list;
}

}  // namespace sinter::convert
