#include "converter/cli/device_places.h"

#include <optional>
#include <set>

#include "converter/cli/host_session.h"
#include "converter/target/target_names.h"
#include "platforms/platforms.h"
#include "sinter/backends.h"

namespace sinter::convert {
namespace {

Backend* find_backend(const std::string& name) {
  for (Backend* b : default_backends())
    if (name == b->name()) return b;
  return nullptr;
}

// Returns the platform with a device among the profile's backends.
const Platform* device_of(const FileView& view) {
  for (const Platform* p : all_platforms())
    for (uint32_t b = 0; p->own_memory && b < detail::length(view.profile().backends()); ++b)
      if (view.profile().backends()->Get(b)->str() == p->name) return p;
  return nullptr;
}

// The call of a step, without data.
struct StepCall {
  std::vector<TensorView> in, out;
  detail::AttrStorage attributes;
  OpCall call;

  StepCall(const fb::Program& program, const fb::Step& step) {
    const auto add = [&](const auto* ids, std::vector<TensorView>* views) {
      for (const int32_t id : detail::items(ids)) {
        views->emplace_back();
        if (id < 0) continue;
        const fb::Value& value = *program.values()->Get(static_cast<uint32_t>(id));
        views->back() = detail::value_view(value);
        views->back().constant =
            value.kind() == fb::ValueKind::Constant || value.kind() == fb::ValueKind::Prepared;
      }
    };
    add(step.inputs(), &in);
    add(step.outputs(), &out);
    (void)detail::decode_attrs(step, &attributes);  // verified when the file was opened
    call = {detail::step_op(step), &attributes, in, out};
  }
};

}  // namespace

std::vector<MissingDevice> missing_devices(const FileView& view) {
  std::vector<MissingDevice> missing;
  std::set<std::string> seen;  // a device has a region for values and one for state
  for (uint32_t r = 0; r < detail::length(view.entry_plan().regions()); ++r) {
    if (view.entry_plan().regions()->Get(r)->memory_kind() == 0) continue;
    const std::string name = view.region_memory(r);
    if (!seen.insert(name).second) continue;
    Backend* backend = find_backend(name);
    if (backend == nullptr) {
      missing.push_back({name, "this program does not have the backend"});
      continue;
    }
    BumpArena none;
    const Status opened = backend->open(none);
    if (opened.ok())
      backend->close();
    else
      missing.push_back({name, describe(opened)});
  }
  return missing;
}

std::string backend_here(const Model& model, uint32_t profile) {
  return missing_devices(FileView(model, profile)).empty() ? "" : "reference";
}

HostSession::Options session_here(const Model& model, uint32_t profile, HostSession::Options options) {
  if (options.backend.empty()) options.backend = backend_here(model, profile);
  return options;
}

std::string why_on_host(const FileView& view, uint32_t program, uint32_t s) {
  const Platform* device = device_of(view);
  const fb::Step& step = *view.program(program).steps()->Get(s);
  const fb::StepPlan& plan = *view.plan(program).steps()->Get(s);
  if (device == nullptr || plan.elided()) return "";
  if (detail::is_control(step)) return "";
  for (const auto* list : {step.inputs(), step.outputs()})
    for (const int32_t id : detail::items(list))
      if (const std::string memory = view.value_memory(program, id); !memory.empty() && memory != "host")
        return "";
  std::string fault;
  const std::optional<Target> target = parse_target(view.profile().target()->str(), &fault);
  if (!target) return "";
  const StepCall made(view.program(program), step);
  size_t workspace = 0;
  const Status status = device->accept(*target, made.call, 1, &workspace);
  if (!status.ok()) return describe(status);
  return program == view.entry()
             ? "the transfers would take longer than the step"
             : "the transfers, or starting the device in every trip, would take longer than the step";
}

}  // namespace sinter::convert
