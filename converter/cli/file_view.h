// FileView: the tables of one of a file's profiles with names resolved, for commands that show them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "runtime/model/names.h"

namespace sinter::convert {

class FileView {
 public:
  explicit FileView(const Model& model) : FileView(model, model.default_profile()) {}
  // `entry`: the number of a shape set.
  FileView(const Model& model, uint32_t profile, uint32_t entry = 0)
      : root_(*model.state()->root),
        profile_(*root_.profiles()->Get(profile)),
        entry_(model.entry_program(entry, profile)) {}
  const fb::Model& root() const { return root_; }
  const fb::Profile& profile() const { return profile_; }
  // Returns the indices in the file of the entry's program and those of its control flow, ascending.
  std::vector<uint32_t> programs() const {
    std::vector<uint32_t> list{entry_};
    for (size_t i = 0; i < list.size(); ++i)
      for (uint32_t s = 0; s < detail::length(program(list[i]).steps()); ++s)
        for (const uint32_t sub : detail::items(program(list[i]).steps()->Get(s)->subprograms()))
          list.push_back(sub);
    std::sort(list.begin(), list.end());
    return list;
  }
  const fb::Program& program(uint32_t index) const { return *root_.programs()->Get(index); }
  const fb::ProgramPlan& plan(uint32_t program) const { return *detail::find_plan(profile_, program); }
  uint32_t entry() const { return entry_; }  // the program of the shape set
  const fb::Program& entry_program() const { return program(entry_); }
  const fb::ProgramPlan& entry_plan() const { return plan(entry_); }

  // Returns the step's name. `step` counts the prepare steps behind the others.
  std::string step_name(const fb::Program& program, uint32_t step) const {
    return detail::step_name(root_, program, step);
  }
  std::string step_origin(const fb::Program& program, uint32_t step) const {
    return detail::step_origin(root_, program, step);
  }
  std::string value(const fb::Program& program, int32_t id) const {
    if (id < 0) return "-";
    const std::string n = detail::value_name(root_, program, static_cast<uint32_t>(id));
    return n.empty() ? fmt::format("%{}", id) : n;
  }
  static std::string type(const fb::Value& v) {
    const auto dims = detail::items(v.dims());
    return to_string(static_cast<DType>(v.dtype()), Dims(dims.begin(), dims.end()));
  }
  std::vector<std::string> candidates(const fb::StepPlan& plan) const {
    std::vector<std::string> out;
    for (uint32_t i = 0; i < detail::length(plan.candidates()); ++i)
      out.push_back(profile().backends()->Get(plan.candidates()->Get(i))->str());
    return out;
  }
  // Returns "host", or the name of the backend whose memory it is.
  std::string memory(uint8_t kind) const {
    if (kind == 0) return "host";
    return kind <= detail::length(profile().backends()) ? profile().backends()->Get(kind - 1u)->str() : "?";
  }
  std::string region_memory(uint32_t region) const {
    return memory(entry_plan().regions()->Get(region)->memory_kind());
  }
  // Whether the entry's region contains a state, so that it persists between runs.
  bool holds_state(uint32_t region) const {
    for (uint32_t i = 0; i < detail::length(entry_plan().placements()); ++i) {
      const fb::Placement& p = *entry_plan().placements()->Get(i);
      if (p.region() == region && entry_program().values()->Get(p.value())->kind() == fb::ValueKind::State)
        return true;
    }
    return false;
  }
  // Returns the memory of a program's value, or of its owner's value if it is captured; empty for a constant.
  std::string value_memory(uint32_t program, int32_t id) const {
    if (id < 0) return "";
    const auto value = static_cast<uint32_t>(id);
    if (const fb::Placement* at = detail::find_placement(plan(program), value); at != nullptr)
      return memory(plan(program).regions()->Get(at->region())->memory_kind());
    const fb::Program& body = this->program(program);
    if (body.values()->Get(value)->kind() != fb::ValueKind::Input) return "";
    for (const uint32_t p : programs())
      for (uint32_t s = 0; s < detail::length(this->program(p).steps()); ++s) {
        const fb::Step& step = *this->program(p).steps()->Get(s);
        const auto subs = detail::items(step.subprograms());
        if (std::find(subs.begin(), subs.end(), program) == subs.end()) continue;
        const detail::ControlShape shape = detail::control_shape(step);
        uint32_t i = shape.own;
        while (body.inputs()->Get(i)->value() != value) ++i;
        return value_memory(p, detail::items(step.inputs())[shape.captured + (i - shape.own)]);
      }
    return "";
  }

 private:
  const fb::Model& root_;
  const fb::Profile& profile_;
  uint32_t entry_;
};

}  // namespace sinter::convert
