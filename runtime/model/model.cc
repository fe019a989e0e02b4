// Opening a model: the parts that could change are copied, digests are checked, then everything else.
#include "sinter/model.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/backend/target.h"
#include "runtime/model/names.h"
#include "runtime/model/structure_arena.h"
#include "runtime/model/verify.h"
#include "runtime/signature/signature.h"

namespace sinter {

using detail::items;
using detail::length;
using detail::ModelState;
using detail::text;

namespace detail {
SINTER_ON_32(ModelState, 56, 8);
SINTER_ON_32(format::Segment, 64, 8);
}  // namespace detail

namespace {

// The pieces of the memory that open() is given. The last one, scratch, is free afterwards.
struct Layout {
  ModelState* state;
  format::Segment* segments;
  std::byte* head;
  std::byte* flatbuffer;
  size_t retained;
  std::byte* scratch;

  // Returns the scratch of the verifier.
  static size_t scratch_bytes(const format::Header& h, bool sealed = kSealed) {
    return sealed ? 0 : static_cast<size_t>(h.scratch_bytes);
  }

  Layout(const format::Header& h, bool copy, detail::StructureArena& arena, bool sealed = kSealed)
      : state(arena.allocate_array<ModelState>(1)),
        segments(arena.allocate_array<format::Segment>(h.segment_count)),
        head(static_cast<std::byte*>(
            arena.allocate(static_cast<size_t>(format::head_bytes(h)), kBufferAlignment))),
        flatbuffer(static_cast<std::byte*>(
            arena.allocate(copy ? static_cast<size_t>(h.flatbuffer_bytes) : 0, kBufferAlignment))),
        retained(align_up(arena.used(), kBufferAlignment)),
        scratch(static_cast<std::byte*>(arena.allocate(scratch_bytes(h, sealed), kBufferAlignment))) {}
};

// Refuses a key that this build cannot check, so that it is not taken for one that was checked.
Status check_key(const OpenOptions& options) {
  if (options.public_key.data() == nullptr && options.public_key.empty()) return ok_status();
  SINTER_RETURN_UNLESS(signature::available(), unsupported("this build of Sinter cannot check signatures"));
  SINTER_RETURN_UNLESS(
      options.public_key.size() == signature::kPublicKeyBytes,
      invalid("a public key has %b bytes, not %a", static_cast<int64_t>(options.public_key.size()),
              static_cast<int64_t>(signature::kPublicKeyBytes)));
  return ok_status();
}

// Returns a header whose sizes are plausible, as far as they bear on memory, before anything is verified.
Result<format::Header> plausible_header(std::span<const std::byte> file) {
  const Result<format::Header> header = format::read_header(file);
  if (!header.ok()) return header;
  const format::Header& h = header.value();
  SINTER_RETURN_UNLESS(h.flatbuffer_bytes <= file.size() && h.flatbuffer_bytes < (uint64_t{1} << 31) - 1,
                       corrupt("the file is shorter than its header states"));
  // The structure needs scratch of a small multiple of its size.
  SINTER_RETURN_UNLESS(h.scratch_bytes <= 512 * h.flatbuffer_bytes + 65536,
                       corrupt("the scratch size is out of range"));
  return header;
}

// Runs FlatBuffers' own verifier, on a frame of its own.
[[maybe_unused, gnu::noinline]] Status verify_structure(std::span<const std::byte> structure) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(structure.data()), structure.size(),
                                 /*max_depth=*/16,
                                 /*max_tables=*/static_cast<flatbuffers::uoffset_t>(structure.size() / 4));
  SINTER_RETURN_UNLESS(fb::VerifyModelBuffer(verifier), corrupt("the model's structure is damaged"));
  return ok_status();
}

const fb::Program* program_of(const ModelState* state, uint32_t i) { return state->root->programs()->Get(i); }

// Returns an entry of the first profile; the other profiles have the same inputs and outputs.
const fb::Program* entry_of(const ModelState* state, uint32_t entry) {
  return program_of(state, items(state->root->profiles()->Get(0)->entries())[entry]);
}

PortInfo port_info(const fb::Program& program, const fb::Port& port) {
  const fb::Value& value = *program.values()->Get(port.value());
  return {text(port.name()), static_cast<DType>(value.dtype()), detail::port_dims(port, value), value.scale(),
          value.zero_point()};
}

int find_port(const flatbuffers::Vector<flatbuffers::Offset<fb::Port>>* ports, const char* name) {
  for (uint32_t i = 0; i < length(ports); ++i)
    if (std::strcmp(text(ports->Get(i)->name()), name) == 0) return static_cast<int>(i);
  return -1;
}

// Copies the head, and the structure where the file can change, to their places, and checks the signature and
// the digests. `h` is the header as it was when the places were taken. Its frame is gone while the model is
// verified.
[[gnu::noinline]] Status read_structure(std::span<const std::byte> file, const OpenOptions& options,
                                        const format::Header& h, const Layout& at,
                                        std::span<const std::byte>* out) {
  const std::span<std::byte> head(at.head, static_cast<size_t>(format::head_bytes(h)));
  std::memcpy(head.data(), file.data(), head.size());
  // The signature comes first, and on the copy: nothing is parsed that the key's owner did not sign.
  const bool keyed = !options.public_key.empty();
  if (keyed || (options.check_digests && h.signature_bytes != 0))
    SINTER_RETURN_IF_ERROR(format::check_signature(head, options.public_key));
  const Result<format::Envelope> envelope = format::read_envelope(file, head);
  if (!envelope.ok()) return envelope.status();
  const format::Envelope& e = envelope.value();
  SINTER_RETURN_UNLESS(e.header.flatbuffer_bytes == h.flatbuffer_bytes &&
                           e.header.scratch_bytes == h.scratch_bytes &&
                           e.header.segment_count == h.segment_count,
                       corrupt("the file changed while it was read"));
  for (uint32_t i = 0; i < h.segment_count; ++i) at.segments[i] = e.segment(i);
  std::span<const std::byte> structure = e.flatbuffer;
  if (!options.stable) {
    std::memcpy(at.flatbuffer, structure.data(), structure.size());
    structure = {at.flatbuffer, structure.size()};
  }
  if (keyed || options.check_digests || kSealed) {
    SINTER_RETURN_IF_ERROR(format::check_structure(structure, e));
    SINTER_RETURN_IF_ERROR(format::check_segments(file, e));
  }
  *out = structure;
  return ok_status();
}

}  // namespace

Result<size_t> Model::open_bytes(std::span<const std::byte> file, const OpenOptions& options) {
  SINTER_RETURN_IF_ERROR(check_key(options));
  const Result<format::Header> header = plausible_header(file);
  if (!header.ok()) return header.status();
  detail::StructureArena arena;
  Layout{header.value(), !options.stable, arena};
  SINTER_RETURN_UNLESS(!arena.exhausted(), corrupt("the file is too large for this machine"));
  return arena.used();
}

Result<detail::OpenNeeds> detail::open_needs(std::span<const std::byte> file, const OpenOptions& options,
                                             Pointers pointers) {
  const Result<format::Header> header = plausible_header(file);
  if (!header.ok()) return header.status();
  StructureArena arena(pointers), sealed_arena(pointers);
  const Layout open(header.value(), !options.stable, arena, false);
  Layout{header.value(), !options.stable, sealed_arena, true};
  SINTER_RETURN_UNLESS(!arena.exhausted(), corrupt("the file is too large for this machine"));
  return OpenNeeds{arena.used(), open.retained, sealed_arena.used()};
}

Result<Model> Model::open(std::span<const std::byte> file, std::span<std::byte> memory,
                          const OpenOptions& options) {
  SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(file.data()) % kBufferAlignment == 0 &&
                           reinterpret_cast<uintptr_t>(memory.data()) % kBufferAlignment == 0,
                       invalid("the file and the memory must be aligned to %a bytes", kBufferAlignment));
  SINTER_RETURN_IF_ERROR(check_key(options));
  if constexpr (is_built(Op::kCustom)) SINTER_RETURN_IF_ERROR(check_custom_ops(options.custom_ops));
  const Result<format::Header> header = plausible_header(file);
  if (!header.ok()) return header.status();
  const format::Header& h = header.value();
  const Result<size_t> needed = open_bytes(file, options);
  if (!needed.ok()) return needed.status();
  SINTER_RETURN_UNLESS(memory.size() >= needed.value(),
                       error(Code::kOutOfMemory, "opening needs %a bytes of memory but got %b",
                             static_cast<int64_t>(needed.value()), static_cast<int64_t>(memory.size())));
  detail::StructureArena arena(memory);
  const Layout at(h, !options.stable, arena);
  SINTER_RETURN_UNLESS(!arena.exhausted(), corrupt("the file changed while it was read"));

  std::span<const std::byte> structure;
  SINTER_RETURN_IF_ERROR(read_structure(file, options, h, at, &structure));
  const auto* bytes = reinterpret_cast<const uint8_t*>(structure.data());
  SINTER_RETURN_UNLESS(structure.size() >= 16, corrupt("the model has no structure"));
  if constexpr (!kSealed) SINTER_RETURN_IF_ERROR(verify_structure(structure));

  ModelState& state = *at.state;
  state.root = fb::GetModel(bytes);
  state.flatbuffer = structure.data();
  state.file = file;
  state.segments = {at.segments, h.segment_count};
  state.kernels = options.kernels;
  state.custom_ops = options.custom_ops;
  state.flatbuffer_bytes = structure.size();
  state.retained = at.retained;
  if constexpr (!kSealed)
    SINTER_RETURN_IF_ERROR(detail::verify(state, {at.scratch, Layout::scratch_bytes(h)}));
  SINTER_RETURN_IF_ERROR(detail::check_built(state));
  Model model;
  model.state_ = &state;
  return model;
}

size_t Model::retained_bytes() const { return state_->retained; }
uint32_t Model::entry_count() const { return length(state_->root->profiles()->Get(0)->entries()); }
bool Model::takes(const InputShape& shape, uint32_t entry) const {
  const int i = find_input(shape.name, entry);
  if (i < 0) return false;
  if (input(static_cast<uint32_t>(i), entry).dims.size() != shape.dims.size()) return false;
  for (size_t axis = 0; axis < shape.dims.size(); ++axis) {
    const AxisRange range = input_range(static_cast<uint32_t>(i), static_cast<int>(axis), entry);
    if (shape.dims[axis] < range.minimum || shape.dims[axis] > range.maximum) return false;
  }
  return true;
}
int Model::find_entry(std::span<const InputShape> shapes) const {
  for (uint32_t entry = 0; entry < entry_count(); ++entry)
    if (std::all_of(shapes.begin(), shapes.end(), [&](const InputShape& s) { return takes(s, entry); }))
      return static_cast<int>(entry);
  return -1;
}
uint32_t Model::input_count(uint32_t entry) const { return length(entry_of(state_, entry)->inputs()); }
uint32_t Model::output_count(uint32_t entry) const { return length(entry_of(state_, entry)->outputs()); }
PortInfo Model::input(uint32_t i, uint32_t entry) const {
  const fb::Program& program = *entry_of(state_, entry);
  return port_info(program, *program.inputs()->Get(i));
}
AxisRange Model::input_range(uint32_t i, int axis, uint32_t entry) const {
  const fb::Program& program = *entry_of(state_, entry);
  return detail::axis_range(program, *program.inputs()->Get(i), axis);
}
PortInfo Model::output(uint32_t i, uint32_t entry) const {
  const fb::Program& program = *entry_of(state_, entry);
  return port_info(program, *program.outputs()->Get(i));
}
int Model::find_input(const char* name, uint32_t entry) const {
  return find_port(entry_of(state_, entry)->inputs(), name);
}
int Model::find_output(const char* name, uint32_t entry) const {
  return find_port(entry_of(state_, entry)->outputs(), name);
}
uint32_t Model::state_count(uint32_t entry) const { return length(entry_of(state_, entry)->states()); }
StateInfo Model::state(uint32_t i, uint32_t entry) const {
  const fb::Program& program = *entry_of(state_, entry);
  const fb::StatePort& port = *program.states()->Get(i);
  const fb::Value& value = *program.values()->Get(port.value());
  return {text(port.input()), text(port.output()), static_cast<DType>(value.dtype()), items(value.dims()),
          value.initial() < 0};
}
uint32_t Model::profile_count() const { return length(state_->root->profiles()); }
const char* Model::profile_name(uint32_t profile) const {
  return text(state_->root->profiles()->Get(profile)->name());
}
const char* Model::profile_target(uint32_t profile) const {
  return text(state_->root->profiles()->Get(profile)->target());
}
int Model::find_profile(const char* name) const {
  for (uint32_t i = 0; i < profile_count(); ++i)
    if (std::strcmp(profile_name(i), name) == 0) return static_cast<int>(i);
  return -1;
}
uint32_t Model::default_profile() const {
  for (uint32_t i = 0; i < profile_count(); ++i) {
    const auto planned = static_cast<Architecture>(state_->root->profiles()->Get(i)->architecture());
    if (planned == Architecture::kPortable || planned == kHostArchitecture) return i;
  }
  return 0;
}
const char* Model::producer() const { return text(state_->root->producer()); }
uint32_t Model::program_count() const { return length(state_->root->programs()); }
uint32_t Model::entry_program(uint32_t entry, uint32_t profile) const {
  return items(state_->root->profiles()->Get(profile)->entries())[entry];
}
uint32_t Model::step_count(uint32_t program) const { return length(program_of(state_, program)->steps()); }
const char* Model::step_op(uint32_t step, uint32_t program) const {
  return detail::step_op_name(*program_of(state_, program)->steps()->Get(step));
}
const char* Model::step_name(uint32_t step, uint32_t program) const {
  return detail::step_name(*state_->root, *program_of(state_, program), step);
}

size_t Model::format(const Status& status, std::span<char> buffer) const {
  const auto i = static_cast<uint32_t>(status.index);
  PlaceNames names;
  if (state_ == nullptr || status.index < 0) return format_status(status, buffer);
  if (status.where == Where::kStep && status.program < program_count() && i < step_count(status.program))
    names = {step_name(i, status.program), step_op(i, status.program)};
  else if (status.where == Where::kInput && i < input_count())
    names.name = input(i).name;
  else if (status.where == Where::kOutput && i < output_count())
    names.name = output(i).name;
  return format_status(status, buffer, names);
}

}  // namespace sinter
