// Creates a session: its inputs, and the two passes. The walk over the programs is in walk.cc, the
// choice of a backend for each step in choose.cc.
#include <algorithm>
#include <cstring>

#include "runtime/core/byte_range.h"
#include "runtime/session/creator.h"

namespace sinter::detail {
namespace {

bool same(const char* a, const char* b) { return std::strcmp(a, b) == 0; }

}  // namespace

Status Creator::resolve_profile() {
  const fb::Model& root = *model_.state()->root;
  const int named = options_.profile != nullptr ? model_.find_profile(options_.profile) : 0;
  SINTER_RETURN_UNLESS(named >= 0, invalid("the file has no profile '%s'", name_of(options_.profile)));
  profile_index_ = options_.profile != nullptr ? static_cast<uint32_t>(named) : model_.default_profile();
  profile_ = root.profiles()->Get(profile_index_);
  const auto entries = items(profile_->entries());
  const bool every = packs_every_entry();
  SINTER_RETURN_UNLESS(every || options_.entry != kEveryEntry,
                       invalid("a session runs one entry of the model; give its number"));
  SINTER_RETURN_UNLESS(
      every || options_.entry < entries.size(),
      invalid("the model has no entry %a; it has %b", options_.entry, static_cast<int64_t>(entries.size())));
  enter(every ? 0 : options_.entry);
  return ok_status();
}

void Creator::enter(uint32_t entry) {
  entry_ = entry;
  program_index_ = items(profile_->entries())[entry];
  program_ = model_.state()->root->programs()->Get(program_index_);
  plan_ = find_plan(*profile_, program_index_);  // verified: it is there
}

Status Creator::resolve() {
  const ModelState& model = *model_.state();
  SINTER_RETURN_UNLESS(options_.backends.size() <= kMaxBackends,
                       invalid("more than %a backends", kMaxBackends));
  SINTER_RETURN_IF_ERROR(resolve_profile());

  const auto given = [&](const char* name) -> Backend* {
    for (Backend* b : options_.backends)
      if (b != nullptr && same(b->name(), name)) return b;
    return nullptr;
  };
  override_ = options_.backend != nullptr;
  slot_count_ = 0;
  if (override_) {
    if (!same(options_.backend, "reference")) {
      Backend* backend = given(options_.backend);
      SINTER_RETURN_UNLESS(backend != nullptr, invalid("no backend has this name"));
      slots_[slot_count_++] = {backend};
    }
  } else {
    SINTER_RETURN_UNLESS(length(profile_->backends()) <= kMaxBackends,
                         unsupported("more than %a backends", kMaxBackends));
    if (profile_->backends() != nullptr)
      for (const flatbuffers::String* name : *profile_->backends())
        slots_[slot_count_++] = {given(name->c_str())};
  }
  local_reference_ = KernelBackend("reference", model.kernels);
  slots_[slot_count_++] = {&local_reference_};
  SINTER_RETURN_UNLESS(
      options_.packed_weights == nullptr ||
          (options_.packed_weights->valid() && options_.packed_weights->state()->model == &model),
      invalid("the packed weights belong to another model; pack them with the same Model"));
  if (options_.packed_weights != nullptr) shared_number_ = options_.packed_weights->state()->number;
  if (options_.packed_in_file != nullptr) {
    shared_number_ = options_.packed_in_file->number;
    SINTER_RETURN_IF_ERROR(options_.packed_in_file->verify(model));
  }
  SINTER_RETURN_IF_ERROR(resolve_devices());
  return resolve_bindings();
}

Frame Creator::entry_frame() const {
  Frame frame;
  frame.program = program_;
  frame.plan = plan_;
  frame.index = program_index_;
  std::copy(std::begin(regions_), std::end(regions_), frame.regions);
  std::copy(std::begin(kinds_), std::end(kinds_), frame.kinds);
  return frame;
}

size_t Creator::used_slots() const {
  size_t used = 0;
  for (size_t i = 0; i < slot_count_; ++i) used += slots_[i].used;
  return used;
}

void Creator::close_all() {
  for (size_t i = 0; i < slot_count_; ++i)
    if (slots_[i].open) slots_[i].backend->close(), slots_[i].open = false;
}

// Whether a state is placed in the region, which then has to persist between runs.
bool Creator::holds_state(uint32_t region) const {
  for (uint32_t i = 0; i < length(plan_->placements()); ++i) {
    const fb::Placement& p = *plan_->placements()->Get(i);
    if (p.region() == region && program_->values()->Get(p.value())->kind() == fb::ValueKind::State)
      return true;
  }
  return false;
}

// First pass. Leaves sizes in `needs` and, where there is memory, what was chosen.
Status Creator::measure_pass(Requirements* needs) {
  control_ = StructureArena(pointers_);
  prepared_ = {};
  prepared_peak_ = 0;
  most_operands_ = 0;
  fallbacks_ = 0;
  forget_packed();
  arena_bytes_ = state_bytes_ = 0;
  for (uint32_t i = 0; i < length(plan_->regions()); ++i) {
    if (kinds_[i] != 0) continue;
    const auto bytes =
        static_cast<size_t>(plan_->regions()->Get(i)->bytes());  // verified: a multiple of 64, no overflow
    arena_bytes_ += bytes;
    if (holds_state(i)) state_bytes_ += bytes;
  }
  Status status = check_shared_state();
  for (uint32_t d = 0; d < device_count_ && status.ok(); ++d) {
    Slot& slot = slots_[devices_[d].slot];
    slot.used = true;
    status = open_slot(slot);
    if (status.ok()) status = measure_queue(devices_[d]);
  }
  if (status.ok()) status = walk_entry();
  close_all();
  SINTER_RETURN_IF_ERROR(status);
  BumpArena prepared;  // as in create(): backends first
  for (size_t i = 0; i < slot_count_; ++i)
    if (slots_[i].used) prepared.allocate(slots_[i].bytes, kBufferAlignment);
  for (uint32_t d = 0; d < device_count_; ++d) prepared.allocate(devices_[d].own_host, kBufferAlignment);
  prepared.allocate(prepared_.used() > prepared_peak_ ? prepared_.used() : prepared_peak_, kBufferAlignment);
  // The list of backends ends the control structures: how many there are is known last.
  control_.allocate_array<Backend*>(used_slots());
  needs->control = align_up(control_.used(), kBufferAlignment);
  needs->arena = arena_bytes_;
  needs->state = state_bytes_;
  needs->shareable = arena_bytes_ - state_bytes_;
  needs->prepared = align_up(prepared.used(), kBufferAlignment);
  needs->packed = packed_bytes_;
  SINTER_RETURN_UNLESS(checked_add(needs->control, own_region_bytes(), &needs->bytes) &&
                           checked_add(needs->bytes, needs->prepared, &needs->bytes) &&
                           !prepared_.exhausted() && prepared_peak_ != SIZE_MAX && !prepared.exhausted() &&
                           !control_.exhausted(),
                       error(Code::kOutOfMemory, "the session does not fit this machine's address space"));
  needs->device_count = device_count_;
  for (uint32_t d = 0; d < device_count_; ++d)
    SINTER_RETURN_IF_ERROR(require(devices_[d], &needs->devices[d]));
  return ok_status();
}

Status Creator::measure(Requirements* needs) {
  SINTER_RETURN_IF_ERROR(resolve());
  return measure_pass(needs);
}

Status Creator::check_shared_state() const {
  if (options_.state == nullptr) return ok_status();
  SINTER_RETURN_UNLESS(
      options_.state->belongs_to(model_.state(), profile_index_),
      invalid("the shared state belongs to another model or profile; give sessions of each a SharedState"));
  for (uint32_t i = 0; i < length(plan_->regions()); ++i) {
    const uint8_t kind = plan_->regions()->Get(i)->memory_kind();
    SINTER_RETURN_UNLESS(
        kind == 0 || !holds_state(i),
        unsupported("state that is planned in the device memory of backend %s cannot be shared; give each "
                    "session its own",
                    name_of(profile_->backends()->Get(kind - 1u)->c_str())));
  }
  return ok_status();
}

// `shared`: the memory of a SharedArena or SharedState, of which the session takes `bytes`; `what`: its name;
// `short_of`: the message where it has fewer.
Status Creator::check_shared(std::span<std::byte> shared, size_t bytes, std::span<std::byte> memory,
                             const char* what, const char* short_of) const {
  SINTER_RETURN_UNLESS(
      reinterpret_cast<uintptr_t>(shared.data()) % kBufferAlignment == 0,
      invalid("the memory of the %s must be aligned to %b bytes", name_of(what), kBufferAlignment));
  SINTER_RETURN_UNLESS(
      shared.size() >= bytes,
      error(Code::kOutOfMemory, short_of, static_cast<int64_t>(bytes), static_cast<int64_t>(shared.size())));
  SINTER_RETURN_IF_ERROR(check_memory(shared.first(bytes), what));
  SINTER_RETURN_UNLESS(
      !ByteRange(shared.data(), bytes).overlaps({memory.data(), memory.size()}),
      invalid("the %s overlaps the session's memory; give it separate memory", name_of(what)));
  return ok_status();
}

// Places the host's regions in `own`, a part of the session's `memory`; but those that hold state in the
// shared state, and the others in the shared arena, if there is one.
Status Creator::take_regions(std::span<std::byte> memory, std::span<std::byte> own) {
  std::byte* mine = own.data();
  std::byte *values = nullptr, *state = nullptr;
  scratch_ = mine;
  if (options_.arena != nullptr) {
    const std::span<std::byte> arena = options_.arena->memory();
    SINTER_RETURN_IF_ERROR(check_shared(arena, scratch_bytes(), memory, "shared arena",
                                        "the session needs %a bytes of shared arena but it has %b"));
    values = scratch_ = arena.data();
  }
  if (options_.state != nullptr) {
    const std::span<std::byte> kept = options_.state->memory();
    SINTER_RETURN_IF_ERROR(check_shared(kept, state_bytes_, memory, "shared state",
                                        "the session needs %a bytes of shared state but it has %b"));
    SINTER_RETURN_UNLESS(
        values == nullptr || !ByteRange(kept.data(), state_bytes_).overlaps({values, scratch_bytes()}),
        invalid("the shared state overlaps the shared arena; give each separate memory"));
    state = kept.data();
  }
  regions_[0] = mine;
  for (uint32_t i = 0; i < length(plan_->regions()); ++i) {
    if (kinds_[i] != 0) continue;
    std::byte*& shared = holds_state(i) ? state : values;
    std::byte*& next = shared != nullptr ? shared : mine;
    regions_[i] = next;
    next += plan_->regions()->Get(i)->bytes();
  }
  return ok_status();
}

Status Creator::create(std::span<std::byte> memory, SessionState** out) {
  SINTER_RETURN_IF_ERROR(resolve());
  SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(memory.data()) % kBufferAlignment == 0,
                       invalid("a session's memory must be aligned to %a bytes", kBufferAlignment));
  memory_ = memory;
  Requirements needs;
  SINTER_RETURN_IF_ERROR(measure_pass(&needs));
  SINTER_RETURN_UNLESS(memory.size() >= needs.bytes,
                       error(Code::kOutOfMemory, "the session needs %a bytes of memory but got %b",
                             static_cast<int64_t>(needs.bytes), static_cast<int64_t>(memory.size())));
  SINTER_RETURN_IF_ERROR(check_memory(memory.first(needs.bytes), "session's memory"));

  const size_t list_bytes = used_slots() * sizeof(Backend*);
  control_ = StructureArena(memory.first(needs.control - list_bytes));
  const size_t own_arena = needs.bytes - needs.control - needs.prepared;
  SINTER_RETURN_IF_ERROR(take_regions(memory.first(needs.bytes), memory.subspan(needs.control, own_arena)));
  BumpArena prepared(memory.subspan(needs.control + own_arena, needs.prepared));
  session_ = control_.allocate_array<SessionState>(1);
  SINTER_RETURN_UNLESS(session_ != nullptr, kDisagree);
  *out = session_;
  session_->model = model_;
  session_->reference = local_reference_;
  session_->threads = options_.threads;
  session_->arena = options_.arena;
  session_->shared_state = options_.state;
  session_->bytes = needs.bytes;
  session_->fallbacks = fallbacks_;
  session_->entry = options_.entry;
  session_->profile = profile_index_;
  SINTER_RETURN_IF_ERROR(take_pools());
  slots_[slot_count_ - 1].backend = &session_->reference;
  session_->backends = reinterpret_cast<Backend**>(memory.data() + needs.control - list_bytes);
  for (size_t i = 0; i < slot_count_; ++i) {
    if (!slots_[i].used) continue;
    void* own = prepared.allocate(slots_[i].bytes, kBufferAlignment);
    SINTER_RETURN_UNLESS(own != nullptr, kDisagree);
    BumpArena arena({static_cast<std::byte*>(own), slots_[i].bytes});
    SINTER_RETURN_IF_ERROR(slots_[i].backend->open(arena));
    slots_[i].index = static_cast<uint8_t>(session_->backend_count);
    session_->backends[session_->backend_count++] = slots_[i].backend;
  }
  SINTER_RETURN_IF_ERROR(take_devices(needs));
  for (uint32_t d = 0; d < device_count_; ++d) SINTER_RETURN_IF_ERROR(open_queue(d, prepared));
  void* rest = prepared.allocate(0, kBufferAlignment);
  SINTER_RETURN_UNLESS(rest != nullptr, kDisagree);
  prepared_ = BumpArena({static_cast<std::byte*>(rest), needs.prepared - prepared.used()});
  prepared_end_ = static_cast<std::byte*>(rest) + (needs.prepared - prepared.used());
  SINTER_RETURN_IF_ERROR(walk_entry());
  SINTER_RETURN_UNLESS(!control_.exhausted() && !prepared_.exhausted(), kDisagree);
  return ok_status();
}

}  // namespace sinter::detail
