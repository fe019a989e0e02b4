// PackedWeights: one block with everything that the steps of a program read packed.
//
// The walk is that of a session, without the steps themselves: a step's backend is chosen, and what it packs
// is packed unless an earlier step has packed the same. Widened weights are made in scratch memory at the end
// of the block, most of which is not yet taken while the early ones are packed.
#include "sinter/packed_weights.h"

#include <algorithm>
#include <cstring>

#include "runtime/session/creator.h"
#include "runtime/session/stored_packings.h"

namespace sinter {

using detail::Creator;

namespace {

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

Result<Requirements> PackedWeights::requirements(const Model& model, const SessionOptions& options) {
  SINTER_RETURN_UNLESS(model.valid(), invalid("the model is empty"));
  const SessionOptions packing = packing_options(options);
  Requirements needs;
  SINTER_RETURN_IF_ERROR(Creator(model, packing).measure_packed(&needs));
  return needs;
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
uint32_t PackedWeights::stored() const { return state_->stored; }

const detail::PackedInFile* packed_in_file() { return &Creator::kPackedInFile; }

}  // namespace sinter

namespace sinter::detail {

constinit const PackedInFile Creator::kPackedInFile = {verify_stored, find_stored, shared_number_of};

// The walk of either pass; closes the backends that it has opened.
Status Creator::walk_packings() {
  prepared_peak_ = 0;
  arena_bytes_ = 0;
  forget_packed();
  const uint32_t count = packs_every_entry() ? length(profile_->entries()) : 1;
  for (uint32_t e = 0; e < count; ++e) {
    if (packs_every_entry()) enter(e), find_kinds();
    Frame frame = entry_frame();
    SINTER_RETURN_IF_ERROR(pack_program(frame));
  }
  return ok_status();
}

Status Creator::measure_packed(Requirements* needs) {
  packs_only_ = true;
  if (options_.entry == kEveryEntry) search_before_ = &Creator::search_entries;
  SINTER_RETURN_IF_ERROR(resolve());
  control_ = StructureArena();
  prepared_ = {};
  control_.allocate_array<PackedState>(1);
  Status status;
  for (uint32_t d = 0; d < device_count_ && status.ok(); ++d) {
    status = open_slot(slots_[devices_[d].slot]);
    if (status.ok()) status = measure_queue(devices_[d]);
    control_.allocate(devices_[d].own_host, kBufferAlignment);
    devices_[d].arena = 0;
  }
  if (status.ok()) status = walk_packings();
  close_all();
  SINTER_RETURN_IF_ERROR(status);
  needs->control = align_up(control_.used(), kBufferAlignment);
  needs->prepared = align_up(std::max(prepared_.used(), prepared_peak_), kBufferAlignment);
  SINTER_RETURN_UNLESS(
      !control_.exhausted() && !prepared_.exhausted() && prepared_peak_ != SIZE_MAX &&
          checked_add(needs->control, needs->prepared, &needs->bytes),
      error(Code::kOutOfMemory, "the packed weights do not fit this machine's address space"));
  needs->packed = needs->prepared;
  needs->device_count = device_count_;
  for (uint32_t d = 0; d < device_count_; ++d)
    SINTER_RETURN_IF_ERROR(require(devices_[d], &needs->devices[d]));
  return ok_status();
}

// The blocks of devices that the caller gave, and a queue on each for as long as weights are packed.
Status Creator::open_packing_queues(const Requirements& needs) {
  for (uint32_t d = 0; d < device_count_; ++d) {
    Device& device = devices_[d];
    void* own = control_.allocate(device.own_host, kBufferAlignment);
    SINTER_RETURN_UNLESS(own != nullptr, kDisagree);
    std::span<std::byte> block;
    SINTER_RETURN_IF_ERROR(brought_block(needs.devices[d], device, &block));
    if (block.empty()) continue;
    Backend& backend = *slots_[device.slot].backend;
    SINTER_RETURN_IF_ERROR(open_slot(slots_[device.slot]));
    BumpArena host({static_cast<std::byte*>(own), device.own_host});
    BumpArena on_device({block.data(), device.own});
    const size_t taken = align_up(device.own, kBufferAlignment);
    device.prepared = BumpArena({block.data() + taken, needs.devices[d].prepared - taken});
    if (device.own_staging > 0)
      SINTER_RETURN_IF_ERROR(backend.memory()->allocate_staging(device.own_staging, &device.block));
    BumpArena staging({device.block != nullptr ? device.block : block.data(), device.own_staging});
    SINTER_RETURN_IF_ERROR(backend.open_queue({host, on_device, staging}, &queues_[d]));
  }
  return ok_status();
}

void Creator::close_packing_queues() {
  for (uint32_t d = 0; d < device_count_; ++d) {
    Backend& backend = *slots_[devices_[d].slot].backend;
    if (queues_[d] != nullptr) backend.close_queue(queues_[d]);
    if (devices_[d].block != nullptr) backend.memory()->free_staging(devices_[d].block);
    queues_[d] = nullptr, devices_[d].block = nullptr;
  }
}

Status Creator::create_packed(std::span<std::byte> memory, const PackedState** out) {
  SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(memory.data()) % kBufferAlignment == 0,
                       invalid("the memory of packed weights must be aligned to %a bytes", kBufferAlignment));
  Requirements needs;
  SINTER_RETURN_IF_ERROR(measure_packed(&needs));
  const size_t control = needs.control, bytes = needs.bytes;
  SINTER_RETURN_UNLESS(memory.size() >= bytes,
                       error(Code::kOutOfMemory, "the packed weights need %a bytes of memory but got %b",
                             static_cast<int64_t>(bytes), static_cast<int64_t>(memory.size())));
  control_ = StructureArena(memory.first(control));
  prepared_ = BumpArena(memory.subspan(control, bytes - control));
  if (bytes == control) prepared_ = BumpArena({memory.data() + control, 0});
  prepared_end_ = memory.data() + bytes;
  PackedState* state = control_.allocate_array<PackedState>(1);
  SINTER_RETURN_UNLESS(state != nullptr, kDisagree);
  Status status = open_packing_queues(needs);
  if (status.ok()) status = walk_packings();
  close_packing_queues();
  close_all();
  SINTER_RETURN_IF_ERROR(status);
  SINTER_RETURN_UNLESS(!control_.exhausted() && !prepared_.exhausted(), kDisagree);
  const std::span<PackedEntry> entries(entries_, packed_count_);
  std::sort(entries.begin(), entries.end(),
            [](const PackedEntry& a, const PackedEntry& b) { return a.hash < b.hash; });
  const auto stored =
      std::count_if(entries.begin(), entries.end(), [](const PackedEntry& e) { return e.stored; });
  *state = {model_.state(), entries, bytes, static_cast<uint32_t>(stored), shared_number_};
  *out = state;
  return ok_status();
}

Status Creator::pack_program(Frame& frame) {
  uint64_t kept[kTracked / 64] = {};  // none
  if (length(frame.program->prepare()) > 0) frame.kept = kept;
  for (uint32_t s = 0; s < length(frame.program->steps()); ++s) {
    const fb::Step& step = *frame.program->steps()->Get(s);
    const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
    if (plan.elided()) continue;
    if (!is_control(step)) {
      const StepPlace place = place_of(frame, step, plan);
      if (place.transfer) continue;
      if (const Status status = pack_step(frame, s, place); !status.ok())
        return status.at_step(s, frame.index);
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
bool Creator::packs_apart(const Frame& frame, const fb::Step& step, const Packing& packing) const {
  for (uint32_t i = 0; i < length(step.inputs()) && i < 32; ++i) {
    const int32_t input = items(step.inputs())[i];
    if ((packing.inputs >> i & 1) == 0 || input < 0) continue;
    const int64_t constant = constant_of(frame, input);
    if (constant >= 0) continue;
    const int64_t number = -1 - constant,
                  first = frame.kept != nullptr ? items(frame.program->prepare()->Get(0)->outputs())[0] : 0;
    if (number >> 32 != frame.index || frame.kept == nullptr || (number & UINT32_MAX) - first >= kTracked)
      return false;
  }
  return length(step.inputs()) + length(step.outputs()) <= kPackedOperands;
}

[[gnu::noinline]] Status Creator::pack_step(Frame& frame, uint32_t s, StepPlace place) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
  if (length(step.inputs()) + length(step.outputs()) > kPackedOperands) return ok_status();
  if (building() && place.device >= 0 && queues_[place.device] == nullptr) return ok_status();
  TensorView views[kPackedOperands];
  AttrStorage attributes;
  const OpCall call = make_call(frame, step, views, &attributes);
  Choice choice;
  Packing packing;
  Status refusal;
  SINTER_RETURN_IF_ERROR(choose_at(place, call, plan, &choice, &packing, &refusal));
  PackedKey key;
  if (packing.bytes == 0 || !key_of(frame, step, choice, packing, &key) || !packs_apart(frame, step, packing))
    return ok_status();
  SINTER_RETURN_IF_ERROR(find_packed(frame, s, packing, &choice));
  if (choice.from != Packed::kHere) return ok_status();
  PackedEntry* entry = control_.allocate_array<PackedEntry>(1);
  if (packed_count_++ == 0) entries_ = entry;
  const Backend& backend = *slots_[choice.slot].backend;
  const std::byte* stored = find_in_file(key, choice);
  if (stored != nullptr) {
    SINTER_RETURN_UNLESS(!building() || entry != nullptr, kDisagree);
    if (building()) *entry = {key, key.hash(), stored, backend.packed_layouts(), true};
    return ok_status();
  }
  SINTER_RETURN_IF_ERROR(check_present(frame, step, ~packing.inputs));
  Brought brought;
  SINTER_RETURN_IF_ERROR(
      bring_operands(frame, step,
                     {packing.inputs, ~packing.inputs, choice.device < 0 ? packing.bytes : 0,
                      choice.device < 0 ? 0 : choice.scratch},
                     &brought));
  brought.give(call);
  void* at = packed_arena(choice).allocate(packing.bytes, kBufferAlignment);
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(entry != nullptr && at != nullptr, kDisagree);
  const std::span<std::byte> bytes(static_cast<std::byte*>(at), packing.bytes);
  // What a backend leaves unset would be in files, which are the same whatever was in memory.
  if (choice.device < 0) std::memset(at, 0, packing.bytes);
  SINTER_RETURN_IF_ERROR(pack(choice, call, bytes, brought.scratch, options_.threads));
  *entry = {key, key.hash(), bytes.data(), choice.device < 0 ? backend.packed_layouts() : 0, false};
  return ok_status();
}

}  // namespace sinter::detail
