#include "runtime/session/prepare.h"

#include <algorithm>

namespace sinter::detail {
namespace {

const Status kTooLarge = error(Code::kOutOfMemory, "prepared values do not fit this machine's address space");
// Scratch memory is far less; sums of two such sizes do not overflow.
constexpr size_t kMostScratch = SIZE_MAX / 4;

bool is_kept(const Frame& frame, uint32_t index) {
  return index >= kTracked || (frame.kept[index / 64] >> (index % 64) & 1) != 0;
}

// Values are verified to be far smaller than the address space, chains to be short: no sum here overflows on
// 64 bits.
size_t bytes_of_prepared(const Frame& frame, uint32_t index) {
  const fb::Value& value = frame.value(frame.first_prepared() + index);
  return align_up(static_cast<size_t>(value_view(value).dense_bytes()) + kReadPadding, kBufferAlignment);
}

// Scratch memory while a chain is planned: each block gets the lowest place beside the values that are live.
class ChainScratch {
 public:
  // Returns the place of a block of the step that is the `now`th from the last of the chain.
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
  // Returns the place of a value, which is live until a later step has read it.
  size_t place_value(size_t bytes, uint32_t now, uint32_t last_reader) {
    const size_t at = place(bytes, now);
    if (fits_) values_[count_++] = {at, at + bytes, last_reader};
    return at;
  }
  bool fits() const { return fits_; }  // all is within kMostScratch
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

// How one prepared value is computed: its chain of prepare steps, and the places in scratch memory of what
// they need.
struct PreparedValues::Chain {
  uint32_t first = 0, last = 0;  // prepare steps
  uint64_t needed = 0;           // bit i: step first + i is one of the chain
  size_t value[kMaxPrepareChain] = {}, workspace[kMaxPrepareChain] = {},
         workspace_bytes[kMaxPrepareChain] = {};
  size_t bytes = 0;
};

// Finds the bytes of workspace that a prepare step needs.
[[gnu::noinline]] Status PreparedValues::measure(const Frame& frame, uint32_t index,
                                                 size_t* workspace) const {
  StepRoom room;
  StepNeeds needs;
  const OpCall call = frame.make_call(*frame.program->prepare()->Get(index), &room);
  const Status status = entry_.backends[entry_.reference()]->measure(call, 1, &needs);
  *workspace = needs.workspace;
  return status.ok() ? status : status.at_step(index, frame.index, Where::kPrepareStep);
}

[[gnu::noinline]] Status PreparedValues::plan(const Frame& frame, uint32_t index, Chain* chain) const {
  const fb::Program& program = *frame.program;
  const uint32_t base = frame.first_prepared();
  *chain = {};
  chain->first = chain->last = index;
  // Backwards: what is needed, and by whom it is read last, by distance from `index`.
  uint64_t needed = 1;
  uint8_t reader[kMaxPrepareChain] = {};
  for (uint32_t i = index; i + 1 > chain->first; --i) {
    if ((needed >> (index - i) & 1) == 0) continue;
    SINTER_RETURN_IF_ERROR(frame.check_present(*program.prepare()->Get(i), 0));
    for (const int32_t v : items(program.prepare()->Get(i)->inputs())) {
      if (!frame.is_prepared(v)) continue;
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
    if (i != index) chain->value[k] = scratch.place_value(bytes_of_prepared(frame, i), back, reader[back]);
    size_t workspace = 0;
    SINTER_RETURN_IF_ERROR(measure(frame, i, &workspace));
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

[[gnu::noinline]] Status PreparedValues::run(const Frame& frame, const Chain& chain, std::byte* scratch,
                                             std::byte* target) const {
  const fb::Program& program = *frame.program;
  const uint32_t base = frame.first_prepared();
  Backend& backend = *entry_.backends[entry_.reference()];
  for (uint32_t i = chain.first; i <= chain.last; ++i) {
    const uint32_t k = i - chain.first;
    if ((chain.needed >> k & 1) == 0) continue;
    const fb::Step& step = *program.prepare()->Get(i);
    StepRoom room;
    const OpCall call = frame.make_call(step, &room);
    for (size_t in = 0; in < call.inputs.size(); ++in)
      if (const int32_t v = items(step.inputs())[in]; frame.is_prepared(v))
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

// Keeps a value in prepared memory. `chain` is planned where there is memory.
Status PreparedValues::keep(Frame& frame, uint32_t index, const Chain& chain, std::byte* scratch) {
  if (index < kTracked) frame.kept[index / 64] |= uint64_t{1} << (index % 64);
  auto* at =
      static_cast<std::byte*>(memory_.prepared.allocate(bytes_of_prepared(frame, index), kBufferAlignment));
  if (!memory_.building()) return ok_status();
  SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
  frame.prepared[index] = at;
  return run(frame, chain, scratch, at);
}

Status PreparedValues::begin(Frame& frame, TrackedValues& tracked) {
  const uint32_t count = length(frame.program->prepare());
  SINTER_RETURN_IF_ERROR(memory_.take(count, &frame.prepared));
  frame.kept = tracked.kept;
  for (uint32_t i = kTracked; i < count; ++i) {
    Chain chain;
    SINTER_RETURN_IF_ERROR(plan(frame, i, &chain));
    SINTER_RETURN_IF_ERROR(keep(frame, i, chain, scratch(chain.bytes)));
    memory_.need_scratch(chain.bytes, 0);
  }
  return ok_status();
}

[[gnu::noinline]] Status PreparedValues::bring(Frame& frame, const fb::Step& step, const Bring& bring,
                                               Brought* brought) {
  const auto ins = frame.kept != nullptr ? items(step.inputs()) : std::span<const int32_t>();
  const auto packs = [&](size_t i) { return i < 32 && (bring.packs >> i & 1) != 0; };
  const auto wanted = [&](size_t i) {
    return frame.is_prepared(ins[i]) && (i >= 32 || (bring.passes >> i & 1) == 0);
  };
  Chain chain;
  // First how much scratch memory that takes: packed operands are there at the same time.
  size_t used = 0, peak = 0;
  for (size_t i = 0; i < ins.size(); ++i) {
    if (!wanted(i)) continue;
    const uint32_t index = static_cast<uint32_t>(ins[i]) - frame.first_prepared();
    if (is_kept(frame, index)) continue;
    SINTER_RETURN_IF_ERROR(plan(frame, index, &chain));
    if (packs(i)) used += bytes_of_prepared(frame, index);
    SINTER_RETURN_UNLESS(used <= kMostScratch, kTooLarge);
    peak = std::max(peak, used + chain.bytes);
  }
  SINTER_RETURN_UNLESS(bring.scratch <= kMostScratch, kTooLarge);
  peak = std::max(peak, used + align_up(bring.scratch, kBufferAlignment));
  std::byte* memory = scratch(peak);
  used = 0;
  for (size_t i = 0; i < ins.size(); ++i) {
    if (!wanted(i)) continue;
    const uint32_t index = static_cast<uint32_t>(ins[i]) - frame.first_prepared();
    const bool kept = is_kept(frame, index);
    if (!kept && memory_.building()) SINTER_RETURN_IF_ERROR(plan(frame, index, &chain));
    if (!kept && packs(i)) {
      const size_t at = used;
      used += bytes_of_prepared(frame, index);
      if (!memory_.building()) continue;
      SINTER_RETURN_IF_ERROR(run(frame, chain, memory + used, memory + at));
      brought->inputs[i] = memory + at;
      continue;
    }
    if (!kept)
      SINTER_RETURN_IF_ERROR(keep(frame, index, chain, memory_.building() ? memory + used : nullptr));
    if (memory_.building()) brought->inputs[i] = frame.prepared[index];
  }
  if (memory_.building() && memory != nullptr) brought->scratch = memory + used;
  memory_.need_scratch(peak, bring.own);
  return ok_status();
}

}  // namespace sinter::detail
