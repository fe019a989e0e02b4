// Inputs and outputs in the caller's memory: checks that the plan allows it, and that no two buffers overlap.
#include <algorithm>
#include <cstring>

#include "runtime/core/byte_range.h"
#include "runtime/session/entry.h"

namespace sinter::detail {
namespace {

// The placement whose memory the value is planned in: its own, or the one that it is an alias of.
const fb::Placement& block_of(const fb::ProgramPlan& plan, const fb::Placement& member) {
  const fb::Placement* p = &member;
  while (p->alias_of() >= 0) p = find_placement(plan, static_cast<uint32_t>(p->alias_of()));
  return *p;
}

// Returns whether the range is in the memory that the model keeps, or in its file.
bool in_model(const ModelState& model, const ByteRange& range) {
  return range.overlaps({&model, model.retained}) || range.overlaps({model.file.data(), model.file.size()});
}

}  // namespace

Status Entry::resolve_bindings() {
  SINTER_RETURN_UNLESS(options.bindings.size() <= kMaxBindings,
                       invalid("more than %a bindings", kMaxBindings));
  bound_count_ = 0;
  for (const Binding& b : options.bindings) SINTER_RETURN_IF_ERROR(resolve_binding(b));
  return bound_count_ > 0 ? check_bound_blocks() : ok_status();
}

Status Entry::resolve_binding(const Binding& b) {
  const fb::Program& program = *root.program;
  const char* name = b.name != nullptr ? b.name : "";
  const int in = model.find_input(name, options.entry), out = model.find_output(name, options.entry);
  SINTER_RETURN_UNLESS(
      in >= 0 || out >= 0,
      invalid("a binding names '%s', which is not an input or output of the model", name_of(name)));
  const auto at = [&](Status status) {
    return in >= 0 ? status.at(Where::kInput, in) : status.at(Where::kOutput, out);
  };
  const fb::Port& port = in >= 0 ? *program.inputs()->Get(static_cast<uint32_t>(in))
                                 : *program.outputs()->Get(static_cast<uint32_t>(out));
  const fb::Placement* p = find_placement(*root.plan, port.value());
  SINTER_RETURN_UNLESS(
      p != nullptr && p->alias_of() == -1 && root.value(port.value()).kind() != fb::ValueKind::State,
      at(unsupported("this value cannot be bound: another value shares its planned memory")));
  SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(b.buffer.data()) % kBufferAlignment == 0,
                       at(invalid("a bound buffer must be aligned to %a bytes", kBufferAlignment)));
  const auto bytes = static_cast<size_t>(placed_bytes(program, *p));
  SINTER_RETURN_UNLESS(b.buffer.size() >= bytes,
                       at(invalid("a bound buffer needs %a bytes but has %b", static_cast<int64_t>(bytes),
                                  static_cast<int64_t>(b.buffer.size()))));
  const ByteRange range(b.buffer.data(), bytes);
  for (size_t k = 0; k < bound_count_; ++k) {
    const Binding& other = options.bindings[k];
    SINTER_RETURN_UNLESS(
        bound_[k] != port.value(),
        at(invalid("'%s' and '%t' are the same value, which is bound twice; remove one binding",
                   name_of(name), name_of(other.name))));
    SINTER_RETURN_UNLESS(!range.overlaps({other.buffer.data(), bound_bytes(k)}),
                         at(invalid("the buffers bound to '%s' and '%t' overlap; give each its own memory",
                                    name_of(name), name_of(other.name))));
  }
  SINTER_RETURN_UNLESS(
      !in_model(*model.state(), range),
      at(invalid("the buffer bound to '%s' overlaps the model's memory or its file; give it separate memory",
                 name_of(name))));
  uint8_t kind = 0;
  if (b.device != nullptr)
    if (const Status status = resolve_device_binding(b, port.value(), &kind); !status.ok()) return at(status);
  bound_memory_[bound_count_] = kind;
  bound_[bound_count_++] = port.value();
  return ok_status();
}

// Returns whether a step other than a transfer of this device reads or computes the value, or one that shares
// its memory.
bool Entry::host_uses(uint32_t value, uint8_t kind) const {
  for (uint32_t i = 0; i < length(root.plan->placements()); ++i) {
    const fb::Placement& p = *root.plan->placements()->Get(i);
    if (p.value() != value && block_of(*root.plan, p).value() == value) return true;
  }
  for (uint32_t s = 0; s < root.step_count(); ++s) {
    bool uses = false;
    for (const auto* list : {root.step(s).inputs(), root.step(s).outputs()})
      for (const int32_t v : items(list)) uses = uses || v == static_cast<int32_t>(value);
    const StepPlace place = root.place_of(s);
    if (uses && (!place.transfer || place.memory != kind)) return true;
  }
  return false;
}

Status Entry::resolve_device_binding(const Binding& b, uint32_t value, uint8_t* kind) const {
  uint32_t d = 0;
  while (d < device_count && std::strcmp(backends[devices[d].slot]->name(), b.device) != 0) ++d;
  SINTER_RETURN_UNLESS(
      d < device_count,
      invalid("the plan has nothing in the device memory of '%s', where '%t' is to be bound; "
              "bind it to host memory",
              name_of(b.device), name_of(b.name)));
  *kind = devices[d].kind;
  SINTER_RETURN_UNLESS(
      !host_uses(value, *kind),
      unsupported("the host computes or reads '%s'; bind it to host memory", name_of(b.name)));
  return ok_status();
}

int Entry::binding_of(uint32_t value) const {
  const auto* end = bound_ + bound_count_;
  const auto* at = std::find(bound_ + 0, end, value);
  return at != end ? static_cast<int>(at - bound_) : -1;
}

uint8_t Entry::memory_of(const fb::Placement& p) const {
  const int k = binding_of(p.value());
  return k >= 0 && bound_memory_[k] != 0 ? bound_memory_[k] : root.kinds[p.region()];
}

std::byte* Entry::bound_address(const fb::Placement& p) const {
  if (bound_count_ == 0) return nullptr;
  const fb::Placement& block = block_of(*root.plan, p);
  const int k = binding_of(block.value());
  return k >= 0 ? options.bindings[static_cast<size_t>(k)].buffer.data() + (p.offset() - block.offset())
                : nullptr;
}

// The bytes of the value that the kth binding is for.
size_t Entry::bound_bytes(size_t k) const {
  return static_cast<size_t>(placed_bytes(*root.program, *find_placement(*root.plan, bound_[k])));
}

// Refuses values that share a bound value's memory, and so move with it, unless they fit there, do not
// outlive a run, and are not written over a bound input.
Status Entry::check_bound_blocks() const {
  const fb::Program& program = *root.program;
  const fb::ProgramPlan& plan = *root.plan;
  for (uint32_t i = 0; i < length(plan.placements()); ++i) {
    const fb::Placement& p = *plan.placements()->Get(i);
    const fb::Placement& block = block_of(plan, p);
    if (binding_of(block.value()) < 0) continue;
    const uint64_t bytes = placed_bytes(program, block);
    const bool inside = p.offset() >= block.offset() && p.offset() - block.offset() <= bytes &&
                        placed_bytes(program, p) <= bytes - (p.offset() - block.offset());
    SINTER_RETURN_UNLESS(inside && root.value(p.value()).kind() != fb::ValueKind::State,
                         unsupported("a bound value cannot be bound: it shares its planned memory with value "
                                     "%a, which lives longer or is larger",
                                     p.value()));
  }
  for (uint32_t s = 0; s < root.step_count(); ++s) {
    if (root.step_plan(s).elided()) continue;
    for (const int32_t v : items(root.step(s).outputs())) {
      if (v < 0) continue;
      const uint32_t block = block_of(plan, *find_placement(plan, static_cast<uint32_t>(v))).value();
      SINTER_RETURN_UNLESS(binding_of(block) < 0 || block == static_cast<uint32_t>(v) ||
                               root.value(block).kind() != fb::ValueKind::Input,
                           unsupported("the plan overwrites a bound input").at_step(s, root.index));
    }
  }
  return ok_status();
}

Status Entry::check_memory(std::span<const std::byte> memory, const char* what) const {
  const ByteRange range(memory.data(), memory.size());
  SINTER_RETURN_UNLESS(!in_model(*model.state(), range),
                       invalid("the %s overlaps the model's memory or its file; give the part from "
                               "retained_bytes() on, or separate memory",
                               name_of(what)));
  for (size_t k = 0; k < bound_count_; ++k)
    SINTER_RETURN_UNLESS(!range.overlaps({options.bindings[k].buffer.data(), bound_bytes(k)}),
                         invalid("the buffer bound to '%s' overlaps the %t; give it separate memory",
                                 name_of(options.bindings[k].name), name_of(what)));
  return ok_status();
}

}  // namespace sinter::detail
