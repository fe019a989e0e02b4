// PackedWeights: one block with everything that the steps of a program read packed.
//
// The walk is that of a session, without the steps themselves: a step's backend is chosen, and what it packs
// is packed unless an earlier step has packed the same. Widened weights are made in scratch memory at the end
// of the block, most of which is not yet taken while the early ones are packed.
#include "sinter/packed_weights.h"

#include <algorithm>
#include <cstring>

#include "runtime/session/packings.h"
#include "runtime/session/prepare.h"
#include "runtime/session/stored_packings.h"

namespace sinter {
namespace detail {
namespace {

constexpr PackedInFile kPackedInFile = {verify_stored, find_stored, shared_number_of};

class PackingCreator {
 public:
  PackingCreator(const Model& model, const SessionOptions& options)
      : entry_(model, options, Entry::For::kPackings) {}

  [[gnu::noinline]] Status measure(Requirements* needs) {
    SINTER_RETURN_IF_ERROR(entry_.resolve());
    memory_.control.allocate_array<PackedState>(1);
    Status status = devices_.measure();
    for (uint32_t d = 0; d < entry_.device_count; ++d)
      memory_.control.allocate(devices_.own_host(d), kBufferAlignment);
    if (status.ok()) status = walk();
    chooser_.close_all();
    SINTER_RETURN_IF_ERROR(status);
    needs->control = align_up(memory_.control.used(), kBufferAlignment);
    needs->prepared = needs->packed = align_up(memory_.prepared_bytes(), kBufferAlignment);
    SINTER_RETURN_UNLESS(
        memory_.fits() && checked_add(needs->control, needs->prepared, &needs->bytes),
        error(Code::kOutOfMemory, "the packed weights do not fit this machine's address space"));
    return devices_.require(needs);
  }

  [[gnu::noinline]] Status create(std::span<std::byte> memory, const PackedState** out) {
    SINTER_RETURN_UNLESS(
        reinterpret_cast<uintptr_t>(memory.data()) % kBufferAlignment == 0,
        invalid("the memory of packed weights must be aligned to %a bytes", kBufferAlignment));
    Requirements needs;
    SINTER_RETURN_IF_ERROR(measure(&needs));
    const size_t control = needs.control, bytes = needs.bytes;
    SINTER_RETURN_UNLESS(memory.size() >= bytes,
                         error(Code::kOutOfMemory, "the packed weights need %a bytes of memory but got %b",
                               static_cast<int64_t>(bytes), static_cast<int64_t>(memory.size())));
    memory_.control = StructureArena(memory.first(control));
    memory_.prepared = BumpArena({memory.data() + control, bytes - control});
    memory_.prepared_end = memory.data() + bytes;
    PackedState* state = nullptr;
    SINTER_RETURN_IF_ERROR(memory_.take(1, &state));
    Status status = devices_.open_packing_queues(needs, memory_.control);
    if (status.ok()) status = walk();
    devices_.close_packing_queues();
    chooser_.close_all();
    SINTER_RETURN_IF_ERROR(status);
    SINTER_RETURN_IF_ERROR(memory_.check_taken());
    const std::span<PackedEntry> entries(entries_, count_);
    std::sort(entries.begin(), entries.end(),
              [](const PackedEntry& a, const PackedEntry& b) { return a.hash < b.hash; });
    const auto stored =
        std::count_if(entries.begin(), entries.end(), [](const PackedEntry& e) { return e.stored; });
    *state = {entry_.model.state(), entries, bytes, static_cast<uint32_t>(stored), entry_.number};
    *out = state;
    return ok_status();
  }

 private:
  // Walks all entries, in either pass.
  Status walk() {
    count_ = 0;
    for (uint32_t e = 0; e < entry_.packed_entries(); ++e) {
      packings_.begin(e);
      Frame frame = entry_.frame(e);
      SINTER_RETURN_IF_ERROR(walk_program(frame));
    }
    return ok_status();
  }

  [[gnu::noinline]] Status walk_program(Frame& frame) {
    TrackedValues none;
    if (length(frame.program->prepare()) > 0) frame.kept = none.kept;
    for (uint32_t s = 0; s < frame.step_count(); ++s) {
      if (frame.step_plan(s).elided() || frame.place_of(s).transfer) continue;
      if (!is_control(frame.step(s))) {
        if (const Status status = pack_step(frame, s); !status.ok()) return status.at_step(s, frame.index);
        continue;
      }
      for (const uint32_t program : items(frame.step(s).subprograms())) {
        Frame body = frame.body(s, program);
        SINTER_RETURN_IF_ERROR(walk_program(body));
      }
    }
    frame.kept = nullptr;
    return ok_status();
  }

  // Returns whether what is packed can be made here: it is not made of the owner's prepared values, nor of
  // those that stay in a session in any case (prepare.h).
  static bool packs_apart(const Frame& frame, const fb::Step& step, const Packing& packing) {
    for (uint32_t i = 0; i < length(step.inputs()) && i < 32; ++i) {
      const int32_t input = items(step.inputs())[i];
      if ((packing.inputs >> i & 1) == 0 || input < 0) continue;
      const int64_t constant = frame.constant_of(input);
      if (constant >= 0) continue;
      const int64_t number = -1 - constant;
      if (number >> 32 != frame.index || frame.kept == nullptr ||
          (number & UINT32_MAX) - frame.first_prepared() >= kTracked)
        return false;
    }
    return true;
  }

  [[gnu::noinline]] Status pack_step(Frame& frame, uint32_t s) {
    const fb::Step& step = frame.step(s);
    const uint8_t memory = frame.place_of(s).memory;
    if (!can_share_packings(step)) return ok_status();
    const bool building = memory_.building();
    if (building && memory != 0 && devices_.of(memory).queue == nullptr) return ok_status();
    TensorView views[kPackedOperands];
    AttrStorage attributes;
    const OpCall call = frame.make_call(step, views, &attributes);
    Choice choice;
    Packing packing;
    Status refusal;
    SINTER_RETURN_IF_ERROR(chooser_.choose(frame, s, call, &choice, &packing, &refusal));
    PackedKey key;
    if (packing.bytes == 0 || !entry_.key_of(frame, step, choice.slot, packing, &key) ||
        !packs_apart(frame, step, packing))
      return ok_status();
    SINTER_RETURN_IF_ERROR(packings_.find(frame, s, packing, &choice));
    if (choice.from != Choice::Packed::kHere) return ok_status();
    PackedEntry* entry = nullptr;
    SINTER_RETURN_IF_ERROR(memory_.take(1, &entry));
    if (count_++ == 0) entries_ = entry;
    const uint64_t layouts = memory == 0 ? entry_.backends[choice.slot]->packed_layouts() : 0;
    if (const std::byte* stored = packings_.find_in_file(key, choice); stored != nullptr) {
      if (building) *entry = {key, key.hash(), stored, layouts, true};
      return ok_status();
    }
    SINTER_RETURN_IF_ERROR(frame.check_present(step, ~packing.inputs));
    const Bring bring{packing.inputs, ~packing.inputs, memory == 0 ? packing.bytes : 0,
                      memory == 0 ? 0 : choice.scratch};
    Brought brought;
    SINTER_RETURN_IF_ERROR(prepared_values_.bring(frame, step, bring, &brought));
    brought.give(call);
    auto* at = static_cast<std::byte*>(packings_.arena(choice).allocate(packing.bytes, kBufferAlignment));
    if (!building) return ok_status();
    SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
    // Bytes that a backend leaves unset would be in files, which are the same whatever was in memory.
    if (memory == 0) std::memset(at, 0, packing.bytes);
    SINTER_RETURN_IF_ERROR(
        packings_.pack(choice, call, {at, packing.bytes}, brought.scratch, entry_.options.threads));
    *entry = {key, key.hash(), at, layouts, false};
    return ok_status();
  }

  Entry entry_;
  CreationMemory memory_;
  Chooser chooser_{entry_};
  Devices devices_{entry_, chooser_};
  PreparedValues prepared_values_{entry_, memory_};
  Packings packings_{entry_, chooser_, devices_, memory_};
  PackedEntry* entries_ = nullptr;
  uint32_t count_ = 0;
};

// Without the options that do not matter if nothing is run.
SessionOptions packing_options(const SessionOptions& options) {
  SessionOptions packing = options;
  packing.bindings = {};
  packing.packed_weights = nullptr;
  packing.packed_in_file = packed_in_file();
  packing.require_planned = false;
  packing.on_fallback = {};
  return packing;
}

}  // namespace
}  // namespace detail

using detail::PackingCreator;

Result<Requirements> PackedWeights::requirements(const Model& model, const SessionOptions& options) {
  SINTER_RETURN_UNLESS(model.valid(), invalid("the model is empty"));
  const SessionOptions packing = detail::packing_options(options);
  Requirements needs;
  SINTER_RETURN_IF_ERROR(PackingCreator(model, packing).measure(&needs));
  return needs;
}

Result<PackedWeights> PackedWeights::create(const Model& model, std::span<std::byte> memory,
                                            const SessionOptions& options) {
  SINTER_RETURN_UNLESS(model.valid(), invalid("the model is empty"));
  const SessionOptions packing = detail::packing_options(options);
  PackedWeights packed;
  SINTER_RETURN_IF_ERROR(PackingCreator(model, packing).create(memory, &packed.state_));
  return packed;
}

size_t PackedWeights::bytes() const { return state_->bytes; }
uint32_t PackedWeights::count() const { return static_cast<uint32_t>(state_->entries.size()); }
uint32_t PackedWeights::stored() const { return state_->stored; }

const detail::PackedInFile* packed_in_file() { return &detail::kPackedInFile; }

}  // namespace sinter
