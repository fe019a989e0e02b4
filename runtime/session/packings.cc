// The first pass of a creation may be without memory for a table of what has been packed. A bit for each
// constant states whether a step has packed it. Where it is set, earlier steps that read that constant are
// asked for their packing again. The search begins behind its last result: steps that repeat others, as
// stripes do, repeat them in order.
#include "runtime/session/packings.h"

#include <algorithm>

namespace sinter::detail {
namespace {

// Steps that read the same constant in another form, before the search for an equal one is given up.
constexpr int kMostUnlike = 32;

}  // namespace

// The key to search for, and the step that was found.
struct Packings::Search {
  PackedKey key;
  Op op = Op::kCopy;
  uint8_t memory = 0;  // that it is packed in
  size_t input = 0;    // the first of Packing::inputs
  int unlike = 0;
  bool found = false;
  uint32_t program = 0, step = 0;
};

const std::byte* Packings::find_in_file(const PackedKey& key, const Choice& choice) const {
  if (entry_.options.packed_in_file == nullptr || choice.memory != 0) return nullptr;
  return entry_.options.packed_in_file->find(*entry_.model.state(), key, *entry_.backends[choice.slot]);
}

void Packings::begin(uint32_t entries_before) {
  entries_before_ = entries_before;
  if (entries_before > 0) return;
  packed_bytes = 0;
  std::fill(std::begin(has_packed_), std::end(has_packed_), 0);
}

[[gnu::noinline]] Status Packings::find(Frame& frame, uint32_t s, const Packing& packing, Choice* choice) {
  if (packing.bytes == 0) return ok_status();
  const fb::Step& step = frame.step(s);
  choice->from = Choice::Packed::kHere;
  choice->packed_bytes = packing.bytes;
  choice->packing_inputs = packing.inputs;
  Search search;
  if (!entry_.key_of(frame, step, choice->slot, packing, &search.key)) return ok_status();
  search.memory = choice->memory;
  if (entry_.options.packed_weights != nullptr)
    if (const PackedEntry* found = entry_.options.packed_weights->state()->find(search.key); found != nullptr)
      choice->shared = found->data;
  if (choice->shared == nullptr && !entry_.packs_only)  // PackedWeights have an entry for what is in the file
    choice->shared = find_in_file(search.key, *choice);
  if (choice->shared != nullptr) return choice->from = Choice::Packed::kShared, ok_status();
  SINTER_RETURN_IF_ERROR(find_earlier(frame, s, &search));
  if (search.found) {
    choice->from = Choice::Packed::kEarlier;
    choice->earlier_program = search.program, choice->earlier_step = search.step;
  }
  return ok_status();
}

// Finds a step that has packed the same, among those that the walk met before step `s`.
Status Packings::find_earlier(Frame& frame, uint32_t s, Search* search) {
  const auto bit = static_cast<uint64_t>(search->key.constants[0]) % kPackedBits;
  uint64_t& word = has_packed_[bit / 64];
  const bool new_constant = (word >> (bit % 64) & 1) == 0;
  word |= uint64_t{1} << (bit % 64);
  if (new_constant || !can_share_packings(frame.step(s))) return ok_status();
  search->op = step_op(frame.step(s));
  while (!search->key.packs(search->input)) ++search->input;
  const uint32_t cursor = std::min(frame.cursor, s);
  SINTER_RETURN_IF_ERROR(search_steps(frame, cursor, s, search));
  SINTER_RETURN_IF_ERROR(search_steps(frame, 0, cursor, search));
  if (search->found && search->program == frame.index) frame.cursor = search->step + 1;
  for (const Frame* body = &frame; body->parent != nullptr; body = body->parent) {
    for (const uint32_t branch : items(body->parent->step(body->owner).subprograms())) {
      if (branch == body->index) break;
      const Frame before = body->parent->body(body->owner, branch);
      SINTER_RETURN_IF_ERROR(search_steps(before, 0, before.step_count(), search));
    }
    SINTER_RETURN_IF_ERROR(search_steps(*body->parent, 0, body->owner, search));
  }
  for (uint32_t e = 0; e < entries_before_ && !search->found; ++e) {
    const Frame before = entry_.frame(e);
    SINTER_RETURN_IF_ERROR(search_steps(before, 0, before.step_count(), search));
  }
  return ok_status();
}

Status Packings::search_steps(const Frame& frame, uint32_t begin, uint32_t end, Search* search) {
  for (uint32_t s = begin; s < end && !search->found && search->unlike < kMostUnlike; ++s)
    SINTER_RETURN_IF_ERROR(search_step(frame, s, search));
  return ok_status();
}

Status Packings::search_step(const Frame& frame, uint32_t s, Search* search) {
  const fb::Step& step = frame.step(s);
  if (frame.step_plan(s).elided()) return ok_status();
  if (is_control(step)) {
    for (const uint32_t program : items(step.subprograms())) {
      const Frame body = frame.body(s, program);
      SINTER_RETURN_IF_ERROR(search_steps(body, 0, body.step_count(), search));
    }
    return ok_status();
  }
  const auto ins = items(step.inputs());
  if (step_op(step) != search->op || search->input >= ins.size() || ins[search->input] < 0 ||
      !can_share_packings(step) || entry_.number_of(frame, ins[search->input]) != search->key.constants[0] ||
      frame.place_of(s).memory != search->memory)
    return ok_status();
  SINTER_RETURN_IF_ERROR(compare_step(frame, s, search));
  if (search->found) search->program = frame.index, search->step = s;
  return ok_status();
}

[[gnu::noinline]] Status Packings::compare_step(const Frame& frame, uint32_t s, Search* search) {
  const fb::Step& step = frame.step(s);
  TensorView views[kPackedOperands];
  AttrStorage attributes;
  Choice choice;
  Packing packing;
  Status refusal;
  SINTER_RETURN_IF_ERROR(
      chooser_.choose(frame, s, frame.make_call(step, views, &attributes), &choice, &packing, &refusal));
  PackedKey key;
  search->found =
      packing.bytes > 0 && entry_.key_of(frame, step, choice.slot, packing, &key) && key == search->key;
  search->unlike += !search->found;
  return ok_status();
}

Status Packings::pack(const Choice& choice, const OpCall& call, std::span<std::byte> bytes,
                      std::byte* scratch, ThreadPool* threads) const {
  for (size_t i = 0; i < call.inputs.size() && i < 32; ++i)
    SINTER_RETURN_UNLESS(
        (choice.packing_inputs >> i & 1) == 0 || !call.has_input(i) || call.in(i).data != nullptr,
        error(Code::kInternal, "operand %a must be packed but has no data", static_cast<int64_t>(i)));
  Backend& backend = *entry_.backends[choice.slot];
  if (choice.memory == 0) return backend.pack(call, bytes, threads);
  return backend.pack_on_device(call, bytes, *devices_.of(choice.memory).queue, {scratch, choice.scratch});
}

Status Packings::take(const Frame& frame, uint32_t s, const Choice& choice,
                      std::span<const std::byte>* packed, std::span<std::byte>* fresh) {
  if (choice.from == Choice::Packed::kNone) return ok_status();
  if (choice.from == Choice::Packed::kShared)
    return *packed = {choice.shared, choice.packed_bytes}, ok_status();
  auto* note = memory_.control.allocate_array<PackedAt>(1);
  const bool here = choice.from == Choice::Packed::kHere;
  void* at = here ? arena(choice).allocate(choice.packed_bytes, kBufferAlignment) : packed_earlier(choice);
  if (here && choice.memory == 0) packed_bytes += choice.packed_bytes;
  if (!memory_.building()) return ok_status();
  SINTER_RETURN_UNLESS(note != nullptr && at != nullptr, kDisagree);
  const std::span<std::byte> bytes(static_cast<std::byte*>(at), choice.packed_bytes);
  PackedAt*& list = packed_at_[s % kPackedLists];
  *note = {frame.index, s, bytes.data(), list};
  list = note;
  *packed = bytes;
  if (here) *fresh = bytes;
  return ok_status();
}

// Returns the packed constants of the step that was found while measuring; null while measuring.
std::byte* Packings::packed_earlier(const Choice& choice) const {
  const PackedAt* at = packed_at_[choice.earlier_step % kPackedLists];
  while (at != nullptr && (at->program != choice.earlier_program || at->step != choice.earlier_step))
    at = at->next;
  return at != nullptr ? at->data : nullptr;
}

}  // namespace sinter::detail
