// The checks of a plan with device memory: the memory of each value, the backend of each step, and that data
// cross from one memory to another only in transfers (schemas/FORMAT.md, "Device memory").
//
// A captured value is in its owner's memory. The plans of owners and bodies are verified in any order, so
// that a plan that refers to another one checks indices; a region that does not exist counts as the host's
// until its own plan is verified.
#include "runtime/model/plan_view.h"

namespace sinter::detail {
namespace {

class MemoryVerifier {
 public:
  explicit MemoryVerifier(const PlanView& view) : v_(view), program_(*view.facts.program) {}

  Status run() const {
    bool several = false;
    for (uint32_t r = 0; r < length(v_.entry_plan.regions()); ++r)
      several = several || v_.entry_plan.regions()->Get(r)->memory_kind() != 0;
    if (!several) return ok_status();
    if (v_.entry()) {
      SINTER_RETURN_IF_ERROR(check_ports(program_.inputs(), Where::kInput));
      SINTER_RETURN_IF_ERROR(check_ports(program_.outputs(), Where::kOutput));
    }
    SINTER_RETURN_IF_ERROR(check_values());
    for (uint32_t s = 0; s < v_.steps(); ++s) {
      const Status status = check_step(*program_.steps()->Get(s), *v_.plan.steps()->Get(s));
      if (!status.ok()) return status.at_step(s, v_.facts.index);
    }
    return ok_status();
  }

 private:
  // Returns the memory of a region, which is verified to exist.
  uint8_t kind(uint32_t region) const { return v_.plan.regions()->Get(region)->memory_kind(); }
  uint8_t location_of(uint32_t value) const { return detail::location_of(v_.plan, v_.facts, value); }
  // Returns 0 for constants and prepared values, which are the host's.
  uint8_t memory_of(uint32_t value) const {
    const uint8_t location = location_of(value);
    return location != kNowhere ? location : uint8_t{0};
  }

  Status check_ports(const flatbuffers::Vector<flatbuffers::Offset<fb::Port>>* ports, Where where) const {
    for (uint32_t i = 0; i < length(ports); ++i)
      SINTER_RETURN_UNLESS(
          memory_of(ports->Get(i)->value()) == 0,
          corrupt("an input or output is not host memory").at(where, static_cast<int32_t>(i)));
    return ok_status();
  }

  Status check_values() const {
    for (uint32_t i = 0; i < length(program_.values()); ++i) {
      const fb::Value& value = v_.value(i);
      const auto at = [&](Status status) { return status.at(Where::kValue, static_cast<int32_t>(i)); };
      if (value.bounded_dims() != nullptr)
        for (const fb::BoundedDim* e : *value.bounded_dims())
          SINTER_RETURN_UNLESS(memory_of(static_cast<uint32_t>(e->length())) == 0,
                               at(corrupt("the length of a bounded dimension is not in host memory")));
      if (value.kind() == fb::ValueKind::State && value.update() >= 0)
        SINTER_RETURN_UNLESS(memory_of(i) == memory_of(static_cast<uint32_t>(value.update())),
                             at(corrupt("a state and its update are in different memories")));
    }
    return ok_status();
  }

  // The memories that the step touches.
  struct Touched {
    bool host = false;
    uint8_t device = 0;
    bool several = false;  // true: several devices

    void add(uint8_t kind) {
      if (kind == 0)
        host = true;
      else if (device != 0 && device != kind)
        several = true;
      else
        device = kind;
    }
  };

  Status check_step(const fb::Step& step, const fb::StepPlan& plan) const {
    if (plan.elided()) return ok_status();  // verified: one region
    if (is_control(step)) return check_control(step, plan);
    Touched touched;
    for (const auto* list : {step.inputs(), step.outputs()})
      for (const int32_t value : items(list))
        if (value >= 0)
          if (const uint8_t location = location_of(static_cast<uint32_t>(value)); location != kNowhere)
            touched.add(location);
    const bool mixed = touched.host && touched.device != 0;
    if (plan.workspace_bytes() > 0) touched.add(kind(plan.workspace_region()));
    SINTER_RETURN_UNLESS(!touched.several, corrupt("a step touches the memory of two devices"));
    if (touched.device == 0) return check_host_step(plan);

    SINTER_RETURN_UNLESS(!plan.in_order(), corrupt("a step is planned in order in device memory"));
    const auto candidates = items(plan.candidates());
    SINTER_RETURN_UNLESS(
        candidates.size() == 1 && candidates[0] == touched.device - 1,
        corrupt("a step in the memory of backend %a must name it alone", touched.device - 1));
    if (!touched.host) return ok_status();
    SINTER_RETURN_UNLESS(mixed && step_op(step) == Op::kCopy && plan.workspace_bytes() == 0,
                         corrupt("a step that is not a transfer uses both host memory and device memory"));
    for (const auto* list : {step.inputs(), step.outputs()}) {
      const Place at = v_.place_of(static_cast<uint32_t>(items(list)[0]));
      SINTER_RETURN_UNLESS(at.placement == nullptr || at.view.dense(),
                           corrupt("a transfer's operand is not dense"));
    }
    return ok_status();
  }

  // The session decides on the host: conditions, numbers of trips and iteration numbers are there. Values
  // that it copies into a body or out of it stay in their memory.
  Status check_control(const fb::Step& step, const fb::StepPlan& plan) const {
    const auto ins = items(step.inputs()), outs = items(step.outputs());
    const bool loop = step_op(step) == Op::kLoop;
    const auto host = [&](int32_t value) {
      return value < 0 || memory_of(static_cast<uint32_t>(value)) == 0;
    };
    SINTER_RETURN_UNLESS(
        host(ins[0]) && (!loop || (host(ins[1]) && host(outs.back()))),
        corrupt("the condition or the number of trips of a control step is not in host memory"));
    SINTER_RETURN_UNLESS(plan.workspace_bytes() == 0 || kind(plan.workspace_region()) == 0,
                         corrupt("the workspace of a control step is not host memory"));
    for (const uint32_t sub : items(step.subprograms())) {
      const ProgramFacts& body = v_.all[sub];
      const fb::ProgramPlan& body_plan = *find_plan(v_.profile, sub);
      const auto inside = [&](const auto* ports, uint32_t i) {
        const uint8_t location = detail::location_of(body_plan, body, ports->Get(i)->value());
        return location != kNowhere ? location : uint8_t{0};
      };
      const auto same = [&](int32_t outside, const auto* ports, uint32_t i) {
        return outside < 0 || memory_of(static_cast<uint32_t>(outside)) == inside(ports, i);
      };
      const auto *parameters = body.program->inputs(), *results = body.program->outputs();
      if (loop)
        SINTER_RETURN_UNLESS(
            inside(parameters, 0) == 0 && inside(parameters, 1) == 0 && inside(results, 0) == 0,
            corrupt("the condition or the iteration number of a loop's body is not in host memory"));
      const uint32_t carried = control_shape(step).carried;
      for (uint32_t i = 0; i + (loop ? 1 : 0) < outs.size(); ++i)
        SINTER_RETURN_UNLESS(
            same(outs[i], results, loop ? i + 1 : i),
            corrupt("result %a of a control step and of its body are in different memories", i));
      for (uint32_t i = 0; i < carried; ++i)
        SINTER_RETURN_UNLESS(
            same(ins[2 + i], parameters, 2 + i) && inside(results, 1 + i) == inside(parameters, 2 + i),
            corrupt("carried value %a changes its memory", i));
    }
    return check_host_step(plan);
  }

  Status check_host_step(const fb::StepPlan& plan) const {
    for (const uint8_t c : items(plan.candidates()))
      for (const fb::Region* r : *v_.entry_plan.regions())
        SINTER_RETURN_UNLESS(
            r->memory_kind() != c + 1,
            corrupt("backend %a, which has device memory, is a candidate for a step on the host", c));
    return ok_status();
  }

  const PlanView& v_;
  const fb::Program& program_;
};

}  // namespace

Status check_memories(const PlanView& view) { return MemoryVerifier(view).run(); }

uint8_t location_of(const fb::ProgramPlan& plan, const ProgramFacts& facts, uint32_t value) {
  if ((facts.ports[value] & 1) != 0) return facts.ports[value] >> 1;
  const fb::Placement* p = find_placement(plan, value);
  if (p == nullptr) return kNowhere;
  const fb::Region* region =
      p->region() < length(plan.regions()) ? plan.regions()->Get(p->region()) : nullptr;
  return region != nullptr && region->memory_kind() <= kMostMemoryKind ? region->memory_kind() : uint8_t{0};
}

void locate_captured(const fb::Profile& profile, std::span<ProgramFacts> facts) {
  for (int depth = 1; depth <= kMaxNesting; ++depth)
    for (const fb::ProgramPlan* plan : *profile.plans()) {
      const ProgramFacts& f = facts[plan->program()];
      int at = 0;
      for (const ProgramFacts* p = &f; p->owner != nullptr; p = &facts[p->owner_index]) ++at;
      if (at != depth) continue;
      const fb::ProgramPlan& outer = *find_plan(profile, f.owner_index);
      const uint32_t first = control_shape(*f.owner_step).captured;
      for (uint32_t i = f.own_inputs; i < length(f.program->inputs()); ++i) {
        const int32_t from = items(f.owner_step->inputs())[first + i - f.own_inputs];  // verified
        const uint8_t location = location_of(outer, facts[f.owner_index], static_cast<uint32_t>(from));
        f.ports[f.program->inputs()->Get(i)->value()] = static_cast<uint8_t>(1 | location << 1);
      }
    }
}

}  // namespace sinter::detail
