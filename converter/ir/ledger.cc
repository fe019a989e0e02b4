#include "converter/ir/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sinter::convert {

const char* rule_id(TypeRule rule) {
  static constexpr const char* kIds[] = {
#define SINTER_TYPE_RULE(name, id, ...) id,
#include "converter/ir/rules.def"
#undef SINTER_TYPE_RULE
  };
  return kIds[static_cast<size_t>(rule)];
}

const char* effect_name(TypeEffect effect) {
  switch (effect) {
    case TypeEffect::kCast:
      return "cast";
    case TypeEffect::kRetyped:
      return "constant retyped";
    case TypeEffect::kWidened:
      return "widened";
    case TypeEffect::kNarrowed:
      return "narrowed";
    case TypeEffect::kDeclared:
      return "declaration corrected";
    case TypeEffect::kQuantized:
      return "quantized";
    case TypeEffect::kReplaced:
      return "value replaced";
    default:
      return "kept";
  }
}

nlohmann::json to_json(const TypeDecision& d) {
  nlohmann::json requests = nlohmann::json::array();
  for (const TypeRequest& r : d.requests)
    requests.push_back({{"operand", r.operand}, {"has", dtype_name(r.has)}, {"constant", r.constant}});
  nlohmann::json json = {{"value", d.value},
                         {"node", d.node},
                         {"op", d.op},
                         {"before", dtype_name(d.before)},
                         {"after", dtype_name(d.after)},
                         {"rule", rule_id(d.rule)},
                         {"reason", d.reason},
                         {"effect", effect_name(d.effect)},
                         {"requests", requests}};
  if (d.largest_scale > 0) {
    json["scale"] = d.largest_scale, json["zero_point"] = d.zero_point;
    if (d.least_scale != d.largest_scale) json["least_scale"] = d.least_scale;
  }
  return json;
}

std::string to_lines(const TypeLedger& ledger) {
  std::string text;
  for (const TypeDecision& d : ledger.all())
    text += to_json(d).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return text;
}

std::string to_line(const TypeDecision& d) {
  std::string text = fmt::format("'{}'", d.value);
  if (!d.node.empty() || !d.op.empty()) text += fmt::format(" for node '{}' ({})", d.node, d.op);
  text += d.before == d.after ? fmt::format(": {}", dtype_name(d.before))
                              : fmt::format(": {} -> {}", dtype_name(d.before), dtype_name(d.after));
  text += fmt::format(", {} [{}] {}", effect_name(d.effect), rule_id(d.rule), d.reason);
  if (d.largest_scale > 0) text += fmt::format("; scale {}, zero point {}", d.largest_scale, d.zero_point);
  return text;
}

void TypeLedger::add(TypeDecision decision) {
  if (lines_.insert(to_line(decision)).second) items_.push_back(std::move(decision));
}

void TypeLedger::rewind(size_t size) {
  while (items_.size() > size) {
    lines_.erase(to_line(items_.back()));
    items_.pop_back();
  }
}

std::map<std::string, size_t> TypeLedger::by_rule() const {
  std::map<std::string, size_t> counts;
  for (const TypeDecision& d : items_) ++counts[rule_id(d.rule)];
  return counts;
}

}  // namespace sinter::convert
