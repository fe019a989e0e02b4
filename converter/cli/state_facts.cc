#include "converter/cli/state_facts.h"

#include "converter/diagnostics/printable.h"

namespace sinter::convert {
namespace {

const fb::Placement& root_of(const FileView& view, const fb::Placement& member) {
  const fb::Placement* at = &member;
  while (at->alias_of() >= 0)
    at = detail::find_placement(view.entry_plan(), static_cast<uint32_t>(at->alias_of()));
  return *at;
}

}  // namespace

nlohmann::json states_json(const FileView& view) {
  nlohmann::json list = nlohmann::json::array();
  const fb::Program& program = view.entry_program();
  for (uint32_t i = 0; i < detail::length(program.states()); ++i) {
    const fb::StatePort& port = *program.states()->Get(i);
    const fb::Value& value = *program.values()->Get(port.value());
    const fb::Placement& at = *detail::find_placement(view.entry_plan(), port.value());
    const fb::Placement* update =
        value.update() < 0 ? nullptr
                           : detail::find_placement(view.entry_plan(), static_cast<uint32_t>(value.update()));
    const auto dims = detail::items(value.dims());
    list.push_back({{"input", port.input()->str()},
                    {"output", port.output()->str()},
                    {"type", dtype_name(static_cast<DType>(value.dtype()))},
                    {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                    {"bytes", detail::placed_bytes(program, at)},
                    {"memory", view.region_memory(at.region())},
                    {"starts_at_zero", value.initial() < 0},
                    {"in_place", update != nullptr && update->region() == at.region() &&
                                     update->offset() == at.offset()}});
  }
  return list;
}

std::string states_text(const FileView& view) {
  std::string text;
  for (const auto& s : printable_json(states_json(view)))
    text += fmt::format(
        "state     {} <- {}  {}{}  {} bytes, {}{}\n", s["input"].get<std::string>(),
        s["output"].get<std::string>(), s["type"].get<std::string>(), s["shape"].dump(), s["bytes"].dump(),
        s["in_place"].get<bool>() ? "updated in place" : "copied when a run ends",
        s["memory"] == "host" ? "" : fmt::format(", in the memory of {}", s["memory"].get<std::string>()));
  return text;
}

bool is_bindable(const FileView& view, uint32_t value) {
  const fb::Program& program = view.entry_program();
  const fb::ProgramPlan& plan = view.entry_plan();
  const fb::Placement* port = detail::find_placement(plan, value);
  if (port == nullptr || port->alias_of() != -1) return false;
  for (uint32_t i = 0; i < detail::length(plan.placements()); ++i) {
    const fb::Placement& p = *plan.placements()->Get(i);
    if (root_of(view, p).value() != value) continue;
    const bool inside =
        p.offset() >= port->offset() && p.offset() + detail::placed_bytes(program, p) <=
                                            port->offset() + detail::placed_bytes(program, *port);
    if (!inside || program.values()->Get(p.value())->kind() == fb::ValueKind::State) return false;
  }
  if (program.values()->Get(value)->kind() != fb::ValueKind::Input) return true;
  for (uint32_t s = 0; s < detail::length(program.steps()); ++s) {
    if (plan.steps()->Get(s)->elided()) continue;
    for (const int32_t v : detail::items(program.steps()->Get(s)->outputs()))
      if (v >= 0 && root_of(view, *detail::find_placement(plan, static_cast<uint32_t>(v))).value() == value)
        return false;
  }
  return true;
}

}  // namespace sinter::convert
