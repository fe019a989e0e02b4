#include "converter/cli/inspect_memory.h"

#include <algorithm>
#include <functional>

#include "converter/diagnostics/printable.h"
#include "converter/report/page.h"
#include "runtime/model/lives.h"

namespace sinter::convert {
namespace {

constexpr size_t kBar = 50;

std::vector<detail::Life> lives_of(const fb::Program& program) {
  std::vector<detail::Life> lives(detail::length(program.values()));
  detail::find_lives(program, lives);
  return lives;
}

// Returns the fields of a conversion's report that memory_drawing() reads, taken from the file.
nlohmann::json drawn(const FileView& view) {
  const fb::Program& program = view.entry_program();
  const fb::ProgramPlan& plan = view.entry_plan();
  nlohmann::json steps = nlohmann::json::array(), values = nlohmann::json::array(),
                 placements = nlohmann::json::array();
  for (uint32_t s = 0; s < detail::length(program.steps()); ++s) {
    const fb::Step& step = *program.steps()->Get(s);
    const fb::StepPlan& chosen = *plan.steps()->Get(s);
    steps.push_back({{"op", detail::step_op_name(step)},
                     {"node", view.step_name(program, s)},
                     {"workspace_region", chosen.workspace_region()},
                     {"workspace_offset", chosen.workspace_offset()},
                     {"workspace_bytes", chosen.workspace_bytes()}});
    for (uint32_t i = 0; i < detail::length(chosen.device_workspaces()); ++i) {
      const fb::DeviceWorkspace& w = *chosen.device_workspaces()->Get(i);
      steps.back()["device_workspaces"].push_back(
          {{"region", w.region()}, {"offset", w.offset()}, {"bytes", w.bytes()}});
    }
  }
  for (uint32_t v = 0; v < detail::length(program.values()); ++v) {
    const fb::Value& value = *program.values()->Get(v);
    const auto dims = detail::items(value.dims());
    values.push_back({{"name", view.value(program, static_cast<int32_t>(v))},
                      {"type", dtype_name(static_cast<DType>(value.dtype()))},
                      {"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
  }
  const std::vector<detail::Life> lives = lives_of(program);
  for (uint32_t i = 0; i < detail::length(plan.placements()); ++i) {
    const fb::Placement& p = *plan.placements()->Get(i);
    const detail::Life life = detail::stated_life(p, lives[p.value()]);
    placements.push_back({{"value", p.value()},
                          {"region", p.region()},
                          {"offset", p.offset()},
                          {"bytes", detail::placed_bytes(program, p)},
                          {"first_step", life.first},
                          {"last_step", life.last},
                          {"alias_of", p.alias_of()}});
  }
  nlohmann::json regions = nlohmann::json::array();
  for (uint32_t i = 0; i < detail::length(plan.regions()); ++i)
    regions.push_back({{"memory", view.region_memory(i)}, {"bytes", plan.regions()->Get(i)->bytes()}});
  return {{"plan", steps}, {"values", values}, {"placements", placements}, {"regions", regions}};
}

std::string bytes_table(const Requirements& need, const WeightBytes& weights) {
  const auto row = [](const char* what, uint64_t bytes, const char* remark) {
    return fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", what, bytes, remark);
  };
  return "<h2>Bytes</h2>\n<div class=\"scroll\"><table>\n<tr><th>part</th><th "
         "class=\"n\">bytes</th><th></th></tr>\n" +
         row("arena", need.arena, "values and workspaces, as planned; the same on every machine") +
         row("control", need.control, "lists of steps and operands") +
         row("prepared", need.prepared, "packed and widened weights, memory of kernels; on this machine") +
         row("session", need.bytes, "exact total") +
         row("weights", weights.all, "in the file, used in place") + "</table></div>\n";
}

}  // namespace

WeightBytes::WeightBytes(const fb::Model& root) {
  std::vector<bool> read(detail::length(root.constants()));
  for (const fb::Program* program : *root.programs())
    for (uint32_t i = 0; i < detail::length(program->prepare()); ++i)
      for (const int32_t id : detail::items(program->prepare()->Get(i)->inputs()))
        if (id >= 0)
          if (const int32_t c = program->values()->Get(static_cast<uint32_t>(id))->constant(); c >= 0)
            read[static_cast<size_t>(c)] = true;
  for (size_t i = 0; i < read.size(); ++i) {
    const fb::Constant& c = *root.constants()->Get(static_cast<uint32_t>(i));
    if (detail::is_left_out(c)) {
      ++left_out;
      left_out_bytes += static_cast<uint64_t>(detail::constant_bytes(c));
    }
    const auto bytes = static_cast<uint64_t>(detail::bytes_in_file(c));
    all += bytes;
    if (read[i]) widened += bytes;
  }
}

nlohmann::json memory_json(const FileView& view, const Requirements& need) {
  nlohmann::json placements = nlohmann::json::array();
  std::vector<bool> state;  // whether each region of the entry has state
  for (uint32_t r = 0; r < detail::length(view.entry_plan().regions()); ++r)
    state.push_back(view.holds_state(r));
  for (const uint32_t p : view.programs()) {
    const fb::Program& program = view.program(p);
    const fb::ProgramPlan& plan = view.plan(p);
    const std::vector<detail::Life> lives = lives_of(program);
    for (uint32_t i = 0; i < detail::length(plan.placements()); ++i) {
      const fb::Placement& at = *plan.placements()->Get(i);
      const detail::Life life = detail::stated_life(at, lives[at.value()]);
      placements.push_back(
          {{"program", p},
           {"value", view.value(program, static_cast<int32_t>(at.value()))},
           {"region", p == view.entry() ? nlohmann::json(at.region()) : nlohmann::json()},
           {"memory", view.memory(plan.regions()->Get(at.region())->memory_kind())},
           {"offset", at.offset()},
           {"bytes", detail::placed_bytes(program, at)},
           {"state", p == view.entry() && static_cast<bool>(state[at.region()])},
           {"first_step", life.first},
           {"last_step", life.last},
           {"alias_of",
            at.alias_of() < 0 ? nlohmann::json() : nlohmann::json(view.value(program, at.alias_of()))}});
    }
  }
  nlohmann::json regions = nlohmann::json::array();
  const nlohmann::json plan = drawn(view);
  std::vector<uint64_t> live;  // the live bytes in all regions, by step
  for (uint32_t i = 0; i < detail::length(view.entry_plan().regions()); ++i) {
    const fb::Region& r = *view.entry_plan().regions()->Get(i);
    const std::vector<uint64_t> here = live_bytes(plan, i);
    live.resize(here.size());
    std::transform(here.begin(), here.end(), live.begin(), live.begin(), std::plus<>());
    regions.push_back({{"memory", view.region_memory(i)},
                       {"state", static_cast<bool>(state[i])},
                       {"live_bytes", here},
                       {"bytes", r.bytes()},
                       {"padding", kReadPadding}});
  }
  nlohmann::json devices = nlohmann::json::array();
  for (const DeviceRequirements& d : need.on_devices())
    devices.push_back({{"backend", d.backend}, {"bytes", d.bytes}, {"prepared_bytes", d.prepared}});
  const WeightBytes weights(view.root());
  return {{"regions", regions},
          {"devices", devices},
          {"placements", placements},
          {"live_bytes", live},
          {"session_bytes", need.bytes},
          {"control_bytes", need.control},
          {"prepared_bytes", need.prepared},
          {"packed_bytes", need.packed},
          {"weight_bytes", weights.all},
          {"widened_weight_bytes", weights.widened}};
}

namespace {

// Returns the name of a region, or of the region of a value.
std::string place_name(const nlohmann::json& item) {
  return item["memory"].get<std::string>() + (item["state"].get<bool>() ? " state" : "");
}

}  // namespace

std::string memory_text(const FileView& view, const Requirements& need) {
  const nlohmann::json m = printable_json(memory_json(view, need));
  std::string text;
  for (const auto& r : m["regions"])
    text += fmt::format("region    {} bytes of {} memory{}, padding {}\n", r["bytes"].dump(),
                        r["memory"].get<std::string>(), r["state"].get<bool>() ? " for state" : "",
                        r["padding"].dump());
  text += fmt::format("prepared {} bytes, {} of them packed weights, control {} bytes, session {} bytes\n",
                      need.prepared, need.packed, need.control, need.bytes);
  for (const DeviceRequirements& d : need.on_devices())
    text += fmt::format("device {}  {} bytes, {} of them prepared\n", d.backend, d.bytes, d.prepared);
  text += fmt::format("weights {} bytes in the file, {} of them widened when a session is created\n",
                      m["weight_bytes"].dump(), m["widened_weight_bytes"].dump());
  const auto& regions = m["regions"];
  const bool several = regions.size() > 1;
  for (const auto& p : m["placements"]) {
    // A subprogram's values are in its step's workspaces.
    const std::string memory = several ? fmt::format("{:<10} ", place_name(p)) : std::string();
    text += fmt::format("{}{:>10} +{:<10} steps {:>4} .. {:<4} {}{}\n", memory, p["offset"].dump(),
                        p["bytes"].dump(), p["first_step"].dump(), p["last_step"].dump(),
                        p["value"].get<std::string>(),
                        p["alias_of"].is_null() ? "" : "  (on " + p["alias_of"].get<std::string>() + ")");
  }
  const fb::Program& program = view.entry_program();
  for (const auto& region : regions) {
    const auto live = region["live_bytes"].get<std::vector<uint64_t>>();
    const uint64_t most = live.empty() ? 0 : *std::max_element(live.begin(), live.end());
    text += several ? fmt::format("live bytes of each step in {} memory\n", place_name(region))
                    : "live bytes of each step\n";
    for (uint32_t s = 0; s < live.size(); ++s)
      text +=
          fmt::format("{:>6} {:<18} {:>11}  {:<{}}{}\n", s, detail::step_op_name(*program.steps()->Get(s)),
                      live[s], std::string(most == 0 ? 0 : live[s] * kBar / most, '#'), kBar,
                      live[s] == most && most > 0 ? "  the most" : "");
  }
  return text;
}

std::string memory_page(const FileView& view, const std::string& name, const Requirements& need) {
  const std::string title = escaped(name) + " - memory";
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         title + "</title>\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n<main>\n<h1>" + title +
         "</h1>\n<section>\n<p>Every value at its offset in the arena, from the step that computes it to the "
         "last one that reads it. Hover for names; the marked step needs the most memory.</p>\n<div "
         "class=\"keys\">" +
         type_keys() + "</div>\n" + memory_drawings(drawn(view)) +
         bytes_table(need, WeightBytes(view.root())) + "</section>\n</main>\n</body>\n</html>\n";
}

}  // namespace sinter::convert
