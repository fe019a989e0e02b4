#include "converter/cli/elided_values.h"

#include <algorithm>

#include "converter/cli/file_view.h"

namespace sinter::convert {

ElidedValues::ElidedValues(const Model& model, uint32_t entry) : model_(model), entry_(entry) {
  const FileView view(model_, model_.default_profile(), entry_);
  const fb::Program& program = view.entry_program();
  const fb::ProgramPlan& plan = view.entry_plan();
  for (uint32_t i = 0; i < detail::length(plan.placements()); ++i) {
    const fb::Placement& at = *plan.placements()->Get(i);
    const fb::Value& v = *program.values()->Get(at.value());
    Place place{at.region(), at.offset(), {}};
    place.view.dtype = static_cast<DType>(v.dtype());
    const auto dims = detail::items(v.dims());
    place.view.set_shape({dims.data(), dims.size()});
    const auto strides = detail::items(at.strides());
    std::copy(strides.begin(), strides.end(), place.view.strides);
    places_[static_cast<int32_t>(at.value())] = place;
  }
  // The slot of whole_ to which each value belongs; constants have none.
  std::vector<int64_t> ready(detail::length(program.values()), 0);
  const uint32_t steps = detail::length(program.steps());
  whole_.resize(steps + 1);
  for (uint32_t s = 0; s < steps; ++s) {
    const fb::Step& step = *program.steps()->Get(s);
    const bool elided = plan.steps()->Get(s)->elided();
    int64_t when = elided ? 0 : s + 1;
    if (elided)
      for (const int32_t id : detail::items(step.inputs()))
        if (id >= 0) when = std::max(when, ready[static_cast<size_t>(id)]);
    for (const int32_t id : detail::items(step.outputs())) {
      if (id < 0) continue;
      ready[static_cast<size_t>(id)] = when;
      if (elided && places_.contains(id))
        whole_[static_cast<size_t>(when)].push_back({s, static_cast<Op>(step.op()), id});
    }
  }
}

void ElidedValues::learn(int32_t value, const TensorView& view) {
  if (const auto at = places_.find(value); at != places_.end() && view.data != nullptr && view.memory == 0)
    regions_[at->second.region] = view.data - at->second.offset;
}

void ElidedValues::show(size_t slot, const Use& use) const {
  for (const Elided& e : whole_[slot]) {
    const Place& place = places_.at(e.value);
    const auto region = regions_.find(place.region);
    if (region == regions_.end()) continue;
    TensorView view = place.view;
    view.data = region->second + place.offset;
    use(e.step, e.op, view);
  }
}

void ElidedValues::before(const Session& session, const Use& use) {
  const auto* ports = FileView(model_, model_.default_profile(), entry_).entry_program().inputs();
  for (uint32_t i = 0; i < session.input_count(); ++i)
    learn(static_cast<int32_t>(ports->Get(i)->value()), session.input(i));
  show(0, use);
}

void ElidedValues::after(const StepInfo& info, const OpCall& call, const Use& use) {
  const fb::Step& step =
      *FileView(model_, model_.default_profile(), entry_).entry_program().steps()->Get(info.step);
  const auto ids = detail::items(step.outputs());
  for (size_t i = 0; i < ids.size() && i < call.outputs.size(); ++i)
    if (call.outputs[i].present()) learn(ids[i], call.outputs[i]);
  show(info.step + 1, use);
}

}  // namespace sinter::convert
