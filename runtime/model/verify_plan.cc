// A profile's plan of one program: placements inside regions, operands where kernels can use them, elided
// steps in place, and no byte shared by what lives at the same time. The rules are in schemas/FORMAT.md,
// "Planned memory".
#include <algorithm>

#include "runtime/model/overlap.h"
#include "runtime/model/verify.h"

namespace sinter::detail {
namespace {

constexpr uint64_t kMostBytes = uint64_t{PTRDIFF_MAX} / 4;

// Where a value lies, ready to compare.
struct Place {
  const fb::Placement* placement = nullptr;
  uint64_t begin = 0, end = 0;  // in one address space for all regions
  TensorView view;              // dims and strides
};

struct Scratch {
  Box* boxes;
  int32_t* block;   // per placement: index of its block's first placement
  uint32_t* order;  // placements by first step
  uint32_t* active;
  uint8_t* written;  // per value: a step that is not elided, or a caller, writes it
  uint8_t* state;    // per placement, while blocks are found

  Scratch(uint32_t values, uint32_t steps, BumpArena& arena)
      : boxes(arena.allocate_array<Box>(size_t{values} + steps)),
        block(arena.allocate_array<int32_t>(values)),
        order(arena.allocate_array<uint32_t>(values)),
        active(arena.allocate_array<uint32_t>(values)),
        written(arena.allocate_array<uint8_t>(values)),
        state(arena.allocate_array<uint8_t>(values)) {
    BumpArena sweep = arena;
    if (arena.measuring()) measure_disjoint(size_t{values} + steps, sweep);
    rest = arena;
    needed = sweep.used();
  }
  BumpArena rest;
  size_t needed = 0;
};

class PlanVerifier {
 public:
  PlanVerifier(const fb::Profile& profile, const fb::ProgramPlan& plan, const ProgramFacts& facts,
               Scratch& scratch)
      : profile_(profile), plan_(plan), f_(facts), s_(scratch), steps_(length(facts.program->steps())) {}

  Status run() {
    SINTER_RETURN_IF_ERROR(check_owner());
    SINTER_RETURN_IF_ERROR(check_placements());
    SINTER_RETURN_IF_ERROR(find_blocks());
    SINTER_RETURN_IF_ERROR(check_steps());
    SINTER_RETURN_IF_ERROR(check_ports());
    SINTER_RETURN_IF_ERROR(check_copies());
    SINTER_RETURN_IF_ERROR(prove_disjoint({s_.boxes, boxes_}, s_.rest));
    return check_blocks();
  }

 private:
  bool entry() const { return f_.owner == nullptr; }
  const fb::Value& value(uint32_t v) const { return *f_.program->values()->Get(v); }
  uint32_t placements() const { return length(plan_.placements()); }

  Place place(const fb::Placement& p) const {
    Place out;
    out.placement = &p;
    out.view = value_view(value(p.value()));
    if (p.strides() != nullptr)
      for (int i = 0; i < out.view.rank; ++i)
        out.view.strides[i] = items(p.strides())[static_cast<size_t>(i)];
    out.begin = (entry() ? base(p.region()) : 0) + p.offset();
    out.end = out.begin + p.bytes();
    return out;
  }
  // Place of a value, with a null placement if it has none.
  Place place_of(uint32_t v) const {
    const fb::Placement* p = find_placement(plan_, v);
    return p != nullptr ? place(*p) : Place{};
  }
  uint64_t base(uint32_t region) const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < region; ++i) sum += profile_.regions()->Get(i)->bytes();
    return sum;
  }

  // What is given here fits what surrounds it.
  Status check_owner() const {
    SINTER_CHECK(plan_.program() == f_.index && length(plan_.steps()) == steps_,
                 corrupt("a plan does not belong to its program"));
    if (entry()) {
      uint64_t sum = 0;
      for (uint32_t i = 0; i < length(profile_.regions()); ++i) sum += profile_.regions()->Get(i)->bytes();
      SINTER_CHECK(plan_.arena_bytes() == sum, corrupt("the plan does not state the regions' bytes"));
      return ok_status();
    }
    SINTER_CHECK(plan_.arena_bytes() <= kMostBytes, corrupt("a plan is too large"));
    const fb::ProgramPlan& outer = *profile_.programs()->Get(f_.owner_index);
    SINTER_CHECK(f_.owner_step_index < length(outer.steps()) &&
                     outer.steps()->Get(f_.owner_step_index)->workspace_bytes() >= plan_.arena_bytes(),
                 corrupt("a subprogram does not fit its step's workspace"));
    return ok_status();
  }

  // [offset, offset + bytes) lies in the region and leaves its padding free.
  bool inside(uint32_t region, uint64_t offset, uint64_t bytes) const {
    uint64_t room = plan_.arena_bytes(), padding = kReadPadding;
    if (entry()) {
      if (region >= length(profile_.regions())) return false;
      room = profile_.regions()->Get(region)->bytes();
      padding = profile_.regions()->Get(region)->padding();
    }
    uint64_t end = 0;
    return checked_add(offset, bytes, &end) && checked_add(end, padding, &end) && end <= room;
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

  Status check_placements() {
    const auto end = static_cast<int32_t>(steps_);
    uint32_t next = 0;
    for (uint32_t v = 0; v < length(f_.program->values()); ++v) {
      const bool here = next < placements() && plan_.placements()->Get(next)->value() == v;
      SINTER_CHECK(here == needs_place(v),
                   corrupt("the value's placement is missing or needless, or out of order")
                       .at(Where::kValue, static_cast<int32_t>(v)));
      if (!here) continue;
      const Status status = check_placement(*plan_.placements()->Get(next), end);
      if (!status.ok()) return status.at(Where::kValue, static_cast<int32_t>(v));
      ++next;
    }
    SINTER_CHECK(next == placements(), corrupt("a plan places values that do not exist"));
    return ok_status();
  }

  Status check_placement(const fb::Placement& p, int32_t end) {
    const TensorView dense = value_view(value(p.value()));
    const auto width = static_cast<int64_t>(byte_width(dense.dtype));
    SINTER_CHECK(p.strides() == nullptr || length(p.strides()) == dense.rank,
                 corrupt("a placement has too few strides"));
    // Extent of the inner axes, from the last one outwards.
    uint64_t extent = static_cast<uint64_t>(width);
    bool empty = false;
    for (int i = dense.rank - 1; i >= 0; --i) {
      const int64_t stride =
          p.strides() != nullptr ? items(p.strides())[static_cast<size_t>(i)] : dense.strides[i];
      if (dense.dims[i] == 0) empty = true;
      if (dense.dims[i] <= 1 || empty) {
        SINTER_CHECK(stride >= 0 && stride % width == 0 && static_cast<uint64_t>(stride) <= kMostBytes,
                     corrupt("a placement's strides are impossible"));
        continue;
      }
      uint64_t span = 0;
      SINTER_CHECK(
          stride > 0 && stride % width == 0 && static_cast<uint64_t>(stride) >= extent &&
              checked_mul(static_cast<uint64_t>(stride), static_cast<uint64_t>(dense.dims[i] - 1), &span) &&
              checked_add(extent, span, &extent) && extent <= kMostBytes,
          corrupt("a placement's strides are impossible"));
    }
    if (empty) extent = 0;
    SINTER_CHECK(p.bytes() == extent, corrupt("a placement has %a bytes, not %b",
                                              static_cast<int64_t>(p.bytes()), static_cast<int64_t>(extent)));
    SINTER_CHECK(p.offset() % (p.alias_of() == -1 ? kBufferAlignment : static_cast<uint64_t>(width)) == 0,
                 corrupt("a placement is not aligned"));
    SINTER_CHECK(inside(p.region(), p.offset(), p.bytes()),
                 corrupt("a placement does not lie in its region"));
    const Life& life = f_.lives[p.value()];
    SINTER_CHECK(p.first_step() >= -1 && p.first_step() <= life.first && p.last_step() >= life.last &&
                     p.last_step() <= end && p.first_step() <= p.last_step(),
                 corrupt("a placement does not cover the value's life"));
    Box& box = s_.boxes[boxes_++];
    box = {place(p).begin, place(p).end, p.first_step(), p.last_step(), 0, static_cast<int32_t>(p.value())};
    return ok_status();
  }
  uint32_t index_of(const fb::Placement* p) const {
    const auto* list = plan_.placements();
    uint32_t lo = 0, hi = list->size();
    while (lo + 1 < hi) {
      const uint32_t mid = (lo + hi) / 2;
      (list->Get(mid)->value() <= p->value() ? lo : hi) = mid;
    }
    return lo;
  }

  // Follows alias_of; state 1: on the way, 2: done.
  Status find_blocks() {
    const auto* list = plan_.placements();
    for (uint32_t i = 0; i < placements(); ++i) s_.state[i] = 0;
    for (uint32_t i = 0; i < placements(); ++i) {
      uint32_t at = i;
      while (s_.state[at] == 0) {
        s_.state[at] = 1;
        const fb::Placement& p = *list->Get(at);
        if (p.alias_of() == -1) {
          s_.block[at] = static_cast<int32_t>(at);
          s_.state[at] = 2;
          break;
        }
        const fb::Placement* next =
            p.alias_of() >= 0 ? find_placement(plan_, static_cast<uint32_t>(p.alias_of())) : nullptr;
        SINTER_CHECK(next != nullptr && next->region() == p.region(),
                     corrupt("value %a is an alias of nothing", p.value()));
        at = index_of(next);
      }
      SINTER_CHECK(s_.state[at] == 2, corrupt("aliases go in a circle"));
      const int32_t root = s_.block[at];
      for (at = i; s_.state[at] == 1;) {
        s_.block[at] = root;
        s_.state[at] = 2;
        at = index_of(find_placement(plan_, static_cast<uint32_t>(list->Get(at)->alias_of())));
      }
    }
    for (uint32_t i = 0; i < placements(); ++i) s_.boxes[i].block = s_.block[i];
    return ok_status();
  }

  Status check_steps() {
    for (uint32_t v = 0; v < length(f_.program->values()); ++v)
      s_.written[v] = value(v).kind() == fb::ValueKind::Input || value(v).kind() == fb::ValueKind::State;
    for (uint32_t s = 0; s < steps_; ++s) {
      const Status status =
          check_step(*f_.program->steps()->Get(s), *plan_.steps()->Get(s), static_cast<int32_t>(s));
      if (!status.ok()) return status.at(Where::kStep, static_cast<int32_t>(s));
    }
    return ok_status();
  }

  Status check_step(const fb::Step& step, const fb::StepPlan& p, int32_t s) {
    for (const uint8_t c : items(p.candidates()))
      SINTER_CHECK(c < length(profile_.backends()), corrupt("a candidate is no backend of the profile"));
    if (p.workspace_bytes() > 0) {
      SINTER_CHECK(p.workspace_offset() % kBufferAlignment == 0 &&
                       inside(p.workspace_region(), p.workspace_offset(), p.workspace_bytes()),
                   corrupt("a workspace does not lie in its region"));
      const uint64_t begin = (entry() ? base(p.workspace_region()) : 0) + p.workspace_offset();
      s_.boxes[boxes_++] = {begin, begin + p.workspace_bytes(), s, s, static_cast<int32_t>(placements()) + s,
                            -1};
    }
    if (p.elided()) return check_elided(step);
    const OpInfo& info = *op_info(step_op(step));
    const auto usable = [&](int32_t v, Strides takes) {
      if (v < 0 || takes == Strides::kAny) return true;
      const fb::Placement* at = find_placement(plan_, static_cast<uint32_t>(v));
      return at == nullptr || place(*at).view.dense();
    };
    for (const int32_t v : items(step.inputs()))
      SINTER_CHECK(usable(v, info.in_strides), corrupt("value %a must be dense here", v));
    for (const int32_t v : items(step.outputs())) {
      SINTER_CHECK(usable(v, info.out_strides), corrupt("value %a must be dense here", v));
      if (v >= 0) s_.written[v] = 1;
    }
    return ok_status();
  }

  static bool same_strides(const TensorView& a, const TensorView& b) {
    for (int i = 0; i < a.rank; ++i)
      if (a.dims[i] > 1 && b.dims[i] > 1 && a.strides[i] != b.strides[i]) return false;
    return true;
  }

  Status check_elided(const fb::Step& step) {
    const auto ins = items(step.inputs());
    SINTER_CHECK(length(step.outputs()) == 1 && items(step.outputs())[0] >= 0 && !ins.empty(),
                 corrupt("the step cannot be elided"));
    const Place out = place_of(static_cast<uint32_t>(items(step.outputs())[0]));
    AttrStorage attrs;
    SINTER_RETURN_IF_ERROR(decode_attrs(step_op(step), items(step.ints()), items(step.floats()), &attrs));
    const auto wrong = corrupt("an elided step's operands do not lie where it needs them");
    uint64_t offset = out.begin;
    for (size_t i = 0; i < ins.size(); ++i) {
      const Place in = ins[i] >= 0 ? place_of(static_cast<uint32_t>(ins[i])) : Place{};
      SINTER_CHECK(in.placement != nullptr && in.placement->region() == out.placement->region(), wrong);
      switch (step_op(step)) {
        case Op::kView:
          SINTER_CHECK(in.begin == out.begin && in.view.dense() && out.view.dense(), wrong);
          break;
        case Op::kCopy:
          SINTER_CHECK(in.begin == out.begin && same_strides(in.view, out.view), wrong);
          break;
        case Op::kSlice: {
          const auto& a = *reinterpret_cast<const SliceAttrs*>(&attrs);
          uint64_t begin = in.begin;
          for (int d = 0; d < in.view.rank; ++d) {
            if (out.view.size() == 0) break;
            SINTER_CHECK(a.steps[d] > 0, wrong);
            begin += static_cast<uint64_t>(a.starts[d]) * static_cast<uint64_t>(in.view.strides[d]);
            SINTER_CHECK(out.view.dims[d] <= 1 || out.view.strides[d] == in.view.strides[d] * a.steps[d],
                         wrong);
          }
          SINTER_CHECK(out.view.size() == 0 || out.begin == begin, wrong);
          break;
        }
        case Op::kConcat: {
          const int64_t axis = reinterpret_cast<const ConcatAttrs*>(&attrs)->axis;
          SINTER_CHECK(in.view.size() == 0 || (in.begin == offset && same_strides(in.view, out.view)), wrong);
          offset += static_cast<uint64_t>(in.view.dims[axis]) * static_cast<uint64_t>(out.view.strides[axis]);
          break;
        }
        default:
          return corrupt("the step cannot be elided");
      }
    }
    return ok_status();
  }

  Status check_ports() const {
    for (const auto* ports : {f_.program->inputs(), f_.program->outputs()})
      for (uint32_t i = 0; i < length(ports); ++i) {
        const Place at = place_of(ports->Get(i)->value());
        SINTER_CHECK(at.placement == nullptr || at.view.dense(),
                     corrupt("an input or output is not dense")
                         .at(Where::kValue, static_cast<int32_t>(ports->Get(i)->value())));
      }
    return ok_status();
  }

  // What is copied when a body or a run ends, in order: result `from(i)` over `to(i)`, unless it lies there.
  // A target shares no byte with a result that is copied later.
  template <class To, class From>
  Status check_copy_targets(uint32_t n, To&& to, From&& from) {
    for (uint32_t i = 0; i < n; ++i) {
      const Place target = place_of(to(i)), result = place_of(from(i));
      if (target.placement == nullptr) return corrupt("a parameter has no place");
      if (result.placement != nullptr && result.begin == target.begin) continue;
      for (uint32_t k = i + 1; k < n; ++k) {
        SINTER_CHECK(budget_-- > 0, unsupported("the plan is too entangled to verify"));
        const Place other = place_of(from(k));
        SINTER_CHECK(
            k == i || other.placement == nullptr || other.end <= target.begin || target.end <= other.begin,
            corrupt("value %a would be overwritten while results are copied", other.placement->value()));
      }
    }
    return ok_status();
  }

  Status check_copies() {
    if (!entry()) {
      if (step_op(*f_.owner_step) != Op::kLoop) return ok_status();
      const auto* ins = f_.program->inputs();
      const auto* outs = f_.program->outputs();
      return check_copy_targets(
          control_shape(*f_.owner_step).carried, [&](uint32_t i) { return ins->Get(2 + i)->value(); },
          [&](uint32_t i) { return outs->Get(1 + i)->value(); });
    }
    // States are few; collect them in `order`, which is used again below.
    uint32_t n = 0;
    for (uint32_t v = 0; v < length(f_.program->values()); ++v)
      if (value(v).kind() == fb::ValueKind::State && value(v).update() >= 0) s_.order[n++] = v;
    return check_copy_targets(
        n, [&](uint32_t i) { return s_.order[i]; },
        [&](uint32_t i) { return static_cast<uint32_t>(value(s_.order[i]).update()); });
  }

  // Rule 3: within a block, what is written touches nothing else that lives.
  Status check_blocks() {
    const uint32_t n = placements();
    const auto* list = plan_.placements();
    const auto life = [&](uint32_t i) -> const Life& { return f_.lives[list->Get(i)->value()]; };
    for (uint32_t i = 0; i < n; ++i) s_.order[i] = i;
    std::sort(s_.order, s_.order + n, [&](uint32_t a, uint32_t b) {
      if (s_.block[a] != s_.block[b]) return s_.block[a] < s_.block[b];
      if (life(a).first != life(b).first) return life(a).first < life(b).first;
      return a < b;
    });
    for (uint32_t begin = 0; begin < n;) {
      uint32_t live = 0, i = begin;
      for (; i < n && s_.block[s_.order[i]] == s_.block[s_.order[begin]]; ++i) {
        const uint32_t b = s_.order[i];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < live; ++k) {
          const uint32_t a = s_.active[k];
          if (life(a).last < life(b).first) continue;
          s_.active[kept++] = a;
          SINTER_CHECK(budget_-- > 0, unsupported("the plan is too entangled to verify"));
          const bool together = life(a).first == life(b).first;
          if (!s_.written[list->Get(b)->value()] && !(together && s_.written[list->Get(a)->value()]))
            continue;
          const Place pa = place(*list->Get(a)), pb = place(*list->Get(b));
          if (disjoint(pa, pb) || (!together && in_place(pa, pb))) continue;
          return corrupt("value %a is overwritten by value %b while it is live", pa.placement->value(),
                         pb.placement->value());
        }
        live = kept;
        s_.active[live++] = b;
      }
      begin = i;
    }
    return ok_status();
  }

  // b is written over a by an operation that may do so.
  bool in_place(const Place& a, const Place& b) const {
    const uint32_t va = a.placement->value(), vb = b.placement->value();
    const int32_t s = f_.lives[vb].first;
    if (s < 0 || static_cast<uint32_t>(s) >= steps_ || f_.lives[va].last != s) return false;
    const fb::Step& step = *f_.program->steps()->Get(static_cast<uint32_t>(s));
    if ((op_info(step_op(step))->traits & kInPlace) == 0) return false;
    if (items(step.outputs())[0] != static_cast<int32_t>(vb)) return false;
    bool operand = false;
    for (const int32_t v : items(step.inputs())) operand = operand || v == static_cast<int32_t>(va);
    if (!operand || a.begin != b.begin || byte_width(a.view.dtype) != byte_width(b.view.dtype)) return false;
    // View moves whole tensors: other dims are the same bytes.
    if (step_op(step) == Op::kView) return a.view.dense() && b.view.dense();
    return a.view.same_shape(b.view) && same_strides(a.view, b.view);
  }

  // Byte ranges apart, or boxes apart in one grid: equal strides, and along some axis one begins where the
  // other has ended.
  static bool disjoint(const Place& a, const Place& b) {
    if (a.end <= b.begin || b.end <= a.begin || a.begin == a.end || b.begin == b.end) return true;
    if (a.begin > b.begin) return disjoint(b, a);
    if (a.view.rank != b.view.rank) return false;
    const int rank = a.view.rank;
    uint64_t delta = b.begin - a.begin;
    bool apart = false;
    for (int i = 0; i < rank; ++i) {
      const int64_t stride = a.view.strides[i];
      if (stride <= 0 || stride != b.view.strides[i]) return false;
      if (i > 0 && stride > a.view.strides[i - 1]) return false;
      const auto shift = static_cast<int64_t>(delta / static_cast<uint64_t>(stride));
      delta %= static_cast<uint64_t>(stride);
      // Both boxes stay within one row of the grid.
      if (i > 0 && std::max(a.view.dims[i], shift + b.view.dims[i]) > a.view.strides[i - 1] / stride)
        return false;
      apart = apart || shift >= a.view.dims[i];
    }
    const auto width = static_cast<int64_t>(std::max(byte_width(a.view.dtype), byte_width(b.view.dtype)));
    return apart && delta == 0 && rank > 0 && a.view.strides[rank - 1] >= width;
  }

  const fb::Profile& profile_;
  const fb::ProgramPlan& plan_;
  const ProgramFacts& f_;
  Scratch& s_;
  const uint32_t steps_;
  size_t boxes_ = 0;
  int64_t budget_ = 20'000'000;  // pairs that are looked at one by one
};

}  // namespace

const fb::Placement* find_placement(const fb::ProgramPlan& plan, uint32_t value) {
  const auto* list = plan.placements();
  uint32_t lo = 0, hi = length(list);
  while (lo < hi) {
    const uint32_t mid = (lo + hi) / 2;
    const fb::Placement* p = list->Get(mid);
    if (p->value() == value) return p;
    if (p->value() < value)
      lo = mid + 1;
    else
      hi = mid;
  }
  return nullptr;
}

void measure_plan(uint32_t values, uint32_t steps, BumpArena& scratch) {
  const Scratch s(values, steps, scratch);
  scratch.allocate(s.needed - scratch.used(), 1);
}

Status verify_regions(const fb::Profile& profile) {
  uint64_t sum = 0;
  SINTER_CHECK(length(profile.regions()) <= 16, unsupported("a profile with more than 16 regions"));
  if (profile.regions() != nullptr)
    for (const fb::Region* r : *profile.regions()) {
      SINTER_CHECK(r->kind() <= fb::RegionKind::State, corrupt("unknown kind of region"));
      SINTER_CHECK(r->alignment() > 0 && r->alignment() <= kBufferAlignment &&
                       (r->alignment() & (r->alignment() - 1)) == 0,
                   unsupported("a region aligned to %a", r->alignment()));
      SINTER_CHECK(
          r->padding() >= kReadPadding && r->bytes() >= r->padding() && r->bytes() % kBufferAlignment == 0,
          corrupt("a region's size or padding is wrong"));
      SINTER_CHECK(
          r->bytes() <= kMostBytes && checked_add<uint64_t>(sum, r->bytes(), &sum) && sum <= kMostBytes,
          corrupt("the regions are too large"));
    }
  return ok_status();
}

Status verify_plan(const ModelState&, const fb::Profile& profile, const ProgramFacts& facts,
                   BumpArena arena) {
  Scratch scratch(length(facts.program->values()), length(facts.program->steps()), arena);
  SINTER_CHECK(!arena.exhausted(), corrupt("the file states too little scratch memory"));
  return PlanVerifier(profile, *profile.programs()->Get(facts.index), facts, scratch).run();
}

}  // namespace sinter::detail
