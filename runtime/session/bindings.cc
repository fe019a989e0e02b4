// Inputs and outputs in the caller's memory: checks that the plan allows it, and that no two buffers overlap.
#include <cstring>

#include "runtime/core/byte_range.h"
#include "runtime/session/creator.h"

namespace sinter::detail {
namespace {

const fb::Placement& root_of(const fb::ProgramPlan& plan, const fb::Placement& member) {
  const fb::Placement* p = &member;
  while (p->alias_of() >= 0) p = find_placement(plan, static_cast<uint32_t>(p->alias_of()));
  return *p;
}

// The memory that the model keeps, and its file.
bool in_model(const ModelState& model, const ByteRange& range) {
  return range.overlaps({&model, model.retained}) || range.overlaps({model.file.data(), model.file.size()});
}

}  // namespace

Status Creator::resolve_bindings() {
  SINTER_RETURN_UNLESS(options_.bindings.size() <= kMaxBindings,
                       invalid("more than %a bindings", kMaxBindings));
  bound_count_ = 0;
  for (const Binding& b : options_.bindings) SINTER_RETURN_IF_ERROR(resolve_binding(b));
  return bound_count_ > 0 ? check_blocks() : ok_status();
}

Status Creator::resolve_binding(const Binding& b) {
  const fb::Program& program = *program_;
  const char* name = b.name != nullptr ? b.name : "";
  const int in = model_.find_input(name, options_.entry), out = model_.find_output(name, options_.entry);
  SINTER_RETURN_UNLESS(
      in >= 0 || out >= 0,
      invalid("a binding names '%s', which is not an input or output of the model", name_of(name)));
  const auto at = [&](Status status) {
    return in >= 0 ? status.at(Where::kInput, in) : status.at(Where::kOutput, out);
  };
  const fb::Port& port = in >= 0 ? *program.inputs()->Get(static_cast<uint32_t>(in))
                                 : *program.outputs()->Get(static_cast<uint32_t>(out));
  const fb::Placement* p = find_placement(*plan_, port.value());
  SINTER_RETURN_UNLESS(
      p != nullptr && p->alias_of() == -1 &&
          program.values()->Get(port.value())->kind() != fb::ValueKind::State,
      at(unsupported("this value cannot be bound: another value shares its planned memory")));
  SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(b.buffer.data()) % kBufferAlignment == 0,
                       at(invalid("a bound buffer must be aligned to %a bytes", kBufferAlignment)));
  const auto bytes = static_cast<size_t>(placed_bytes(program, *p));
  SINTER_RETURN_UNLESS(b.buffer.size() >= bytes,
                       at(invalid("a bound buffer needs %a bytes but has %b", static_cast<int64_t>(bytes),
                                  static_cast<int64_t>(b.buffer.size()))));
  const ByteRange range(b.buffer.data(), bytes);
  for (size_t k = 0; k < bound_count_; ++k) {
    const Binding& other = options_.bindings[k];
    SINTER_RETURN_UNLESS(
        bound_[k] != port.value(),
        at(invalid("'%s' and '%t' are the same value, which is bound twice; remove one binding",
                   name_of(name), name_of(other.name))));
    SINTER_RETURN_UNLESS(!range.overlaps({other.buffer.data(), bound_bytes(k)}),
                         at(invalid("the buffers bound to '%s' and '%t' overlap; give each its own memory",
                                    name_of(name), name_of(other.name))));
  }
  SINTER_RETURN_UNLESS(
      !in_model(*model_.state(), range),
      at(invalid("the buffer bound to '%s' overlaps the model's memory or its file; give it separate memory",
                 name_of(name))));
  uint8_t kind = 0;
  if (b.device != nullptr)
    if (const Status status = resolve_device_binding(b, port.value(), &kind); !status.ok()) return at(status);
  bound_kind_[bound_count_] = kind;
  bound_[bound_count_++] = port.value();
  return ok_status();
}

// Whether a step other than a transfer of this device reads or computes the value, or one that shares its
// memory.
bool Creator::host_uses(uint32_t value, uint32_t device) const {
  const Frame frame = entry_frame();
  for (uint32_t i = 0; i < length(plan_->placements()); ++i) {
    const fb::Placement& p = *plan_->placements()->Get(i);
    if (p.value() != value && root_of(*plan_, p).value() == value) return true;
  }
  for (uint32_t s = 0; s < length(program_->steps()); ++s) {
    const fb::Step& step = *program_->steps()->Get(s);
    bool uses = false;
    for (const auto* list : {step.inputs(), step.outputs()})
      for (const int32_t v : items(list)) uses = uses || v == static_cast<int32_t>(value);
    const StepPlace place = place_of(frame, step, *plan_->steps()->Get(s));
    if (uses && (!place.transfer || place.device != static_cast<int>(device))) return true;
  }
  return false;
}

Status Creator::resolve_device_binding(const Binding& b, uint32_t value, uint8_t* kind) const {
  uint32_t d = 0;
  while (d < device_count_ && std::strcmp(slots_[devices_[d].slot].backend->name(), b.device) != 0) ++d;
  SINTER_RETURN_UNLESS(
      d < device_count_,
      invalid("the plan has nothing in the device memory of '%s', where '%t' is to be bound; "
              "bind it to host memory",
              name_of(b.device), name_of(b.name)));
  SINTER_RETURN_UNLESS(
      !host_uses(value, d),
      unsupported("the host computes or reads '%s'; bind it to host memory", name_of(b.name)));
  *kind = devices_[d].kind;
  return ok_status();
}

// The memory of a placed value.
uint8_t Creator::memory_of(const Frame& frame, const fb::Placement& p) const {
  for (size_t k = 0; frame.parent == nullptr && k < bound_count_; ++k)
    if (bound_kind_[k] != 0 && bound_[k] == p.value()) return bound_kind_[k];
  return frame.kinds[p.region()];
}

// Of the value that the kth binding is for.
size_t Creator::bound_bytes(size_t k) const {
  return static_cast<size_t>(placed_bytes(*program_, *find_placement(*plan_, bound_[k])));
}

// Values that share a bound value's memory move with it: it must fit there, must not outlive a run, and must
// not be written over a bound input.
Status Creator::check_blocks() const {
  const fb::Program& program = *program_;
  const fb::ProgramPlan& plan = *plan_;
  const auto bound_at = [&](const fb::Placement& root) {
    bool bound = false;
    for (size_t k = 0; k < bound_count_; ++k) bound = bound || bound_[k] == root.value();
    return bound;
  };
  for (uint32_t i = 0; i < length(plan.placements()); ++i) {
    const fb::Placement& p = *plan.placements()->Get(i);
    const fb::Placement& root = root_of(plan, p);
    if (!bound_at(root)) continue;
    const uint64_t bytes = placed_bytes(program, root);
    const bool inside = p.offset() >= root.offset() && p.offset() - root.offset() <= bytes &&
                        placed_bytes(program, p) <= bytes - (p.offset() - root.offset());
    SINTER_RETURN_UNLESS(inside && program.values()->Get(p.value())->kind() != fb::ValueKind::State,
                         unsupported("a bound value cannot be bound: it shares its planned memory with value "
                                     "%a, which lives longer or is larger",
                                     p.value()));
  }
  for (uint32_t s = 0; s < length(program.steps()); ++s) {
    if (plan.steps()->Get(s)->elided()) continue;
    for (const int32_t v : items(program.steps()->Get(s)->outputs())) {
      if (v < 0) continue;
      const fb::Placement& root = root_of(plan, *find_placement(plan, static_cast<uint32_t>(v)));
      SINTER_RETURN_UNLESS(!bound_at(root) || root.value() == static_cast<uint32_t>(v) ||
                               program.values()->Get(root.value())->kind() != fb::ValueKind::Input,
                           unsupported("the plan overwrites a bound input").at_step(s, program_index_));
    }
  }
  return ok_status();
}

// `memory`: the bytes that the session takes.
// `what`: the memory's name.
Status Creator::check_memory(std::span<const std::byte> memory, const char* what) const {
  const ByteRange range(memory.data(), memory.size());
  SINTER_RETURN_UNLESS(!in_model(*model_.state(), range),
                       invalid("the %s overlaps the model's memory or its file; give the part from "
                               "retained_bytes() on, or separate memory",
                               name_of(what)));
  for (size_t k = 0; k < bound_count_; ++k)
    SINTER_RETURN_UNLESS(!range.overlaps({options_.bindings[k].buffer.data(), bound_bytes(k)}),
                         invalid("the buffer bound to '%s' overlaps the %t; give it separate memory",
                                 name_of(options_.bindings[k].name), name_of(what)));
  return ok_status();
}

}  // namespace sinter::detail
