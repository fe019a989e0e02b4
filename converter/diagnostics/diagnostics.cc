#include "converter/diagnostics/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "converter/diagnostics/printable.h"

namespace sinter::convert {
namespace {

const char* word(Severity s) {
  return s == Severity::kNote ? "note" : s == Severity::kWarning ? "warning" : "refused";
}

std::string with_operands(const Diagnostic& d) {
  return d.operands.empty() ? d.message : d.message + "; operands: " + d.operands;
}

std::string line_of(const Diagnostic& d, const std::string& place, const std::string& message) {
  return printable(fmt::format("{}: {}{}{}{}", word(d.severity), place, place.empty() ? "" : ": ", message,
                               d.remedy.empty() ? "" : "; " + d.remedy));
}

// Returns "a, b, c and 5 more".
std::string listed(const std::vector<std::string>& items, size_t most) {
  const size_t shown = items.size() <= most + 1 ? items.size() : most;
  std::string text;
  for (size_t i = 0; i < shown; ++i) text += (i > 0 ? ", " : "") + items[i];
  return shown == items.size() ? text : text + fmt::format(" and {} more", items.size() - shown);
}

}  // namespace

std::string to_line(const Diagnostic& d) {
  std::string place;
  if (!d.node.empty()) place += fmt::format("node '{}'", d.node);
  if (!d.op.empty()) place += fmt::format("{}({})", place.empty() ? "" : " ", d.op);
  return line_of(d, place, with_operands(d));
}

std::string to_line(const std::vector<const Diagnostic*>& equal) {
  if (equal.size() == 1) return to_line(*equal.front());
  constexpr size_t kMostNames = 8, kMostOps = 4;
  std::vector<std::string> names, ops;
  for (const Diagnostic* d : equal) {
    names.push_back("'" + d->node + "'");
    if (!d->op.empty() && std::find(ops.begin(), ops.end(), d->op) == ops.end()) ops.push_back(d->op);
  }
  std::string place = fmt::format("{} nodes, {}", equal.size(), listed(names, kMostNames));
  if (!ops.empty()) place += fmt::format(" ({})", listed(ops, kMostOps));
  const Diagnostic& first = *equal.front();
  std::string message = first.message;
  if (!first.operands.empty()) message += "; operands of the first: " + first.operands;
  return line_of(first, place, message);
}

void Diagnostics::add(Diagnostic d) {
  constexpr size_t kMost = 10'000;
  refused_ = refused_ || d.severity == Severity::kRefusal;
  if (items_.size() >= kMost) return void(++left_out_);
  std::string key(1, static_cast<char>(d.severity));
  for (const std::string* part : {&d.node, &d.op, &d.message, &d.remedy, &d.operands}) key += *part + '\0';
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
  // Entries without a node are about the whole model, or about calls without a name; they are not grouped.
  std::vector<std::vector<const Diagnostic*>> groups;
  std::unordered_map<std::string, size_t> group_of;
  for (const Diagnostic& d : items_) {
    if (d.severity < least) continue;
    std::string key(1, static_cast<char>(d.severity));
    for (const std::string* part : {&d.message, &d.remedy}) key += *part + '\0';
    const auto [at, fresh] = group_of.emplace(std::move(key), groups.size());
    if (fresh || d.node.empty())
      groups.push_back({&d});
    else
      groups[at->second].push_back(&d);
  }
  std::string text;
  for (const auto& group : groups) text += to_line(group) + "\n";
  if (left_out_ > 0) text += fmt::format("and {} more\n", left_out_);
  return text;
}

nlohmann::json Diagnostics::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Diagnostic& d : items_) {
    list.push_back({{"severity", word(d.severity)},
                    {"node", printable(d.node)},
                    {"op", printable(d.op)},
                    {"message", printable(with_operands(d))},
                    {"remedy", printable(d.remedy)}});
  }
  return list;
}

}  // namespace sinter::convert
