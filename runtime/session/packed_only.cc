// A survey finds the constants that a model's file can lack because packings of this machine replace them.
//
// The walk is that of PackedWeights. A constant is replaced where every step that reads it does so through a
// packing that the file will hold, directly or through the steps of its prepare list, and chooses the same
// packing when it is asked without the data of that constant: a session of the file will have to.
#include <algorithm>
#include <utility>

#include "runtime/session/choose.h"
#include "runtime/session/kept_constants.h"

namespace sinter {
namespace detail {
namespace {

// Marks the constants of a model, for sessions of all entries that find the packed weights.
class ConstantSurvey {
 public:
  enum Mark : uint64_t { kUnread, kReplaced, kKept };

  // `options`: those of sessions, without what packed weights replace. `marks`: of each constant.
  ConstantSurvey(const Model& model, const SessionOptions& options, const PackedState& packed,
                 std::span<uint64_t> marks)
      : entry_(model, options, Entry::For::kPackings), packed_(packed), marks_(marks) {}

  Status run() {
    SINTER_RETURN_IF_ERROR(entry_.resolve());
    Status status;
    for (uint32_t e = 0; e < entry_.packed_entries() && status.ok(); ++e) status = survey(entry_.frame(e));
    chooser_.close_all();
    return status;
  }

 private:
  // Marks a constant, or those that a prepared value is made of; a mark never becomes a lesser one.
  void mark_operand(const Frame& frame, int32_t v, Mark mark) const {
    if (v < 0) return;
    const int64_t number = frame.constant_of(v);
    if (number >= 0) {
      uint64_t& old = marks_[static_cast<size_t>(number)];
      old = std::max<uint64_t>(old, mark);
      return;
    }
    if (!frame.is_prepared(v)) return;
    const fb::Program& program = *frame.program;
    // Few steps before the value's own (verified) make what it is made of.
    const auto first = static_cast<int32_t>(frame.first_prepared());
    uint64_t needed = 1;
    for (int32_t s = v - first; s >= 0 && needed != 0; --s, needed >>= 1) {
      if ((needed & 1) == 0) continue;
      for (const int32_t in : items(program.prepare()->Get(static_cast<uint32_t>(s))->inputs()))
        if (frame.is_prepared(in))
          needed |= uint64_t{1} << (s - (in - first));
        else
          mark_operand(frame, in, mark);
    }
  }

  [[gnu::noinline]] Status survey(const Frame& frame) {
    const fb::Program& program = *frame.program;
    const auto keep = [&](int32_t v) { mark_operand(frame, v, kKept); };
    for (uint32_t v = 0; v < length(program.values()); ++v) {
      const fb::Value& value = frame.value(v);
      if (value.kind() == fb::ValueKind::State) {  // of others the fields are not verified
        if (value.initial() >= 0) marks_[static_cast<size_t>(value.initial())] = kKept;
        keep(value.update());
      }
      for (uint32_t d = 0; d < length(value.bounded_dims()); ++d)
        keep(value.bounded_dims()->Get(d)->length());
    }
    for (uint32_t i = 0; i < length(program.outputs()); ++i)
      keep(static_cast<int32_t>(program.outputs()->Get(i)->value()));
    // Sessions make these in any case (prepare.h).
    for (uint32_t i = kTracked; i < length(program.prepare()); ++i)
      keep(items(program.prepare()->Get(i)->outputs())[0]);
    for (uint32_t s = 0; s < frame.step_count(); ++s) {
      const fb::Step& step = frame.step(s);
      const auto ins = items(step.inputs());
      uint32_t replaced = 0;
      if (!is_control(step) && !is_custom(step))
        if (const Status status = find_replaced(frame, s, &replaced); !status.ok())
          return status.at_step(s, frame.index);
      for (size_t i = 0; i < ins.size(); ++i)
        mark_operand(frame, ins[i], i < 32 && (replaced >> i & 1) != 0 ? kReplaced : kKept);
      for (const uint32_t body : items(step.subprograms()))
        SINTER_RETURN_IF_ERROR(survey(frame.body(s, body)));
    }
    return ok_status();
  }

  // Finds the inputs that a session never reads, because it finds a packing of them, for which it also asks
  // without their data.
  [[gnu::noinline]] Status find_replaced(const Frame& frame, uint32_t s, uint32_t* replaced) {
    const fb::Step& step = frame.step(s);
    if (frame.step_plan(s).elided() || !can_share_packings(step) || frame.place_of(s).memory != 0)
      return ok_status();
    TensorView views[kPackedOperands];
    AttrStorage attributes;
    const OpCall call = frame.make_call(step, views, &attributes);
    Packing packing;
    const auto key_now = [&](Choice* choice, PackedKey* key, bool* packs) {
      Status refusal;
      *choice = {};
      packing = {};
      *key = {};
      SINTER_RETURN_IF_ERROR(chooser_.choose(frame, s, call, choice, &packing, &refusal));
      *packs = packing.bytes > 0 && entry_.key_of(frame, step, choice->slot, packing, key);
      return ok_status();
    };
    Choice choice, without;
    PackedKey key, same;
    bool packs = false;
    SINTER_RETURN_IF_ERROR(key_now(&choice, &key, &packs));
    const PackedEntry* entry = packs ? packed_.find(key) : nullptr;
    if (entry == nullptr || !can_be_stored(*entry)) return ok_status();
    const uint32_t inputs = choice.packed & packing.inputs;
    for (size_t i = 0; i < call.inputs.size() && i < 32; ++i) {
      if ((inputs >> i & 1) == 0 || !call.has_input(i)) continue;
      std::byte* data = std::exchange(call.inputs[i].data, nullptr);
      if (data != nullptr) SINTER_RETURN_IF_ERROR(key_now(&without, &same, &packs));
      if (data == nullptr || (packs && same == key && (without.packed & packing.inputs) == inputs))
        *replaced |= uint32_t{1} << i;
      else
        call.inputs[i].data = data;
    }
    return ok_status();
  }

  Entry entry_;
  Chooser chooser_{entry_};
  const PackedState& packed_;
  std::span<uint64_t> marks_;
};

}  // namespace
}  // namespace detail

using detail::ConstantSurvey;
using detail::KeptConstants;

namespace {

struct Memory {
  std::span<uint64_t> places;
  std::span<uint32_t> order;
};

Memory take(uint32_t constants, BumpArena& arena) {
  auto* places = arena.allocate_array<uint64_t>(constants);
  auto* order = arena.allocate_array<uint32_t>(constants);
  return places != nullptr && order != nullptr ? Memory{{places, constants}, {order, constants}} : Memory{};
}

}  // namespace

size_t PackedOnlyFile::bytes(const Model& model) {
  BumpArena arena;
  take(detail::length(model.state()->root->constants()), arena);
  return align_up(arena.used(), kBufferAlignment);
}

Result<PackedOnlyFile> PackedOnlyFile::create(const Model& of, const PackedWeights& packed,
                                              const SessionOptions& options, std::span<std::byte> memory) {
  SINTER_RETURN_UNLESS(of.valid() && packed.valid() && packed.state()->model == of.state(),
                       invalid("the packed weights are not of this model"));
  const detail::ModelState& model = *of.state();
  SINTER_RETURN_UNLESS(
      detail::length(model.root->profiles()) == 1,
      unsupported("the file is planned for %a targets, whose sessions read its constants; convert the model "
                  "for this machine alone",
                  detail::length(model.root->profiles())));
  const uint32_t count = detail::length(model.root->constants());
  BumpArena arena(memory);
  PackedOnlyFile file;
  file.packed_ = packed.state();
  const auto [places, order] = take(count, arena);
  SINTER_RETURN_UNLESS(order.size() == count,
                       error(Code::kOutOfMemory, "leaving constants out needs %a bytes of memory but got %b",
                             static_cast<int64_t>(12) * count, static_cast<int64_t>(memory.size())));
  SessionOptions every = options;
  every.entry = kEveryEntry;
  every.packed_weights = &packed;
  every.packed_in_file = nullptr;
  every.bindings = {};
  SINTER_RETURN_IF_ERROR(ConstantSurvey(of, every, *packed.state(), places).run());
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const fb::Constant& c = *model.root->constants()->Get(i);
    const bool replaced = places[i] == ConstantSurvey::kReplaced;
    places[i] = KeptConstants::kNoPlace;
    if (detail::is_left_out(c)) continue;
    if (replaced)
      ++file.count_, file.constant_bytes_ += static_cast<uint64_t>(detail::constant_bytes(c));
    else
      order[kept++] = i;
  }
  file.places_ = places;
  file.order_ = order.first(kept);
  const auto& constants = *model.root->constants();
  std::sort(file.order_.begin(), file.order_.end(), [&](uint32_t a, uint32_t b) {
    const fb::Constant &x = *constants.Get(a), &y = *constants.Get(b);
    return x.segment() != y.segment() ? x.segment() < y.segment() : x.offset() < y.offset();
  });
  detail::place_kept(model, file.order_, file.places_);
  return file;
}

Status PackedOnlyFile::write(Status (*put)(void* context, std::span<const std::byte> piece),
                             void* context) const {
  const KeptConstants kept{packed_->model, places_, order_};
  return detail::write_file(*packed_, count_ > 0 ? &kept : nullptr, put, context);
}

}  // namespace sinter
