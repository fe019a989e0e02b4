// A plan with device memory: where values may be placed, which backend each step belongs to, and
// that data cross from one memory to another only in transfers. schemas/FORMAT.md, "Device memory".
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
      SINTER_RETURN_IF_ERROR(check_values());
    }
    for (uint32_t s = 0; s < v_.steps(); ++s) {
      const Status status = check_step(*program_.steps()->Get(s), *v_.plan.steps()->Get(s));
      if (!status.ok()) return status.at_step(s, v_.facts.index);
    }
    return ok_status();
  }

 private:
  // The memory of a region, which is verified to exist.
  uint8_t kind(uint32_t region) const { return v_.plan.regions()->Get(region)->memory_kind(); }
  // Constants and prepared values are the host's.
  uint8_t memory_of(uint32_t value) const {
    const fb::Placement* p = find_placement(v_.plan, value);
    return p != nullptr ? kind(p->region()) : uint8_t{0};
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

  // The memory that the step touches.
  struct Touched {
    bool host = false;
    uint8_t device = 0;
    bool several = false;  // devices

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
    Touched touched;
    for (const auto* list : {step.inputs(), step.outputs()})
      for (const int32_t value : items(list))
        if (value >= 0 && find_placement(v_.plan, static_cast<uint32_t>(value)) != nullptr)
          touched.add(memory_of(static_cast<uint32_t>(value)));
    const bool mixed = touched.host && touched.device != 0;
    if (plan.workspace_bytes() > 0) touched.add(kind(plan.workspace_region()));
    SINTER_RETURN_UNLESS(!touched.several, corrupt("a step touches the memory of two devices"));
    if (touched.device == 0) return check_host_step(plan);

    SINTER_RETURN_UNLESS(!is_control(step), corrupt("an operand of a control step is not host memory"));
    SINTER_RETURN_UNLESS(!plan.in_order(), corrupt("a step is planned in order in device memory"));
    const auto candidates = items(plan.candidates());
    SINTER_RETURN_UNLESS(
        candidates.size() == 1 && candidates[0] == touched.device - 1,
        corrupt("a step in the memory of backend %a must name it alone", touched.device - 1));
    if (!touched.host) return ok_status();
    SINTER_RETURN_UNLESS(mixed && step_op(step) == Op::kCopy && plan.workspace_bytes() == 0,
                         corrupt("a step that is not a transfer uses both host memory and device memory"));
    for (const auto* list : {step.inputs(), step.outputs()})
      SINTER_RETURN_UNLESS(v_.place_of(static_cast<uint32_t>(items(list)[0])).view.dense(),
                           corrupt("a transfer's operand is not dense"));
    return ok_status();
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

}  // namespace sinter::detail
