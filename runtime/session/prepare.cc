// Prepared values: constants that the file holds in another form (narrow, packed), widened by the model's
// kernels when a session is created.
//
// A value is computed when the first step that reads it is created. If that step's kernel packs it, it is in
// scratch memory only until it is packed; else it stays in prepared memory. So no more than one packed weight
// exists in two forms at any time. Scratch memory is the arena, which is free until the first run, or, where
// that is too small, the end of prepared memory, most of which is not yet taken while the early weights are
// packed.
//
// Both passes come here in the same order, so that what is measured is what is taken.
#include <algorithm>

#include "runtime/session/creator.h"

namespace sinter::detail {
namespace {

const Status kTooLarge = error(Code::kOutOfMemory, "prepared values do not fit this machine's address space");
// Scratch memory is far less; sums of two such sizes do not overflow.
constexpr size_t kMostScratch = SIZE_MAX / 4;

uint32_t first_value(const fb::Program& program) {
  return static_cast<uint32_t>(items(program.prepare()->Get(0)->outputs())[0]);
}
bool is_prepared(const fb::Program& program, int32_t v) {
  return v >= 0 && program.values()->Get(static_cast<uint32_t>(v))->kind() == fb::ValueKind::Prepared;
}
bool is_kept(const Frame& frame, uint32_t index) {
  return index >= kTracked || (frame.kept[index / 64] >> (index % 64) & 1) != 0;
}

// Scratch memory while a chain is planned: each block gets the lowest place beside the values that are live.
class ChainScratch {
 public:
  // For a step that is the `now`th from the last of the chain.
  size_t place(size_t bytes, uint32_t now) {
    size_t at = 0;
    if (bytes > kMostScratch) return fits_ = false, 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < count_; ++i)
        if (values_[i].last_reader <= now && at < values_[i].end && values_[i].begin < at + bytes)
          at = values_[i].end, moved = true;
    }
    if (at + bytes > kMostScratch) return fits_ = false, 0;
    end_ = std::max(end_, at + bytes);
    return at;
  }
  // The same for a value, which is live until a later step has read it.
  size_t place_value(size_t bytes, uint32_t now, uint32_t last_reader) {
    const size_t at = place(bytes, now);
    if (fits_) values_[count_++] = {at, at + bytes, last_reader};
    return at;
  }
  bool fits() const { return fits_; }  // within kMostScratch
  size_t end() const { return end_; }

 private:
  struct LiveValue {
    size_t begin, end;
    uint32_t last_reader;
  };
  LiveValue values_[kMaxPrepareChain];
  size_t count_ = 0, end_ = 0;
  bool fits_ = true;
};

}  // namespace

// Values are verified to be far smaller than the address space, chains to be short: no sum here overflows on
// 64 bits.
size_t Creator::prepared_bytes(const Frame& frame, uint32_t index) const {
  const fb::Value& value = *frame.program->values()->Get(first_value(*frame.program) + index);
  return align_up(static_cast<size_t>(value_view(value).dense_bytes()) + kReadPadding, kBufferAlignment);
}

// Bytes of workspace for a prepare step.
[[gnu::noinline]] Status Creator::measure_prepare(const Frame& frame, uint32_t index, size_t* workspace) {
  StepRoom room;
  StepNeeds needs;
  const OpCall call = make_call(frame, *frame.program->prepare()->Get(index), &room);
  const Status status = slots_[slot_count_ - 1].backend->measure(call, 1, &needs);
  *workspace = needs.workspace;
  return status.ok() ? status : status.at_step(index, frame.index, Where::kPrepareStep);
}

[[gnu::noinline]] Status Creator::plan_chain(const Frame& frame, uint32_t index, PrepareChain* chain) {
  const fb::Program& program = *frame.program;
  const uint32_t base = first_value(program);
  *chain = {};
  chain->first = chain->last = index;
  // Backwards: what is needed, and by whom it is read last, by distance from `index`.
  uint64_t needed = 1;
  uint8_t reader[kMaxPrepareChain] = {};
  for (uint32_t i = index; i + 1 > chain->first; --i) {
    if ((needed >> (index - i) & 1) == 0) continue;
    SINTER_RETURN_IF_ERROR(check_present(frame, *program.prepare()->Get(i), 0));
    for (const int32_t v : items(program.prepare()->Get(i)->inputs())) {
      if (!is_prepared(program, v)) continue;
      const uint32_t from = static_cast<uint32_t>(v) - base, back = index - from;
      SINTER_RETURN_UNLESS(from < i && back < static_cast<uint32_t>(kMaxPrepareChain),
                           kDisagree);  // verified
      if ((needed >> back & 1) == 0) reader[back] = static_cast<uint8_t>(index - i);
      needed |= uint64_t{1} << back;
      chain->first = std::min(chain->first, from);
    }
    if (i == 0) break;
  }
  ChainScratch scratch;
  for (uint32_t i = chain->first; i <= index; ++i) {
    const uint32_t k = i - chain->first, back = index - i;
    if ((needed >> back & 1) == 0) continue;
    chain->needed |= uint64_t{1} << k;
    if (i != index) chain->value[k] = scratch.place_value(prepared_bytes(frame, i), back, reader[back]);
    size_t workspace = 0;
    SINTER_RETURN_IF_ERROR(measure_prepare(frame, i, &workspace));
    chain->workspace_bytes[k] = workspace;
    if (workspace > 0) {
      SINTER_RETURN_UNLESS(workspace <= kMostScratch, kTooLarge);
      chain->workspace[k] = scratch.place(align_up(workspace, kBufferAlignment), back);
    }
  }
  SINTER_RETURN_UNLESS(scratch.fits(), kTooLarge);
  chain->bytes = scratch.end();
  return ok_status();
}

[[gnu::noinline]] Status Creator::run_chain(const Frame& frame, const PrepareChain& chain, std::byte* scratch,
                                            std::byte* target) {
  const fb::Program& program = *frame.program;
  const uint32_t base = first_value(program);
  Backend& backend = *slots_[slot_count_ - 1].backend;
  for (uint32_t i = chain.first; i <= chain.last; ++i) {
    const uint32_t k = i - chain.first;
    if ((chain.needed >> k & 1) == 0) continue;
    const fb::Step& step = *program.prepare()->Get(i);
    StepRoom room;
    const OpCall call = make_call(frame, step, &room);
    for (size_t in = 0; in < call.inputs.size(); ++in)
      if (const int32_t v = items(step.inputs())[in]; is_prepared(program, v))
        call.inputs[in].data = scratch + chain.value[static_cast<uint32_t>(v) - base - chain.first];
    call.outputs[0].data = i == chain.last ? target : scratch + chain.value[k];
    call.outputs[0].constant = false;
    RunContext context{{scratch + chain.workspace[k], chain.workspace_bytes[k]}, nullptr};
    std::byte nothing[1];
    BumpArena none(std::span<std::byte>(nothing, 0));
    PreparedStep prepared;
    SINTER_RETURN_IF_ERROR(backend.prepare(call, {none, none, context.workspace}, &prepared));
    const Status status = prepared.run(prepared.state, call, context);
    backend.release(prepared);
    if (!status.ok()) return status.at_step(i, frame.index, Where::kPrepareStep);
  }
  return ok_status();
}

std::byte* Creator::scratch(size_t bytes) const {
  return bytes <= scratch_bytes() ? scratch_ : prepared_end_ - bytes;
}

// Measuring: prepared memory must have room for this scratch when a step has taken `own` more bytes of it.
void Creator::need_scratch(size_t bytes, size_t own) {
  if (building() || bytes <= scratch_bytes()) return;
  BumpArena taken = prepared_;
  taken.allocate(own, kBufferAlignment);
  size_t peak = align_up(taken.used(), kBufferAlignment);
  if (taken.exhausted() || !checked_add(peak, bytes, &peak)) peak = SIZE_MAX;
  prepared_peak_ = std::max(prepared_peak_, peak);
}

// Into prepared memory. `chain` is planned where there is memory.
Status Creator::keep(Frame& frame, uint32_t index, const PrepareChain& chain, std::byte* scratch) {
  if (index < kTracked) frame.kept[index / 64] |= uint64_t{1} << (index % 64);
  auto* at = static_cast<std::byte*>(prepared_.allocate(prepared_bytes(frame, index), kBufferAlignment));
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
  frame.prepared[index] = at;
  return run_chain(frame, chain, scratch, at);
}

Status Creator::walk_prepare(Frame& frame, uint64_t* kept) {
  const uint32_t count = length(frame.program->prepare());
  frame.prepared = control_.allocate_array<std::byte*>(count);
  SINTER_RETURN_UNLESS(!building() || frame.prepared != nullptr, kDisagree);
  frame.kept = kept;
  for (uint32_t i = kTracked; i < count; ++i) {
    PrepareChain chain;
    SINTER_RETURN_IF_ERROR(plan_chain(frame, i, &chain));
    SINTER_RETURN_IF_ERROR(keep(frame, i, chain, building() ? scratch(chain.bytes) : nullptr));
    need_scratch(chain.bytes, 0);
  }
  return ok_status();
}

Creator::Bring Creator::bring_of(const Choice& choice) {
  const bool packs = choice.from == Packed::kHere;
  return {choice.packed, choice.from == Packed::kNone || packs ? 0 : choice.packing_inputs,
          choice.prepared + (packs && choice.device < 0 ? choice.packed_bytes : 0), choice.scratch};
}

// Gives a step's prepared operands, and scratch memory, before it is prepared itself.
[[gnu::noinline]] Status Creator::bring_operands(Frame& frame, const fb::Step& step, const Bring& bring,
                                                 Brought* brought) {
  const auto ins = frame.kept != nullptr ? items(step.inputs()) : std::span<const int32_t>();
  const auto packs = [&](size_t i) { return i < 32 && (bring.packs >> i & 1) != 0; };
  const auto wanted = [&](size_t i) {
    return is_prepared(*frame.program, ins[i]) && (i >= 32 || (bring.passes >> i & 1) == 0);
  };
  PrepareChain chain;
  // First how much scratch memory that takes: packed operands are there at the same time.
  size_t used = 0, peak = 0;
  for (size_t i = 0; i < ins.size(); ++i) {
    if (!wanted(i)) continue;
    const uint32_t index = static_cast<uint32_t>(ins[i]) - first_value(*frame.program);
    if (is_kept(frame, index)) continue;
    SINTER_RETURN_IF_ERROR(plan_chain(frame, index, &chain));
    if (packs(i)) used += prepared_bytes(frame, index);
    SINTER_RETURN_UNLESS(used <= kMostScratch, kTooLarge);
    peak = std::max(peak, used + chain.bytes);
  }
  SINTER_RETURN_UNLESS(bring.scratch <= kMostScratch, kTooLarge);
  peak = std::max(peak, used + align_up(bring.scratch, kBufferAlignment));
  std::byte* memory = building() ? scratch(peak) : nullptr;
  used = 0;
  for (size_t i = 0; i < ins.size(); ++i) {
    if (!wanted(i)) continue;
    const uint32_t index = static_cast<uint32_t>(ins[i]) - first_value(*frame.program);
    const bool kept = is_kept(frame, index);
    if (!kept && building()) SINTER_RETURN_IF_ERROR(plan_chain(frame, index, &chain));
    if (!kept && packs(i)) {
      const size_t at = used;
      used += prepared_bytes(frame, index);
      if (!building()) continue;
      SINTER_RETURN_IF_ERROR(run_chain(frame, chain, memory + used, memory + at));
      brought->inputs[i] = memory + at;
      continue;
    }
    if (!kept) SINTER_RETURN_IF_ERROR(keep(frame, index, chain, building() ? memory + used : nullptr));
    if (building()) brought->inputs[i] = frame.prepared[index];
  }
  if (building() && memory != nullptr) brought->scratch = memory + used;
  need_scratch(peak, bring.own);
  return ok_status();
}

}  // namespace sinter::detail
