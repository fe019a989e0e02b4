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

// Returns whether byte ranges are apart, or boxes are apart in one grid: equal strides, and along some axis
// one begins where the other has ended. Along all but the first axis both stay within as many places as a
// step of the axis before has, so that no two places of the grid are the same.
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
    // b may begin before a along this axis, and a place later along the axis before.
    if (i > 0 && extent() > room && a.view.strides[i - 1] % stride == 0) shifts[i] -= room, ++shifts[i - 1];
    if (i > 0 && extent() > room) return false;
    apart = apart || shifts[i] >= of_a || -shifts[i] >= of_b;
  }
  const auto width = static_cast<int64_t>(std::max(byte_width(a.view.dtype), byte_width(b.view.dtype)));
  return apart && delta == 0 && a.view.strides[rank - 1] >= width;
}

// A pair whose lives or bytes do not overlap takes this share of a pair's budget.
constexpr uint64_t kCheap = 16;

// Returns whether b is written over a by an operation that may do so.
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
  // View moves whole tensors, so that other dims are the same bytes.
  if (step_op(step) == Op::kView) return a.view.dense() && b.view.dense();
  return a.view.same_shape(b.view) && same_strides(a.view, b.view);
}

// Returns whether b is written over a by a kernel that goes through both in order and stays behind.
// Attributes and shapes of the step are verified.
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

// State 1 means on the way, and 2 done.
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

namespace {

// The keys that placements are sorted by: their block, and begin and end of their lives and bytes, half-open.
enum Key { kBlock, kFirstStep, kEndOfLife, kFirstByte, kEndOfBytes };

[[gnu::noinline]] uint64_t key_of(const PlanView& view, Key key, uint32_t i) {
  if (key == kBlock) return static_cast<uint64_t>(view.scratch.block[i]);
  const Box& box = view.scratch.boxes[i];
  if (key == kFirstByte || key == kEndOfBytes) return key == kFirstByte ? box.begin : box.end;
  const Life& life = view.facts.lives[view.plan.placements()->Get(i)->value()];
  return static_cast<uint64_t>(int64_t{key == kFirstStep ? life.first : life.last} +
                               (key == kFirstStep ? 1 : 2));
}

[[gnu::noinline]] void sort_by(const PlanView& view, Key key, uint32_t* list, uint32_t n) {
  const auto less = [&view, key](uint32_t a, uint32_t b) {
    const uint64_t of_a = key_of(view, key, a), of_b = key_of(view, key, b);
    return of_a != of_b ? of_a < of_b : a < b;
  };
  std::make_heap(list, list + n, less);  // this takes less code than std::sort
  std::sort_heap(list, list + n, less);
}

// Counts the pairs of the block's ranges that overlap; `list` is sorted by `from` afterwards. A range ends at
// `from` + 1.
uint64_t overlapping_pairs(const PlanView& view, Key from, uint32_t* list, uint32_t n) {
  const Key to = static_cast<Key>(from + 1);
  uint32_t* ends = view.scratch.active;
  std::copy(list, list + n, ends);
  sort_by(view, to, ends, n);
  sort_by(view, from, list, n);
  uint64_t pairs = 0;
  for (uint32_t i = 0, ended = 0; i < n; ++i) {
    while (ended < i && key_of(view, to, ends[ended]) <= key_of(view, from, list[i])) ++ended;
    pairs += i - ended;
  }
  return pairs;
}

// Checks a pair in one block, of which a is written before b or in the same step.
Status check_pair(PlanView& view, uint32_t a, uint32_t b) {
  SINTER_RETURN_UNLESS(view.budget-- > 0, unsupported("the plan is too entangled to verify"));
  const uint8_t* written = view.scratch.written;
  const auto* list = view.plan.placements();
  const bool together = key_of(view, kFirstStep, a) == key_of(view, kFirstStep, b);
  if (!written[list->Get(b)->value()] && !(together && written[list->Get(a)->value()])) return ok_status();
  const Place pa = view.place(*list->Get(a)), pb = view.place(*list->Get(b));
  if (disjoint(pa, pb) || (!together && (in_place(view, pa, pb) || in_order(view, pa, pb))))
    return ok_status();
  return corrupt("value %a is overwritten by value %b while it is live", pa.placement->value(),
                 pb.placement->value());
}

// Checks one block in the order in which its lives or its bytes begin, whichever has fewer pairs that
// overlap.
Status check_block(PlanView& view, uint32_t* list, uint32_t n) {
  if (n == 1) return ok_status();
  const auto apart = [&](Key from, uint32_t a, uint32_t b) {
    const Key to = static_cast<Key>(from + 1);
    return key_of(view, to, a) <= key_of(view, from, b) || key_of(view, to, b) <= key_of(view, from, a);
  };
  const uint64_t of_bytes = overlapping_pairs(view, kFirstByte, list, n);
  Key from = kFirstStep;
  if (overlapping_pairs(view, from, list, n) > of_bytes) sort_by(view, from = kFirstByte, list, n);
  const Key other = from == kFirstStep ? kFirstByte : kFirstStep, to = static_cast<Key>(from + 1);
  uint32_t* active = view.scratch.active;
  uint32_t open = 0;
  uint64_t cheap = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t b = list[i];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < open; ++k) {
      const uint32_t a = active[k];
      if (key_of(view, to, a) <= key_of(view, from, b)) continue;
      active[kept++] = a;
      if (!apart(other, a, b)) {
        const bool swap = key_of(view, kFirstStep, b) < key_of(view, kFirstStep, a);
        SINTER_RETURN_IF_ERROR(check_pair(view, swap ? b : a, swap ? a : b));
      } else if (++cheap % kCheap == 0) {
        SINTER_RETURN_UNLESS(view.budget-- > 0, unsupported("the plan is too entangled to verify"));
      }
    }
    open = kept;
    active[open++] = b;
  }
  return ok_status();
}

}  // namespace

Status check_blocks(PlanView& view) {
  PlanScratch& s = view.scratch;
  const uint32_t n = view.placements();
  for (uint32_t i = 0; i < n; ++i) s.order[i] = i;
  sort_by(view, kBlock, s.order, n);
  for (uint32_t begin = 0, end = 0; begin < n; begin = end) {
    while (end < n && s.block[s.order[end]] == s.block[s.order[begin]]) ++end;
    SINTER_RETURN_IF_ERROR(check_block(view, s.order + begin, end - begin));
  }
  return ok_status();
}

}  // namespace sinter::detail
