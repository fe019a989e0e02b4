// A profile's plan of one program: placements inside regions, operands where kernels can use them, elided
// steps in place, and no byte shared by values that live at the same time. The rules are in
// schemas/FORMAT.md, "Planned memory".
#include "runtime/backend/validate.h"
#include "runtime/model/lives.h"
#include "runtime/model/plan_view.h"

namespace sinter::detail {
namespace {

constexpr uint64_t kMostBytes = uint64_t{PTRDIFF_MAX} / 4;

class PlanVerifier : PlanView {
 public:
  explicit PlanVerifier(const PlanView& view) : PlanView(view), s_(scratch), f_(facts), steps_(steps()) {}

  // The parts have frames of their own, which are gone when the deepest one, check_blocks(), is called.
  Status run() {
    SINTER_RETURN_IF_ERROR(check_frame());
    SINTER_RETURN_IF_ERROR(check_placements());
    SINTER_RETURN_IF_ERROR(find_blocks(*this));
    SINTER_RETURN_IF_ERROR(check_steps());
    SINTER_RETURN_IF_ERROR(check_memories(*this));
    SINTER_RETURN_IF_ERROR(check_ports());
    SINTER_RETURN_IF_ERROR(check_copies());
    SINTER_RETURN_IF_ERROR(prove_disjoint({s_.boxes, boxes_}, s_.rest));
    return check_blocks(*this);
  }

 private:
  // Checks the regions, and that the plan fits the program, the profile and its owner.
  [[gnu::noinline]] Status check_frame() const {
    SINTER_RETURN_UNLESS(length(plan.steps()) == steps_, corrupt("a plan does not belong to its program"));
    SINTER_RETURN_UNLESS(length(plan.regions()) <= kMaxRegions,
                         unsupported("a program has more than %a regions", kMaxRegions));
    uint64_t sum = 0;
    for (uint32_t i = 0; i < length(plan.regions()); ++i) {
      const fb::Region& r = *plan.regions()->Get(i);
      SINTER_RETURN_UNLESS(r.memory_kind() <= length(profile.backends()),
                           corrupt("a region is in the memory of a backend that the profile does not list"));
      SINTER_RETURN_UNLESS(r.memory_kind() == 0 || i > 0, corrupt("the first region is not host memory"));
      SINTER_RETURN_UNLESS(
          r.memory_kind() <= kMostMemoryKind,
          unsupported("a region is in the memory of a backend after the first %a", int64_t{kMostMemoryKind}));
      SINTER_RETURN_UNLESS(
          r.bytes() >= kReadPadding && r.bytes() % kBufferAlignment == 0,
          corrupt("a region has %a bytes, which leave no padding or are not a multiple of %b",
                  static_cast<int64_t>(r.bytes()), kBufferAlignment));
      SINTER_RETURN_UNLESS(
          r.bytes() <= kMostBytes && checked_add<uint64_t>(sum, r.bytes(), &sum) && sum <= kMostBytes,
          corrupt("the regions are too large"));
    }
    if (entry()) return ok_status();
    return check_fit();
  }

  // Checks that a subprogram's regions are within the workspaces of its step.
  Status check_fit() const {
    const fb::ProgramPlan& outer = *find_plan(profile, f_.owner_index);
    const fb::StepPlan* step =
        f_.owner_step_index < length(outer.steps()) ? outer.steps()->Get(f_.owner_step_index) : nullptr;
    for (uint32_t i = 0; i < length(plan.regions()); ++i) {
      const fb::Region& r = *plan.regions()->Get(i);
      SINTER_RETURN_UNLESS(i == 0 || r.memory_kind() > plan.regions()->Get(i - 1)->memory_kind(),
                           corrupt("a subprogram has two regions of one memory, or out of order"));
      const fb::DeviceWorkspace* there = step != nullptr && r.memory_kind() != 0
                                             ? find_device_workspace(outer, *step, r.memory_kind())
                                             : nullptr;
      const uint64_t room = r.memory_kind() == 0 && step != nullptr ? step->workspace_bytes()
                            : there != nullptr                      ? there->bytes()
                                                                    : 0;
      SINTER_RETURN_UNLESS(r.bytes() <= room, corrupt("a subprogram does not fit its step's workspace"));
    }
    return ok_status();
  }

  // Checks the device workspaces of a control step, which ascend by memory.
  Status check_device_workspaces(const fb::Step& step, const fb::StepPlan& p, int32_t s) {
    uint8_t last = 0;
    for (uint32_t i = 0; i < length(p.device_workspaces()); ++i) {
      const fb::DeviceWorkspace& w = *p.device_workspaces()->Get(i);
      SINTER_RETURN_UNLESS(is_control(step),
                           corrupt("a step that is not a control step has a workspace for subprograms"));
      SINTER_RETURN_UNLESS(w.offset() % kBufferAlignment == 0 && inside(w.region(), w.offset(), w.bytes()),
                           corrupt("a workspace extends beyond its region"));
      const uint8_t kind = plan.regions()->Get(w.region())->memory_kind();
      SINTER_RETURN_UNLESS(kind > last,
                           corrupt("the device workspaces of a step are not of different devices, in order"));
      last = kind;
      const uint64_t begin = base(w.region()) + w.offset();
      s_.boxes[boxes_++] = {
          begin, begin + w.bytes(), s, s, static_cast<int32_t>(placements() + steps_ + more_++), -1};
    }
    return ok_status();
  }

  // Returns whether [offset, offset + bytes) is inside the region and leaves its padding free.
  bool inside(uint32_t region, uint64_t offset, uint64_t bytes) const {
    if (region >= length(plan.regions())) return false;
    uint64_t end = 0;
    return checked_add(offset, bytes, &end) && checked_add<uint64_t>(end, kReadPadding, &end) &&
           end <= plan.regions()->Get(region)->bytes();
  }

  bool needs_place(uint32_t v) const {
    switch (value(v).kind()) {
      case fb::ValueKind::Temporary:
      case fb::ValueKind::State:
        return true;
      case fb::ValueKind::Input:
        return (f_.ports[v] & 1) == 0;
      default:
        return false;
    }
  }

  [[gnu::noinline]] Status check_placements() {
    const auto end = static_cast<int32_t>(steps_);
    uint32_t next = 0;
    for (uint32_t v = 0; v < length(f_.program->values()); ++v) {
      const bool here = next < placements() && plan.placements()->Get(next)->value() == v;
      SINTER_RETURN_UNLESS(here == needs_place(v),
                           corrupt("the value's placement is missing, superfluous or out of order")
                               .at(Where::kValue, static_cast<int32_t>(v)));
      if (!here) continue;
      const Status status = check_placement(*plan.placements()->Get(next), end);
      if (!status.ok()) return status.at(Where::kValue, static_cast<int32_t>(v));
      ++next;
    }
    SINTER_RETURN_UNLESS(next == placements(), corrupt("a plan places values that do not exist"));
    return ok_status();
  }

  Status check_placement(const fb::Placement& p, int32_t end) {
    const TensorView dense = value_view(value(p.value()));
    const auto width = static_cast<int64_t>(byte_width(dense.dtype));
    SINTER_RETURN_UNLESS(p.strides() == nullptr || length(p.strides()) == dense.rank,
                         corrupt("a placement has too few strides"));
    // The extent of the inner axes, from the last one outwards.
    uint64_t extent = static_cast<uint64_t>(width);
    bool empty = false;
    for (int i = dense.rank - 1; i >= 0; --i) {
      const int64_t stride =
          p.strides() != nullptr ? items(p.strides())[static_cast<size_t>(i)] : dense.strides[i];
      if (dense.dims[i] == 0) empty = true;
      if (dense.dims[i] <= 1 || empty) {
        SINTER_RETURN_UNLESS(
            stride >= 0 && stride % width == 0 && static_cast<uint64_t>(stride) <= kMostBytes,
            corrupt("a placement's strides are impossible"));
        continue;
      }
      uint64_t span = 0;
      SINTER_RETURN_UNLESS(
          stride > 0 && stride % width == 0 && static_cast<uint64_t>(stride) >= extent &&
              checked_mul(static_cast<uint64_t>(stride), static_cast<uint64_t>(dense.dims[i] - 1), &span) &&
              checked_add(extent, span, &extent) && extent <= kMostBytes,
          corrupt("a placement's strides are impossible"));
    }
    if (empty) extent = 0;
    SINTER_RETURN_UNLESS(p.bytes() == 0 || p.bytes() == extent,
                         corrupt("a placement has %a bytes, not %b", static_cast<int64_t>(p.bytes()),
                                 static_cast<int64_t>(extent)));
    SINTER_RETURN_UNLESS(
        p.offset() % (p.alias_of() == -1 ? kBufferAlignment : static_cast<uint64_t>(width)) == 0,
        corrupt("a placement is not aligned"));
    SINTER_RETURN_UNLESS(inside(p.region(), p.offset(), extent),
                         corrupt("a placement extends beyond its region"));
    // The bytes of a state belong to it all the time, even where its old content is not needed any more.
    const bool state = value(p.value()).kind() == fb::ValueKind::State;
    const Life life = state ? Life{-1, end} : f_.lives[p.value()];
    const Life stated = stated_life(p, life);
    SINTER_RETURN_UNLESS(stated.first >= -1 && stated.first <= life.first && stated.last >= life.last &&
                             stated.last <= end && stated.first <= stated.last,
                         corrupt("a placement does not cover the value's live range"));
    Box& box = s_.boxes[boxes_++];
    box = {place(p).begin, place(p).end, stated.first, stated.last, 0, static_cast<int32_t>(p.value())};
    return ok_status();
  }
  [[gnu::noinline]] Status check_steps() {
    for (uint32_t v = 0; v < length(f_.program->values()); ++v)
      s_.written[v] = value(v).kind() == fb::ValueKind::Input || value(v).kind() == fb::ValueKind::State;
    for (uint32_t s = 0; s < steps_; ++s) {
      const Status status =
          check_step(*f_.program->steps()->Get(s), *plan.steps()->Get(s), static_cast<int32_t>(s));
      if (!status.ok()) return status.at_step(s, f_.index);
    }
    return ok_status();
  }

  Status check_step(const fb::Step& step, const fb::StepPlan& p, int32_t s) {
    for (const uint8_t c : items(p.candidates()))
      SINTER_RETURN_UNLESS(c < length(profile.backends()),
                           corrupt("a candidate is not a backend of the profile"));
    if (p.workspace_bytes() > 0) {
      SINTER_RETURN_UNLESS(p.workspace_offset() % kBufferAlignment == 0 &&
                               inside(p.workspace_region(), p.workspace_offset(), p.workspace_bytes()),
                           corrupt("a workspace extends beyond its region"));
      const uint64_t begin = base(p.workspace_region()) + p.workspace_offset();
      s_.boxes[boxes_++] = {begin, begin + p.workspace_bytes(), s, s, static_cast<int32_t>(placements()) + s,
                            -1};
    }
    SINTER_RETURN_IF_ERROR(check_device_workspaces(step, p, s));
    if (p.elided()) return check_elided(step);
    const OpInfo& info = *op_info(step_op(step));
    const auto usable = [&](int32_t v, Strides row, bool first) {
      if (v < 0 || row == Strides::kAny) return true;
      const fb::Placement* at = find_placement(plan, static_cast<uint32_t>(v));
      return at == nullptr || takes_strides(row, place(*at).view, first);
    };
    const auto ins = items(step.inputs()), outs = items(step.outputs());
    for (size_t i = 0; i < ins.size(); ++i)
      SINTER_RETURN_UNLESS(usable(ins[i], info.in_strides, i == 0),
                           corrupt("value %a must be dense here", ins[i]));
    for (size_t i = 0; i < outs.size(); ++i) {
      SINTER_RETURN_UNLESS(usable(outs[i], info.out_strides, i == 0),
                           corrupt("value %a must be dense here", outs[i]));
      if (outs[i] >= 0) s_.written[outs[i]] = 1;
    }
    return ok_status();
  }

  Status check_elided(const fb::Step& step) {
    const auto ins = items(step.inputs());
    SINTER_RETURN_UNLESS(length(step.outputs()) == 1 && items(step.outputs())[0] >= 0 && !ins.empty(),
                         corrupt("the step cannot be elided"));
    const Place out = place_of(static_cast<uint32_t>(items(step.outputs())[0]));
    AttrStorage attrs;
    SINTER_RETURN_IF_ERROR(decode_attrs(step, &attrs));
    const auto wrong = corrupt("an elided step's operands are not at the required offsets");
    uint64_t offset = out.begin;
    for (size_t i = 0; i < ins.size(); ++i) {
      const Place in = ins[i] >= 0 ? place_of(static_cast<uint32_t>(ins[i])) : Place{};
      SINTER_RETURN_UNLESS(in.placement != nullptr && in.placement->region() == out.placement->region(),
                           wrong);
      switch (step_op(step)) {
        case Op::kView:
          SINTER_RETURN_UNLESS(in.begin == out.begin && in.view.dense() && out.view.dense(), wrong);
          break;
        case Op::kCopy:
          SINTER_RETURN_UNLESS(in.begin == out.begin && same_strides(in.view, out.view), wrong);
          break;
        case Op::kSlice: {
          const auto& a = *reinterpret_cast<const SliceAttrs*>(&attrs);
          uint64_t begin = in.begin;
          for (int d = 0; d < in.view.rank; ++d) {
            if (out.view.size() == 0) break;
            begin += static_cast<uint64_t>(a.starts[d]) * static_cast<uint64_t>(in.view.strides[d]);
            SINTER_RETURN_UNLESS(
                out.view.dims[d] <= 1 ||
                    (a.steps[d] > 0 && out.view.strides[d] == in.view.strides[d] * a.steps[d]),
                wrong);
          }
          SINTER_RETURN_UNLESS(out.view.size() == 0 || out.begin == begin, wrong);
          break;
        }
        case Op::kConcat: {
          const int64_t axis = reinterpret_cast<const ConcatAttrs*>(&attrs)->axis;
          SINTER_RETURN_UNLESS(in.view.size() == 0 || (in.begin == offset && same_strides(in.view, out.view)),
                               wrong);
          offset += static_cast<uint64_t>(in.view.dims[axis]) * static_cast<uint64_t>(out.view.strides[axis]);
          break;
        }
        default:
          return corrupt("the step cannot be elided");
      }
    }
    return ok_status();
  }

  [[gnu::noinline]] Status check_ports() const {
    for (const auto* ports : {f_.program->inputs(), f_.program->outputs()})
      for (uint32_t i = 0; i < length(ports); ++i) {
        const Place at = place_of(ports->Get(i)->value());
        SINTER_RETURN_UNLESS(at.placement == nullptr || at.view.dense(),
                             corrupt("an input or output is not dense")
                                 .at(Where::kValue, static_cast<int32_t>(ports->Get(i)->value())));
      }
    for (uint32_t v = 0; v < length(f_.program->values()); ++v) {
      if (value(v).kind() != fb::ValueKind::State) continue;
      SINTER_RETURN_UNLESS(place_of(v).view.dense(),
                           corrupt("a state is not dense").at(Where::kValue, static_cast<int32_t>(v)));
      if (value(v).update() < 0) continue;
      const Place at = place_of(static_cast<uint32_t>(value(v).update()));
      SINTER_RETURN_UNLESS(
          at.placement == nullptr || at.view.dense(),
          corrupt("a state's update is not dense").at(Where::kValue, static_cast<int32_t>(v)));
    }
    return ok_status();
  }

  // Checks the copies when a body or a run ends, in order: result `from(i)` over `to(i)`, unless it is there
  // already. A target shares no byte with a result that is copied later.
  template <class To, class From>
  Status check_copy_targets(uint32_t n, To&& to, From&& from) {
    for (uint32_t i = 0; i < n; ++i) {
      const Place target = place_of(to(i)), result = place_of(from(i));
      if (target.placement == nullptr) return corrupt("a parameter has no placement");
      if (result.placement != nullptr && result.begin == target.begin) continue;
      // The device copies between places that do not overlap.
      SINTER_RETURN_UNLESS(result.placement == nullptr || result.end <= target.begin ||
                               target.end <= result.begin ||
                               plan.regions()->Get(target.placement->region())->memory_kind() == 0,
                           corrupt("value %a would be copied over a part of itself in device memory",
                                   result.placement->value()));
      for (uint32_t k = i + 1; k < n; ++k) {
        SINTER_RETURN_UNLESS(budget-- > 0, unsupported("the plan is too entangled to verify"));
        const Place other = place_of(from(k));
        SINTER_RETURN_UNLESS(
            k == i || other.placement == nullptr || other.end <= target.begin || target.end <= other.begin,
            corrupt("value %a would be overwritten while results are copied", other.placement->value()));
      }
    }
    return ok_status();
  }

  [[gnu::noinline]] Status check_copies() {
    if (!entry()) {
      if (step_op(*f_.owner_step) != Op::kLoop) return ok_status();
      const auto* ins = f_.program->inputs();
      const auto* outs = f_.program->outputs();
      return check_copy_targets(
          control_shape(*f_.owner_step).carried, [&](uint32_t i) { return ins->Get(2 + i)->value(); },
          [&](uint32_t i) { return outs->Get(1 + i)->value(); });
    }
    // States are few, so they are collected in `order`, which is used again below.
    uint32_t n = 0;
    for (uint32_t v = 0; v < length(f_.program->values()); ++v)
      if (value(v).kind() == fb::ValueKind::State && value(v).update() >= 0) s_.order[n++] = v;
    const auto update = [&](uint32_t i) { return static_cast<uint32_t>(value(s_.order[i]).update()); };
    SINTER_RETURN_IF_ERROR(check_copy_targets(
        n, [&](uint32_t i) { return s_.order[i]; }, update));
    // Outputs and their lengths are read when the states have been copied.
    for (uint32_t i = 0; i < n; ++i) {
      const Place state = place_of(s_.order[i]), result = place_of(update(i));
      if (result.placement != nullptr && result.begin == state.begin) continue;
      const auto apart = [&](uint32_t v) {
        const Place other = place_of(v);
        return other.placement == nullptr || other.end <= state.begin || state.end <= other.begin;
      };
      for (uint32_t k = 0; k < length(f_.program->outputs()); ++k) {
        const uint32_t output = f_.program->outputs()->Get(k)->value();
        SINTER_RETURN_UNLESS(budget-- > 0, unsupported("the plan is too entangled to verify"));
        bool fine = apart(output);
        if (value(output).bounded_dims() != nullptr)
          for (const fb::BoundedDim* e : *value(output).bounded_dims())
            fine = fine && apart(static_cast<uint32_t>(e->length()));
        SINTER_RETURN_UNLESS(fine, corrupt("an output would be overwritten when states are copied")
                                       .at(Where::kOutput, static_cast<int32_t>(k)));
      }
    }
    return ok_status();
  }

  PlanScratch& s_;
  const ProgramFacts& f_;
  const uint32_t steps_;
  size_t boxes_ = 0;
  uint32_t more_ = 0;  // workspaces in addition to those of steps
};

}  // namespace

void measure_plan(uint32_t values, size_t workspaces, BumpArena& scratch) {
  const PlanScratch s(values, workspaces, scratch);
  scratch.allocate(s.needed - scratch.used(), 1);
}

size_t device_workspaces(const fb::ProgramPlan& plan) {
  size_t count = 0;
  for (uint32_t s = 0; s < length(plan.steps()); ++s)
    count += length(plan.steps()->Get(s)->device_workspaces());
  return count;
}

Status verify_plan(const ModelState& model, const fb::Profile& profile, std::span<const ProgramFacts> all,
                   uint32_t program, BumpArena arena) {
  const ProgramFacts& facts = all[program];
  const fb::ProgramPlan& plan = *find_plan(profile, program);
  PlanScratch scratch(length(facts.program->values()),
                      length(facts.program->steps()) + device_workspaces(plan), arena);
  SINTER_RETURN_UNLESS(!arena.exhausted(), corrupt("the file states too little scratch memory"));
  return PlanVerifier({model, profile, plan, *find_plan(profile, facts.entry), all, facts, scratch}).run();
}

}  // namespace sinter::detail
