#include "converter/cli/step_facts.h"

#include <fmt/format.h>

#include <vector>

#include "converter/cli/device_places.h"
#include "converter/cli/fallbacks.h"
#include "converter/cli/file_work.h"
#include "converter/diagnostics/printable.h"
#include "converter/report/columns.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

const char* kind_name(fb::ValueKind kind) {
  switch (kind) {
    case fb::ValueKind::Constant:
      return "constant";
    case fb::ValueKind::Input:
      return "input";
    case fb::ValueKind::State:
      return "state";
    case fb::ValueKind::Prepared:
      return "prepared";
    default:
      return "temporary";
  }
}

// Returns the stored form of a prepared value: the type of the first operands of its steps, with its scaling.
nlohmann::json stored_form(const fb::Program& program, int32_t id) {
  nlohmann::json form;
  const int32_t first = program.prepare()->Get(0)->outputs()->Get(0);
  while (program.values()->Get(static_cast<uint32_t>(id))->kind() == fb::ValueKind::Prepared) {
    const fb::Step& step = *program.prepare()->Get(static_cast<uint32_t>(id - first));
    const auto ins = detail::items(step.inputs());
    if (static_cast<Op>(step.op()) == Op::kDequantize) {
      form["scale"] =
          dtype_name(static_cast<DType>(program.values()->Get(static_cast<uint32_t>(ins[1]))->dtype()));
      if (const int64_t block = detail::items(step.ints())[1]; block > 0) form["block_size"] = block;
    }
    id = ins[0];
  }
  form["type"] = dtype_name(static_cast<DType>(program.values()->Get(static_cast<uint32_t>(id))->dtype()));
  return form;
}
std::string to_text(const nlohmann::json& form) {
  std::string text = form["type"].get<std::string>();
  if (form.contains("scale")) text += fmt::format(" with {} scales", form["scale"].get<std::string>());
  if (form.contains("block_size")) text += fmt::format(" for blocks of {}", form["block_size"].dump());
  return text;
}

// Adds a step's operands by name, and its outputs with their types. `index`: as in FileView::step_name.
void add_operands(const FileView& view, const fb::Program& program, const fb::Step& step, uint32_t index,
                  nlohmann::json* out) {
  nlohmann::json inputs = nlohmann::json::array(), outputs = nlohmann::json::array();
  for (const int32_t id : detail::items(step.inputs())) inputs.push_back(view.value(program, id));
  for (const int32_t id : detail::items(step.outputs())) {
    outputs.push_back(view.value(program, id));
    if (id >= 0)
      outputs.back() = outputs.back().get<std::string>() + " " +
                       FileView::type(*program.values()->Get(static_cast<uint32_t>(id)));
  }
  (*out)["op"] = detail::step_op_name(step);
  (*out)["name"] = view.step_name(program, index);
  (*out)["inputs"] = inputs, (*out)["outputs"] = outputs;
}

// Adds the memory in which the step works, or source and target if it moves a value between memories.
void add_memories(const FileView& view, uint32_t program, const fb::Step& step, const fb::StepPlan& plan,
                  nlohmann::json* out) {
  std::string in, result;
  if (detail::is_control(step)) {
    (*out)["memory"] = "host";
    return;
  }
  for (const int32_t id : detail::items(step.inputs()))
    if (id >= 0 && in.empty()) in = view.value_memory(program, id);
  for (const int32_t id : detail::items(step.outputs()))
    if (id >= 0 && result.empty()) result = view.value_memory(program, id);
  (*out)["memory"] = result.empty() ? in.empty() ? "host" : in : result;
  if (static_cast<Op>(step.op()) == Op::kCopy && !plan.elided() && !in.empty() && in != result)
    (*out)["transfer"] = {{"from", in}, {"to", result}};
}

// Returns the outputs of a tile of Winograd's algorithm along an axis; 0 if the step is computed directly.
int64_t winograd_tile(const fb::Step& step) {
  ConvAttrs attrs;
  const bool decoded = detail::step_op(step) == Op::kConv && detail::decode_attrs(step, &attrs).ok();
  return decoded ? attrs.winograd : 0;
}

std::string joined(const nlohmann::json& names) {
  return fmt::format("{}", fmt::join(names.get<std::vector<std::string>>(), ", "));
}

}  // namespace

nlohmann::json prepare_json(const FileView& view) {
  nlohmann::json list = nlohmann::json::array();
  for (const uint32_t p : view.programs()) {
    const fb::Program& program = view.program(p);
    for (uint32_t s = 0; s < detail::length(program.prepare()); ++s) {
      const fb::Step& step = *program.prepare()->Get(s);
      nlohmann::json entry{{"program", p}, {"step", s}};
      add_operands(view, program, step, detail::length(program.steps()) + s, &entry);
      const int32_t in = detail::items(step.inputs())[0];
      if (in >= 0) entry["input_type"] = FileView::type(*program.values()->Get(static_cast<uint32_t>(in)));
      list.push_back(entry);
    }
  }
  return list;
}

nlohmann::json steps_json(const FileView& view, const HostSession& host) {
  nlohmann::json list = nlohmann::json::array();
  for (const uint32_t p : view.programs()) {
    const fb::Program& program = view.program(p);
    const fb::ProgramPlan& plan = view.plan(p);
    for (uint32_t s = 0; s < detail::length(program.steps()); ++s) {
      const fb::Step& step = *program.steps()->Get(s);
      const fb::StepPlan& chosen = *plan.steps()->Get(s);
      nlohmann::json entry{{"program", p},
                           {"step", s},
                           {"origin", view.step_origin(program, s)},
                           {"candidates", view.candidates(chosen)},
                           {"elided", chosen.elided()},
                           {"workspace_bytes", chosen.workspace_bytes()},
                           {"multiply_adds", total(multiply_adds(view, p, s))},
                           {"max_threads", chosen.max_threads()}};
      add_operands(view, program, step, s, &entry);
      if (const int64_t tile = winograd_tile(step); tile != 0) entry["winograd"] = tile;
      add_memories(view, p, step, chosen, &entry);
      entry["backend"] = host.step_backend(p, s);
      if (const std::string why = why_on_host(view, p, s); !why.empty()) entry["on_host"] = why;
      if (const FallbackStep* f = host.fallback(p, s)) entry["fallback"] = fallback_json(*f);
      list.push_back(entry);
    }
  }
  return list;
}

std::string prepare_text(const FileView& view) {
  std::string text;
  for (const auto& s : printable_json(prepare_json(view)))
    text += fmt::format("{}.{:<4} {:<16} {:<10} {} = ({})  # once, from {}\n", s["program"].dump(),
                        fmt::format("p{}", s["step"].get<int>()), s["op"].get<std::string>(), "prepare",
                        s["outputs"][0].get<std::string>(), joined(s["inputs"]), s.value("input_type", ""));
  return text;
}

std::string steps_text(const FileView& view, const HostSession& host) {
  std::string text;
  for (const auto& s : printable_json(steps_json(view, host))) {
    const std::string memory = s.value("memory", "host"), work = work_note(s);
    const std::string where = s["elided"].get<bool>() ? "elided"
                              : s.contains("transfer")
                                  ? fmt::format("{}->{}", s["transfer"]["from"].get<std::string>(),
                                                s["transfer"]["to"].get<std::string>())
                              : memory != "host" ? memory
                                                 : s["backend"].get<std::string>();
    const FallbackStep* fallback = host.fallback(s["program"].get<uint32_t>(), s["step"].get<uint32_t>());
    text += fmt::format("{}.{:<4} {:<16} {:<10} {} = ({})  # {}{}{}{}{}\n", s["program"].dump(),
                        s["step"].get<int>(), s["op"].get<std::string>(), where, joined(s["outputs"]),
                        joined(s["inputs"]), s["name"].get<std::string>(), work.empty() ? "" : "  " + work,
                        s.contains("winograd") ? "  winograd=" + s["winograd"].dump() : "",
                        fallback == nullptr ? "" : "  " + fallback_note(*fallback),
                        s.contains("on_host") ? "  on the host: " + s["on_host"].get<std::string>() : "");
  }
  return text;
}

nlohmann::json types_json(const FileView& view) {
  nlohmann::json list = nlohmann::json::array();
  for (const uint32_t p : view.programs()) {
    const fb::Program& program = view.program(p);
    for (uint32_t i = 0; i < detail::length(program.values()); ++i) {
      const fb::Value& v = *program.values()->Get(i);
      const auto dims = detail::items(v.dims());
      list.push_back({{"program", p},
                      {"value", view.value(program, static_cast<int32_t>(i))},
                      {"kind", kind_name(v.kind())},
                      {"type", dtype_name(static_cast<DType>(v.dtype()))},
                      {"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
      if (v.scale() > 0) list.back()["scale"] = v.scale(), list.back()["zero_point"] = v.zero_point();
      if (v.kind() == fb::ValueKind::Prepared)
        list.back()["stored"] = stored_form(program, static_cast<int32_t>(i));
    }
  }
  return list;
}

std::string work_note(const nlohmann::json& step) {
  const auto count = step["multiply_adds"].get<double>();
  return count > 0 ? readable_count(count) + " multiply-adds" : "";
}

std::string type_text(const nlohmann::json& entry) {
  std::string text = entry["type"].get<std::string>();
  if (entry.contains("scale"))
    text += fmt::format(" of {:.6g}, zero at {}", entry["scale"].get<double>(), entry["zero_point"].dump());
  if (entry.contains("stored")) text += ", stored " + to_text(entry["stored"]);
  return text;
}

}  // namespace sinter::convert
