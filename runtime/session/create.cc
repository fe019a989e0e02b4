// Creates a session: the two passes, and the memory between them.
#include <algorithm>

#include "runtime/core/byte_range.h"
#include "runtime/session/session_creator.h"

namespace sinter::detail {

Status SessionCreator::measure(Requirements* needs) {
  SINTER_RETURN_IF_ERROR(entry_.resolve());
  return measure_memory(needs);
}

Status SessionCreator::create(std::span<std::byte> memory, SessionState** out) {
  SINTER_RETURN_IF_ERROR(entry_.resolve());
  SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(memory.data()) % kBufferAlignment == 0,
                       invalid("a session's memory must be aligned to %a bytes", kBufferAlignment));
  given_ = memory;
  Requirements needs;
  SINTER_RETURN_IF_ERROR(measure_memory(&needs));
  SINTER_RETURN_UNLESS(memory.size() >= needs.bytes,
                       error(Code::kOutOfMemory, "the session needs %a bytes of memory but got %b",
                             static_cast<int64_t>(needs.bytes), static_cast<int64_t>(memory.size())));
  SINTER_RETURN_IF_ERROR(entry_.check_memory(memory.first(needs.bytes), "session's memory"));
  SINTER_RETURN_IF_ERROR(place(needs, out));
  SINTER_RETURN_IF_ERROR(walk_entry());
  return memory_.check_taken();
}

// The first pass. Leaves sizes in `needs` and, where there is memory, what was chosen.
Status SessionCreator::measure_memory(Requirements* needs) {
  const Frame& root = entry_.root;
  const bool own_arena = entry_.options.arena == nullptr, own_state = entry_.options.state == nullptr;
  for (uint32_t i = 0; i < length(root.plan->regions()); ++i) {
    if (root.kinds[i] != 0) continue;
    // Verified: a multiple of 64, and no sum overflows.
    const auto bytes = static_cast<size_t>(root.plan->regions()->Get(i)->bytes());
    (root.holds_state(i) ? state_bytes_ : value_bytes_) += bytes;
  }
  memory_.arena_bytes = value_bytes_ + (own_arena && own_state ? state_bytes_ : 0);
  Status status = check_shared_state();
  if (status.ok()) status = devices_.measure();
  if (status.ok()) status = take_structures();
  if (status.ok()) status = walk_entry();
  chooser_.close_all();
  SINTER_RETURN_IF_ERROR(status);
  BumpArena prepared;  // as in place()
  chooser_.measure_used(prepared);
  for (uint32_t d = 0; d < entry_.device_count; ++d)
    prepared.allocate(devices_.own_host(d), kBufferAlignment);
  prepared.allocate(memory_.prepared_bytes(), kBufferAlignment);
  // The list of backends ends the control structures: how many there are is known last.
  memory_.control.allocate_array<Backend*>(chooser_.used());
  needs->control = align_up(memory_.control.used(), kBufferAlignment);
  needs->arena = value_bytes_ + state_bytes_;
  needs->state = state_bytes_;
  needs->shareable = value_bytes_;
  needs->prepared = align_up(prepared.used(), kBufferAlignment);
  needs->packed = packings_.packed_bytes;
  const size_t own_regions = (own_arena ? value_bytes_ : 0) + (own_state ? state_bytes_ : 0);
  SINTER_RETURN_UNLESS(checked_add(needs->control, own_regions, &needs->bytes) &&
                           checked_add(needs->bytes, needs->prepared, &needs->bytes) &&
                           !prepared.exhausted() && memory_.fits(),
                       error(Code::kOutOfMemory, "the session does not fit this machine's address space"));
  return devices_.require(needs);
}

Status SessionCreator::check_shared_state() const {
  if (entry_.options.state == nullptr) return ok_status();
  SINTER_RETURN_UNLESS(
      entry_.options.state->belongs_to(entry_.model.state(), entry_.profile_index),
      invalid("the shared state belongs to another model or profile; give sessions of each a SharedState"));
  for (uint32_t i = 0; i < length(entry_.root.plan->regions()); ++i) {
    const uint8_t kind = entry_.root.plan->regions()->Get(i)->memory_kind();
    SINTER_RETURN_UNLESS(
        kind == 0 || !entry_.root.holds_state(i),
        unsupported("state that is planned in the device memory of backend %s cannot be shared; give each "
                    "session its own",
                    name_of(entry_.backend_name(kind))));
  }
  return ok_status();
}

// Checks the memory of a SharedArena or SharedState, of which the session takes `bytes`. `what`: its name;
// `short_of`: the message where it has fewer.
Status SessionCreator::check_shared(std::span<std::byte> shared, size_t bytes, std::span<std::byte> memory,
                                    const char* what, const char* short_of) const {
  SINTER_RETURN_UNLESS(
      reinterpret_cast<uintptr_t>(shared.data()) % kBufferAlignment == 0,
      invalid("the memory of the %s must be aligned to %b bytes", name_of(what), kBufferAlignment));
  SINTER_RETURN_UNLESS(
      shared.size() >= bytes,
      error(Code::kOutOfMemory, short_of, static_cast<int64_t>(bytes), static_cast<int64_t>(shared.size())));
  SINTER_RETURN_IF_ERROR(entry_.check_memory(shared.first(bytes), what));
  SINTER_RETURN_UNLESS(
      !ByteRange(shared.data(), bytes).overlaps({memory.data(), memory.size()}),
      invalid("the %s overlaps the session's memory; give it separate memory", name_of(what)));
  return ok_status();
}

// Places the host's regions in `own`, a part of the session's `memory`; but those that hold state in the
// shared state, and the others in the shared arena, if there is one.
Status SessionCreator::take_regions(std::span<std::byte> memory, std::span<std::byte> own) {
  std::byte* mine = own.data();
  std::byte *values = nullptr, *state = nullptr;
  memory_.arena = mine;
  if (entry_.options.arena != nullptr) {
    const std::span<std::byte> arena = entry_.options.arena->memory();
    SINTER_RETURN_IF_ERROR(check_shared(arena, value_bytes_, memory, "shared arena",
                                        "the session needs %a bytes of shared arena but it has %b"));
    values = memory_.arena = arena.data();
  }
  if (entry_.options.state != nullptr) {
    const std::span<std::byte> kept = entry_.options.state->memory();
    SINTER_RETURN_IF_ERROR(check_shared(kept, state_bytes_, memory, "shared state",
                                        "the session needs %a bytes of shared state but it has %b"));
    SINTER_RETURN_UNLESS(
        values == nullptr || !ByteRange(kept.data(), state_bytes_).overlaps({values, value_bytes_}),
        invalid("the shared state overlaps the shared arena; give each separate memory"));
    state = kept.data();
  }
  entry_.root.regions[0] = mine;
  for (uint32_t i = 0; i < length(entry_.root.plan->regions()); ++i) {
    if (entry_.root.kinds[i] != 0) continue;
    std::byte*& shared = entry_.root.holds_state(i) ? state : values;
    std::byte*& next = shared != nullptr ? shared : mine;
    entry_.root.regions[i] = next;
    next += entry_.root.plan->regions()->Get(i)->bytes();
  }
  return ok_status();
}

// Gives memory to all that was measured: control structures, then regions, then prepared memory, which begins
// with that of backends and queues.
Status SessionCreator::place(const Requirements& needs, SessionState** out) {
  const size_t list_bytes = chooser_.used() * sizeof(Backend*);
  memory_.control = StructureArena(given_.first(needs.control - list_bytes));
  const size_t own = needs.bytes - needs.control - needs.prepared;
  SINTER_RETURN_IF_ERROR(take_regions(given_.first(needs.bytes), given_.subspan(needs.control, own)));
  BumpArena prepared(given_.subspan(needs.control + own, needs.prepared));
  SINTER_RETURN_IF_ERROR(take_structures());
  *out = session_;
  session_->model = entry_.model;
  session_->reference = entry_.kernels;
  session_->threads = entry_.options.threads;
  session_->arena = entry_.options.arena;
  session_->shared_state = entry_.options.state;
  session_->bytes = needs.bytes;
  session_->fallbacks = chooser_.fallbacks;
  session_->entry = entry_.options.entry;
  session_->profile = entry_.profile_index;
  session_->backends = reinterpret_cast<Backend**>(given_.data() + needs.control - list_bytes);
  entry_.backends[entry_.reference()] = &session_->reference;
  SINTER_RETURN_IF_ERROR(chooser_.open_used(prepared, *session_));
  SINTER_RETURN_IF_ERROR(devices_.take_blocks(needs, *session_, entry_.root));
  SINTER_RETURN_IF_ERROR(devices_.open_queues(prepared, *session_));
  prepared.allocate(0, kBufferAlignment);  // aligns what follows
  const size_t rest = needs.prepared - prepared.used();
  SINTER_RETURN_IF_ERROR(take_part(prepared, rest, &memory_.prepared));
  memory_.prepared_end = given_.data() + needs.bytes;
  return ok_status();
}

}  // namespace sinter::detail
