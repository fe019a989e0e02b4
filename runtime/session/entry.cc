#include "runtime/session/entry.h"

#include <cstring>

namespace sinter::detail {
namespace {

bool same(const char* a, const char* b) { return std::strcmp(a, b) == 0; }

}  // namespace

Status Entry::resolve() {
  const ModelState& state = *model.state();
  SINTER_RETURN_UNLESS(options.backends.size() <= kMaxBackends,
                       invalid("more than %a backends", kMaxBackends));
  SINTER_RETURN_IF_ERROR(resolve_profile());
  SINTER_RETURN_IF_ERROR(resolve_backends());
  if (const PackedWeights* packed = options.packed_weights; packed != nullptr) {
    SINTER_RETURN_UNLESS(
        packed->valid() && packed->state()->model == &state,
        invalid("the packed weights belong to another model; pack them with the same Model"));
    number = packed->state()->number;
  }
  if (options.packed_in_file != nullptr) {
    number = options.packed_in_file->number;
    SINTER_RETURN_IF_ERROR(options.packed_in_file->verify(state));
  }
  SINTER_RETURN_IF_ERROR(resolve_devices());
  return resolve_bindings();
}

Status Entry::resolve_profile() {
  const fb::Model& file = *model.state()->root;
  const int named = options.profile != nullptr ? model.find_profile(options.profile) : 0;
  SINTER_RETURN_UNLESS(named >= 0, invalid("the file has no profile '%s'", name_of(options.profile)));
  profile_index = options.profile != nullptr ? static_cast<uint32_t>(named) : model.default_profile();
  profile = file.profiles()->Get(profile_index);
  const uint32_t entries = length(profile->entries());
  SINTER_RETURN_UNLESS(packs_every() || options.entry != kEveryEntry,
                       invalid("a session runs one entry of the model; give its number"));
  SINTER_RETURN_UNLESS(packs_every() || options.entry < entries,
                       invalid("the model has no entry %a; it has %b", options.entry, int64_t{entries}));
  root = frame(0);
  return ok_status();
}

Frame Entry::frame(uint32_t e) const {
  Frame frame;
  frame.entry = this;
  frame.index = items(profile->entries())[packs_every() ? e : options.entry];
  frame.program = model.state()->root->programs()->Get(frame.index);
  frame.plan = find_plan(*profile, frame.index);  // verified: it is there
  for (uint32_t r = 0; r < length(frame.plan->regions()); ++r) {
    const uint8_t kind = frame.plan->regions()->Get(r)->memory_kind();
    frame.kinds[r] = uses_device(kind) ? kind : uint8_t{0};
  }
  return frame;
}

Status Entry::resolve_backends() {
  const auto given = [&](const char* name) -> Backend* {
    for (Backend* b : options.backends)
      if (b != nullptr && same(b->name(), name)) return b;
    return nullptr;
  };
  requested = options.backend != nullptr;
  backend_count = 0;
  if (requested) {
    if (!same(options.backend, "reference")) {
      Backend* backend = given(options.backend);
      SINTER_RETURN_UNLESS(backend != nullptr, invalid("no backend has this name"));
      backends[backend_count++] = backend;
    }
  } else {
    SINTER_RETURN_UNLESS(length(profile->backends()) <= kMaxBackends,
                         unsupported("more than %a backends", kMaxBackends));
    if (profile->backends() != nullptr)
      for (const flatbuffers::String* name : *profile->backends())
        backends[backend_count++] = given(name->c_str());
  }
  kernels = KernelBackend("reference", model.state()->kernels);
  backends[backend_count++] = &kernels;
  return ok_status();
}

}  // namespace sinter::detail
