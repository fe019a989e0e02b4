// Shared memory in a plan: blocks of aliases, and the proof that no value in a block is overwritten while it
// is live.
#include <algorithm>

#include "runtime/core/in_place.h"
#include "runtime/model/plan_view.h"

namespace sinter::detail {
namespace {

uint32_t index_of(const fb::ProgramPlan& plan, const fb::Placement* p) {
  const auto* list = plan.placements();
  uint32_t lo = 0, hi = list->size();
  while (lo + 1 < hi) {
    const uint32_t mid = (lo + hi) / 2;
    (list->Get(mid)->value() <= p->value() ? lo : hi) = mid;
  }
  return lo;
}

// Byte ranges apart, or boxes apart in one grid: equal strides, and along some axis one begins where the
// other has ended. Along all but the first axis both stay within as many places as a step of the axis before
// has, so that no two places of the grid are the same.
bool disjoint(const Place& a, const Place& b) {
  if (a.end <= b.begin || b.end <= a.begin || a.begin == a.end || b.begin == b.end) return true;
  if (a.begin > b.begin) return disjoint(b, a);
  if (a.view.rank != b.view.rank || a.view.rank == 0) return false;
  const int rank = a.view.rank;
  int64_t shifts[kMaxRank];  // from a to b
  uint64_t delta = b.begin - a.begin;
  for (int i = 0; i < rank; ++i) {
    const int64_t stride = a.view.strides[i];
    if (stride <= 0 || stride != b.view.strides[i]) return false;
    if (i > 0 && stride > a.view.strides[i - 1]) return false;
    shifts[i] = static_cast<int64_t>(delta / static_cast<uint64_t>(stride));
    delta %= static_cast<uint64_t>(stride);
  }
  bool apart = false;
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t of_a = a.view.dims[i], of_b = b.view.dims[i], stride = a.view.strides[i];
    const int64_t room = i > 0 ? a.view.strides[i - 1] / stride : 0;
    const auto extent = [&] { return std::max(of_a, shifts[i] + of_b) - std::min<int64_t>(shifts[i], 0); };
    // b may begin before a along this axis, and a place later along the one before.
    if (i > 0 && extent() > room && a.view.strides[i - 1] % stride == 0) shifts[i] -= room, ++shifts[i - 1];
    if (i > 0 && extent() > room) return false;
    apart = apart || shifts[i] >= of_a || -shifts[i] >= of_b;
  }
  const auto width = static_cast<int64_t>(std::max(byte_width(a.view.dtype), byte_width(b.view.dtype)));
  return apart && delta == 0 && a.view.strides[rank - 1] >= width;
}

// As disjoint(), for most of the pairs in a block with many values, at little cost.
constexpr uint64_t kCheap = 16;
bool far_apart(const Box& a, const Box& b) { return a.end <= b.begin || b.end <= a.begin; }

// b is written over a by an operation that may do so.
bool in_place(const PlanView& view, const Place& a, const Place& b) {
  const uint32_t va = a.placement->value(), vb = b.placement->value();
  const int32_t s = view.facts.lives[vb].first;
  if (s < 0 || static_cast<uint32_t>(s) >= view.steps() || view.facts.lives[va].last != s) return false;
  const fb::Step& step = *view.facts.program->steps()->Get(static_cast<uint32_t>(s));
  const auto ins = items(step.inputs()), outs = items(step.outputs());
  const auto result = std::find(outs.begin(), outs.end(), static_cast<int32_t>(vb));
  if (result == outs.end()) return false;
  bool operand = false;
  for (size_t i = 0; i < ins.size(); ++i) {
    if (ins[i] != static_cast<int32_t>(va)) continue;
    if (!may_be_in_place(step_op(step), static_cast<size_t>(result - outs.begin()), i)) return false;
    operand = true;
  }
  if (!operand || a.begin != b.begin || byte_width(a.view.dtype) != byte_width(b.view.dtype)) return false;
  // View moves whole tensors: other dims are the same bytes.
  if (step_op(step) == Op::kView) return a.view.dense() && b.view.dense();
  return a.view.same_shape(b.view) && same_strides(a.view, b.view);
}

// b is written over a by a kernel that goes through both in order and stays behind. Attributes and shapes of
// the step are verified.
[[gnu::noinline]] bool in_order(const PlanView& view, const Place& a, const Place& b) {
  const uint32_t va = a.placement->value(), vb = b.placement->value();
  const int32_t s = view.facts.lives[vb].first;
  if (s < 0 || static_cast<uint32_t>(s) >= view.steps() || view.facts.lives[va].last != s) return false;
  if (!view.plan.steps()->Get(static_cast<uint32_t>(s))->in_order()) return false;
  const fb::Step& step = *view.facts.program->steps()->Get(static_cast<uint32_t>(s));
  const auto ins = items(step.inputs()), outs = items(step.outputs());
  if (is_control(step) || ins.empty() || outs.empty() || ins[0] != static_cast<int32_t>(va) ||
      outs[0] != static_cast<int32_t>(vb) || a.begin < b.begin || !a.view.dense() || !b.view.dense())
    return false;
  for (size_t i = 1; i < ins.size(); ++i)
    if (ins[i] == ins[0]) return false;
  const Kernel* kernel = view.model.kernels[static_cast<size_t>(op_index(step_op(step)))];
  AttrStorage attrs;
  TensorView* views = view.facts.views;
  size_t lead = 0;
  if (kernel == nullptr || kernel->lead == nullptr || !decode_attrs(step, &attrs).ok()) return false;
  for (size_t i = 0; i < ins.size() + outs.size(); ++i) {
    const int32_t v = i < ins.size() ? ins[i] : outs[i - ins.size()];
    views[i] = v >= 0 ? value_view(view.value(static_cast<uint32_t>(v))) : TensorView{};
  }
  const OpCall call{step_op(step), &attrs, {views, ins.size()}, {views + ins.size(), outs.size()}};
  return kernel->lead(call, &lead).ok() && a.begin - b.begin >= lead;
}

}  // namespace

// state 1: on the way, 2: done.
Status find_blocks(PlanView& view) {
  PlanScratch& s = view.scratch;
  const auto* list = view.plan.placements();
  for (uint32_t i = 0; i < view.placements(); ++i) s.state[i] = 0;
  for (uint32_t i = 0; i < view.placements(); ++i) {
    uint32_t at = i;
    while (s.state[at] == 0) {
      s.state[at] = 1;
      const fb::Placement& p = *list->Get(at);
      if (p.alias_of() == -1) {
        s.block[at] = static_cast<int32_t>(at);
        s.state[at] = 2;
        break;
      }
      const fb::Placement* next =
          p.alias_of() >= 0 ? find_placement(view.plan, static_cast<uint32_t>(p.alias_of())) : nullptr;
      SINTER_RETURN_UNLESS(next != nullptr && next->region() == p.region(),
                           corrupt("value %a is an alias of a value that does not exist", p.value()));
      at = index_of(view.plan, next);
    }
    SINTER_RETURN_UNLESS(s.state[at] == 2, corrupt("aliases form a cycle"));
    const int32_t root = s.block[at];
    for (at = i; s.state[at] == 1;) {
      s.block[at] = root;
      s.state[at] = 2;
      at = index_of(view.plan, find_placement(view.plan, static_cast<uint32_t>(list->Get(at)->alias_of())));
    }
  }
  for (uint32_t i = 0; i < view.placements(); ++i) s.boxes[i].block = s.block[i];
  return ok_status();
}

Status check_blocks(PlanView& view) {
  PlanScratch& s = view.scratch;
  const uint32_t n = view.placements();
  const auto* list = view.plan.placements();
  const auto life = [&](uint32_t i) -> const Life& { return view.facts.lives[list->Get(i)->value()]; };
  for (uint32_t i = 0; i < n; ++i) s.order[i] = i;
  std::sort(s.order, s.order + n, [&](uint32_t a, uint32_t b) {
    if (s.block[a] != s.block[b]) return s.block[a] < s.block[b];
    if (life(a).first != life(b).first) return life(a).first < life(b).first;
    return a < b;
  });
  for (uint32_t begin = 0; begin < n;) {
    uint32_t live = 0, i = begin;
    uint64_t apart = 0;
    for (; i < n && s.block[s.order[i]] == s.block[s.order[begin]]; ++i) {
      const uint32_t b = s.order[i];
      uint32_t kept = 0;
      for (uint32_t k = 0; k < live; ++k) {
        const uint32_t a = s.active[k];
        if (life(a).last < life(b).first) continue;
        s.active[kept++] = a;
        if (far_apart(s.boxes[a], s.boxes[b]) && ++apart % kCheap != 0) continue;
        SINTER_RETURN_UNLESS(view.budget-- > 0, unsupported("the plan is too entangled to verify"));
        const bool together = life(a).first == life(b).first;
        if (!s.written[list->Get(b)->value()] && !(together && s.written[list->Get(a)->value()])) continue;
        const Place pa = view.place(*list->Get(a)), pb = view.place(*list->Get(b));
        if (disjoint(pa, pb) || (!together && (in_place(view, pa, pb) || in_order(view, pa, pb)))) continue;
        return corrupt("value %a is overwritten by value %b while it is live", pa.placement->value(),
                       pb.placement->value());
      }
      live = kept;
      s.active[live++] = b;
    }
    begin = i;
  }
  return ok_status();
}

}  // namespace sinter::detail
