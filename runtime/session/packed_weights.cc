// PackedWeights: one block with everything that the steps of a program read packed.
//
// The walk is that of a session, without the steps themselves: a step's backend is chosen, and what it packs
// is packed unless an earlier step has packed the same. Widened weights are made in scratch memory at the end
// of the block, most of which is not yet taken while the early ones are packed.
#include "sinter/packed_weights.h"

#include <algorithm>

#include "runtime/session/creator.h"

namespace sinter {

using detail::Creator;

namespace {

// Without the options that do not matter if nothing is run.
SessionOptions packing_options(const SessionOptions& options) {
  SessionOptions packing = options;
  packing.bindings = {};
  packing.devices = {};
  packing.packed_weights = nullptr;
  packing.require_planned = false;
  packing.on_fallback = {};
  return packing;
}

}  // namespace

Result<size_t> PackedWeights::requirements(const Model& model, const SessionOptions& options) {
  SINTER_RETURN_UNLESS(model.valid(), invalid("the model is empty"));
  const SessionOptions packing = packing_options(options);
  size_t bytes = 0;
  SINTER_RETURN_IF_ERROR(Creator(model, packing).measure_packed(&bytes));
  return bytes;
}

Result<PackedWeights> PackedWeights::create(const Model& model, std::span<std::byte> memory,
                                            const SessionOptions& options) {
  SINTER_RETURN_UNLESS(model.valid(), invalid("the model is empty"));
  const SessionOptions packing = packing_options(options);
  PackedWeights packed;
  SINTER_RETURN_IF_ERROR(Creator(model, packing).create_packed(memory, &packed.state_));
  return packed;
}

size_t PackedWeights::bytes() const { return state_->bytes; }
uint32_t PackedWeights::count() const { return static_cast<uint32_t>(state_->entries.size()); }

}  // namespace sinter

namespace sinter::detail {

// The walk of either pass; closes the backends that it has opened.
Status Creator::walk_packings() {
  prepared_peak_ = 0;
  arena_bytes_ = 0;
  forget_packed();
  Frame frame;
  frame.program = program_;
  frame.plan = plan_;
  frame.index = program_index_;
  const Status status = pack_program(frame);
  close_all();
  return status;
}

Status Creator::measure_packings(size_t* control, size_t* bytes) {
  SINTER_RETURN_IF_ERROR(resolve());
  packs_only_ = true;
  control_ = {};
  prepared_ = {};
  control_.allocate_array<PackedState>(1);
  SINTER_RETURN_IF_ERROR(walk_packings());
  *control = align_up(control_.used(), kBufferAlignment);
  const size_t prepared = align_up(std::max(prepared_.used(), prepared_peak_), kBufferAlignment);
  SINTER_RETURN_UNLESS(
      !control_.exhausted() && !prepared_.exhausted() && prepared_peak_ != SIZE_MAX &&
          checked_add(*control, prepared, bytes),
      error(Code::kOutOfMemory, "the packed weights do not fit this machine's address space"));
  return ok_status();
}

Status Creator::measure_packed(size_t* bytes) {
  size_t control = 0;
  return measure_packings(&control, bytes);
}

Status Creator::create_packed(std::span<std::byte> memory, const PackedState** out) {
  SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(memory.data()) % kBufferAlignment == 0,
                       invalid("the memory of packed weights must be aligned to %a bytes", kBufferAlignment));
  size_t control = 0, bytes = 0;
  SINTER_RETURN_IF_ERROR(measure_packings(&control, &bytes));
  SINTER_RETURN_UNLESS(memory.size() >= bytes,
                       error(Code::kOutOfMemory, "the packed weights need %a bytes of memory but got %b",
                             static_cast<int64_t>(bytes), static_cast<int64_t>(memory.size())));
  control_ = BumpArena(memory.first(control));
  prepared_ = BumpArena(memory.subspan(control, bytes - control));
  if (bytes == control) prepared_ = BumpArena({memory.data() + control, 0});
  prepared_end_ = memory.data() + bytes;
  PackedState* state = control_.allocate_array<PackedState>(1);
  SINTER_RETURN_UNLESS(state != nullptr, kDisagree);
  SINTER_RETURN_IF_ERROR(walk_packings());
  SINTER_RETURN_UNLESS(!control_.exhausted() && !prepared_.exhausted(), kDisagree);
  const std::span<PackedEntry> entries(entries_, packed_count_);
  std::sort(entries.begin(), entries.end(),
            [](const PackedEntry& a, const PackedEntry& b) { return a.hash < b.hash; });
  *state = {model_.state(), entries, bytes};
  *out = state;
  return ok_status();
}

Status Creator::pack_program(Frame& frame) {
  uint64_t kept[kFollowed / 64] = {};  // none
  if (length(frame.program->prepare()) > 0) frame.kept = kept;
  for (uint32_t s = 0; s < length(frame.program->steps()); ++s) {
    const fb::Step& step = *frame.program->steps()->Get(s);
    const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
    if (plan.elided() || place_of(frame, step, plan).device >= 0) continue;
    if (!is_control(step)) {
      if (const Status status = pack_step(frame, s); !status.ok()) return status.at_step(s, frame.index);
      continue;
    }
    for (const uint32_t program : items(step.subprograms())) {
      Frame body = body_of(frame, s, program);
      SINTER_RETURN_IF_ERROR(pack_program(body));
    }
  }
  frame.kept = nullptr;
  return ok_status();
}

// Whether what is packed can be made here: not of the owner's prepared values, and not of those that stay in
// a session in any case (prepare.cc).
bool Creator::packs_apart(const Frame& frame, const fb::Step& step, const PackedKey& key) const {
  for (const int64_t constant : key.constants) {
    if (constant >= 0) continue;
    const int64_t number = -1 - constant,
                  first = frame.kept != nullptr ? items(frame.program->prepare()->Get(0)->outputs())[0] : 0;
    if (number >> 32 != frame.index || frame.kept == nullptr || (number & UINT32_MAX) - first >= kFollowed)
      return false;
  }
  return length(step.inputs()) + length(step.outputs()) <= kPackedOperands;
}

[[gnu::noinline]] Status Creator::pack_step(Frame& frame, uint32_t s) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
  if (length(step.inputs()) + length(step.outputs()) > kPackedOperands) return ok_status();
  TensorView views[kPackedOperands];
  AttrStorage attributes;
  const OpCall call = make_call(frame, step, views, &attributes);
  Choice choice;
  Packing packing;
  Status refusal;
  SINTER_RETURN_IF_ERROR(choose(call, plan, &choice, &packing, &refusal));
  PackedKey key;
  if (packing.bytes == 0 || !key_of(frame, step, choice, packing, &key) || !packs_apart(frame, step, key))
    return ok_status();
  SINTER_RETURN_IF_ERROR(find_packed(frame, s, packing, &choice));
  if (choice.from != Packed::kHere) return ok_status();
  PackedEntry* entry = control_.allocate_array<PackedEntry>(1);
  if (packed_count_++ == 0) entries_ = entry;
  Brought brought;
  SINTER_RETURN_IF_ERROR(
      bring_operands(frame, step, {packing.inputs, ~packing.inputs, packing.bytes, 0}, &brought));
  brought.give(call);
  void* at = prepared_.allocate(packing.bytes, kBufferAlignment);
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(entry != nullptr && at != nullptr, kDisagree);
  const std::span<std::byte> bytes(static_cast<std::byte*>(at), packing.bytes);
  SINTER_RETURN_IF_ERROR(pack(choice, call, bytes, options_.threads));
  *entry = {key, key.hash(), bytes.data()};
  return ok_status();
}

}  // namespace sinter::detail
