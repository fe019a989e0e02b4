// Which constants are packed where. A constant that several steps read in the same packed form is packed
// once: by PackedWeights, or by the first of these steps.
//
// The first pass of a creation may be without memory for a table of what has been packed. A bit for each
// constant states whether a step has packed it. Where it is set, earlier steps that read that constant are
// asked for their packing again. The search begins behind its last result: steps that repeat others, as
// stripes do, repeat them in order.
#include <algorithm>
#include <cstring>

#include "runtime/session/creator.h"

namespace sinter::detail {
namespace {

// Steps that read the same constant in another form, before the search for an equal one is given up.
constexpr int kMostUnlike = 32;

constexpr int64_t kAbsent = INT64_MAX;  // the number of an optional operand that a step lacks

bool packs_input(const Packing& packing, size_t i) { return i < 32 && (packing.inputs >> i & 1) != 0; }

uint64_t mixed(uint64_t h, int64_t v) {
  h = (h ^ static_cast<uint64_t>(v)) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

}  // namespace

bool PackedKey::operator==(const PackedKey& other) const {
  return packing.bytes == other.packing.bytes && packing.inputs == other.packing.inputs &&
         std::equal(std::begin(packing.parameters), std::end(packing.parameters),
                    std::begin(other.packing.parameters)) &&
         std::equal(std::begin(constants), std::end(constants), std::begin(other.constants)) &&
         std::strcmp(backend, other.backend) == 0;
}

uint64_t PackedKey::hash() const {
  uint64_t h = packing.bytes;
  for (const int64_t v : packing.parameters) h = mixed(h, v);
  for (const int64_t v : constants) h = mixed(h, v);
  return h;
}

const PackedEntry* PackedState::find(const PackedKey& key) const {
  const uint64_t hash = key.hash();
  const auto* at =
      std::lower_bound(entries.data(), entries.data() + entries.size(), hash,
                       [](const PackedEntry& entry, uint64_t value) { return entry.hash < value; });
  for (; at != entries.data() + entries.size() && at->hash == hash; ++at)
    if (at->key == key) return at;
  return nullptr;
}

// The key to search for, and the entry that was found.
struct Creator::Search {
  PackedKey key;
  Op op = Op::kCopy;
  int device = -1;   // in whose memory it is packed
  size_t input = 0;  // the first of Packing::inputs
  int unlike = 0;
  bool found = false;
  uint32_t program = 0, step = 0;
};

// A number for an operand: the model's constant, or, negative, a value of a program.
int64_t Creator::constant_of(const Frame& frame, int32_t v) const {
  const fb::Value& value = *frame.program->values()->Get(static_cast<uint32_t>(v));
  if (value.kind() == fb::ValueKind::Constant) return value.constant();
  if (value.kind() != fb::ValueKind::Input || frame.parent == nullptr ||
      find_placement(*frame.plan, static_cast<uint32_t>(v)) != nullptr)
    return -1 - (static_cast<int64_t>(frame.index) << 32) - v;
  return constant_of(*frame.parent, static_cast<int32_t>(outer_of(frame, static_cast<uint32_t>(v))));
}

namespace {

// The number of the first prepared value.
int32_t first_prepared(const fb::Program& program) { return items(program.prepare()->Get(0)->outputs())[0]; }

bool same_attributes(const fb::Step& a, const fb::Step& b) {
  const auto same = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  return a.op() == b.op() && a.op_version() == b.op_version() && same(items(a.ints()), items(b.ints())) &&
         same(items(a.floats()), items(b.floats())) && same(items(a.bytes()), items(b.bytes()));
}

// Whether prepare step `s` of both programs computes the same from the same constants. The chain ends within
// kMaxPrepareChain steps (verified).
bool same_prepared(const fb::Program& a, const fb::Program& b, uint32_t s) {
  const int64_t shift = int64_t{first_prepared(b)} - first_prepared(a);
  const uint32_t begin = s < kMaxPrepareChain ? 0 : s + 1 - kMaxPrepareChain;
  uint64_t needed = 1;  // bit i: step s - i
  for (uint32_t back = 0; s - back >= begin && needed >> back != 0; ++back) {
    if ((needed >> back & 1) != 0) {
      const fb::Step &x = *a.prepare()->Get(s - back), &y = *b.prepare()->Get(s - back);
      const auto of_x = items(x.inputs()), of_y = items(y.inputs());
      if (!same_attributes(x, y) || of_x.size() != of_y.size()) return false;
      for (size_t i = 0; i < of_x.size(); ++i) {
        if (of_x[i] < 0 || of_y[i] < 0) {
          if (of_x[i] != of_y[i]) return false;
          continue;
        }
        const fb::Value &v = *a.values()->Get(static_cast<uint32_t>(of_x[i])),
                        &w = *b.values()->Get(static_cast<uint32_t>(of_y[i]));
        if (v.kind() != w.kind() || v.constant() != w.constant()) return false;
        if (v.kind() != fb::ValueKind::Prepared) continue;
        if (of_x[i] + shift != of_y[i]) return false;
        needed |= uint64_t{1} << (s - static_cast<uint32_t>(of_x[i] - first_prepared(a)));
      }
    }
    if (s == back) break;
  }
  return true;
}

}  // namespace

// The number of an operand that is the same in every entry that reads the same: a prepared value has that of
// the first entry whose prepare step of the same place makes it from the same constants.
int64_t Creator::shared_number_of(const Creator& self, const Frame& frame, int32_t v) {
  const int64_t own = self.constant_of(frame, v);
  if (own >= 0) return own;
  const auto index = static_cast<uint32_t>((-1 - own) >> 32);
  const int64_t value = (-1 - own) & UINT32_MAX;
  const auto& programs = *self.model_.state()->root->programs();
  const fb::Program& program = *programs.Get(index);
  const auto entries = items(self.profile_->entries());
  if (program.values()->Get(static_cast<uint32_t>(value))->kind() != fb::ValueKind::Prepared ||
      std::find(entries.begin(), entries.end(), index) == entries.end())
    return own;
  const auto s = static_cast<uint32_t>(value - first_prepared(program));
  for (const uint32_t e : entries) {
    if (e == index) break;
    const fb::Program& other = *programs.Get(e);
    if (s < length(other.prepare()) && same_prepared(program, other, s))
      return -1 - (static_cast<int64_t>(e) << 32) - (first_prepared(other) + int64_t{s});
  }
  return own;
}

// False: the packing reads more operands than a key has room for, and is not shared.
bool Creator::key_of(const Frame& frame, const fb::Step& step, const Choice& choice, const Packing& packing,
                     PackedKey* key) const {
  const auto ins = items(step.inputs());
  size_t count = 0;
  key->backend = slots_[choice.slot].backend->name();
  key->packing = packing;
  for (size_t i = 0; i < 32; ++i) {
    if (!packs_input(packing, i)) continue;
    if (count == kPackedInputs) return false;
    key->constants[count++] = i < ins.size() && ins[i] >= 0 ? number_of(frame, ins[i]) : kAbsent;
  }
  return count > 0 && key->constants[0] != kAbsent;
}

// What is packed in host memory and stored in the model's file; null: nothing, or files are not searched.
const std::byte* Creator::find_in_file(const PackedKey& key, const Choice& choice) const {
  if (options_.packed_in_file == nullptr || choice.device >= 0) return nullptr;
  return options_.packed_in_file->find(*model_.state(), key, *slots_[choice.slot].backend);
}

// Before a pass.
void Creator::forget_packed() {
  packed_bytes_ = 0;
  packed_count_ = 0;
  std::fill(std::begin(has_packed_), std::end(has_packed_), 0);
}

// Measuring: where the packed constants of step `s` come from.
[[gnu::noinline]] Status Creator::find_packed(Frame& frame, uint32_t s, const Packing& packing,
                                              Choice* choice) {
  if (packing.bytes == 0) return ok_status();
  const fb::Step& step = *frame.program->steps()->Get(s);
  choice->from = Packed::kHere;
  choice->packed_bytes = packing.bytes;
  choice->packing_inputs = packing.inputs;
  Search search;
  if (!key_of(frame, step, *choice, packing, &search.key)) return ok_status();
  search.device = choice->device;
  if (options_.packed_weights != nullptr) {
    const PackedEntry* entry = options_.packed_weights->state()->find(search.key);
    if (entry != nullptr) return choice->shared = entry->data, choice->from = Packed::kShared, ok_status();
  }
  if (!packs_only_) choice->shared = find_in_file(search.key, *choice);  // PackedWeights have an entry for it
  if (choice->shared != nullptr) return choice->from = Packed::kShared, ok_status();
  SINTER_RETURN_IF_ERROR(find_earlier(frame, s, &search));
  if (search.found) {
    choice->from = Packed::kEarlier;
    choice->earlier_program = search.program, choice->earlier_step = search.step;
  }
  return ok_status();
}

// The step that has packed the same, among those that the walk met before step `s`.
Status Creator::find_earlier(Frame& frame, uint32_t s, Search* search) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  const auto bit = static_cast<uint64_t>(search->key.constants[0]) % kPackedBits;
  uint64_t& word = has_packed_[bit / 64];
  const bool new_constant = (word >> (bit % 64) & 1) == 0;
  word |= uint64_t{1} << (bit % 64);
  // compare_step() has no room for more operands.
  if (new_constant || length(step.inputs()) + length(step.outputs()) > kPackedOperands) return ok_status();
  search->op = step_op(step);
  while (!packs_input(search->key.packing, search->input)) ++search->input;
  const uint32_t cursor = std::min(frame.cursor, s);
  SINTER_RETURN_IF_ERROR(search_steps(frame, cursor, s, search));
  SINTER_RETURN_IF_ERROR(search_steps(frame, 0, cursor, search));
  if (search->found && search->program == frame.index) frame.cursor = search->step + 1;
  for (const Frame* body = &frame; body->parent != nullptr; body = body->parent) {
    for (const uint32_t branch : items(body->owner->subprograms())) {
      if (branch == body->index) break;
      const Frame before = body_of(*body->parent, body->owner_index, branch);
      SINTER_RETURN_IF_ERROR(search_steps(before, 0, length(before.program->steps()), search));
    }
    SINTER_RETURN_IF_ERROR(search_steps(*body->parent, 0, body->owner_index, search));
  }
  return search_before_ != nullptr ? (this->*search_before_)(search) : ok_status();
}

// Those that were packed for before this one.
[[gnu::noinline]] Status Creator::search_entries(Search* search) {
  const uint32_t current = entry_;
  Status status;
  for (uint32_t e = 0; e < current && status.ok() && !search->found; ++e) {
    enter(e), find_kinds();
    const Frame frame = entry_frame();
    status = search_steps(frame, 0, length(frame.program->steps()), search);
  }
  enter(current), find_kinds();
  return status;
}

Status Creator::search_steps(const Frame& frame, uint32_t begin, uint32_t end, Search* search) {
  for (uint32_t s = begin; s < end && !search->found && search->unlike < kMostUnlike; ++s)
    SINTER_RETURN_IF_ERROR(search_step(frame, s, search));
  return ok_status();
}

Status Creator::search_step(const Frame& frame, uint32_t s, Search* search) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
  if (plan.elided()) return ok_status();
  if (is_control(step)) {
    for (const uint32_t program : items(step.subprograms())) {
      const Frame body = body_of(frame, s, program);
      SINTER_RETURN_IF_ERROR(search_steps(body, 0, length(body.program->steps()), search));
    }
    return ok_status();
  }
  const auto ins = items(step.inputs());
  if (step_op(step) != search->op || search->input >= ins.size() || ins[search->input] < 0 ||
      ins.size() + length(step.outputs()) > kPackedOperands ||
      number_of(frame, ins[search->input]) != search->key.constants[0] ||
      place_of(frame, step, plan).device != search->device)
    return ok_status();
  SINTER_RETURN_IF_ERROR(compare_step(frame, step, plan, search));
  if (search->found) search->program = frame.index, search->step = s;
  return ok_status();
}

[[gnu::noinline]] Status Creator::compare_step(const Frame& frame, const fb::Step& step,
                                               const fb::StepPlan& plan, Search* search) {
  TensorView views[kPackedOperands];
  AttrStorage attributes;
  Choice choice;
  Packing packing;
  Status refusal;
  SINTER_RETURN_IF_ERROR(choose_at(place_of(frame, step, plan), make_call(frame, step, views, &attributes),
                                   plan, &choice, &packing, &refusal));
  PackedKey key;
  search->found = packing.bytes > 0 && key_of(frame, step, choice, packing, &key) && key == search->key;
  search->unlike += !search->found;
  return ok_status();
}

// The backend of a step, and how it packs constants.
Status Creator::choose_at(StepPlace place, const OpCall& call, const fb::StepPlan& plan, Choice* choice,
                          Packing* packing, Status* refusal) {
  return place.device >= 0 ? choose_on(devices_[place.device], call, plan, choice, packing)
                           : choose(call, plan, choice, packing, refusal);
}

// Building: has the backend pack a step's constants.
Status Creator::pack(const Choice& choice, const OpCall& call, std::span<std::byte> bytes, std::byte* scratch,
                     ThreadPool* threads) const {
  for (size_t i = 0; i < call.inputs.size() && i < 32; ++i)
    SINTER_RETURN_UNLESS(
        (choice.packing_inputs >> i & 1) == 0 || !call.has_input(i) || call.in(i).data != nullptr,
        error(Code::kInternal, "operand %a must be packed but has no data", static_cast<int64_t>(i)));
  Backend& backend = *slots_[choice.slot].backend;
  if (choice.device < 0) return backend.pack(call, bytes, threads);
  return backend.pack_on_device(call, bytes, *queues_[choice.device], {scratch, choice.scratch});
}

// Building: where the packed constants of step `s` are.
void Creator::note_packed(const Frame& frame, uint32_t s, std::byte* data, PackedAt* at) {
  PackedAt*& list = packed_at_[s % kPackedLists];
  *at = {frame.index, s, data, list};
  list = at;
}

// Those of the step that was found while measuring; null while measuring.
std::byte* Creator::packed_earlier(const Choice& choice) const {
  const PackedAt* at = packed_at_[choice.earlier_step % kPackedLists];
  while (at != nullptr && (at->program != choice.earlier_program || at->step != choice.earlier_step))
    at = at->next;
  return at != nullptr ? at->data : nullptr;
}

}  // namespace sinter::detail
