#include "converter/cli/target_memory.h"

#include <fmt/format.h>

#include "converter/cli/device_places.h"
#include "converter/cli/embedded_files.h"
#include "converter/diagnostics/errors.h"
#include "runtime/backend/target.h"
#include "runtime/model/model_state.h"
#include "runtime/model/structure_arena.h"

namespace sinter::convert {
namespace {

using detail::Pointers;

Pointers pointers_of(Architecture planned) {
  return planned == Architecture::kArmv7 || planned == Architecture::kCortexM ? Pointers::k32
                                                                              : Pointers::kHere;
}

bool names_backends(const fb::Profile& profile) {
  for (const fb::ProgramPlan* plan : *profile.plans())
    for (uint32_t s = 0; s < detail::length(plan->steps()); ++s)
      for (const uint8_t c : detail::items(plan->steps()->Get(s)->candidates()))
        if (profile.backends()->Get(c)->str() != "reference") return true;
  return false;
}

template <class T>
T value_of(const Result<T>& result, const LoadedModel& loaded) {
  if (!result.ok())
    throw ModelFileError(
        fmt::format("{}: {}", loaded.path().string(), describe(result.status(), &loaded.model())));
  return result.value();
}

}  // namespace

TargetMemory target_memory(const LoadedModel& loaded, uint32_t profile, uint32_t entry) {
  const Model& model = loaded.model();
  const fb::Profile& planned = *model.state()->root->profiles()->Get(profile);
  const auto architecture = static_cast<Architecture>(planned.architecture());
  const Pointers pointers = pointers_of(architecture);
  const auto opened = [&](bool stable) {
    return value_of(detail::open_needs(loaded.file(), {.kernels = {}, .stable = stable}, pointers), loaded);
  };
  const detail::OpenNeeds copied = opened(false), stable = opened(true);
  TargetMemory memory;
  memory.open = copied.open, memory.retained = copied.retained;
  memory.stable_open = stable.open, memory.stable_retained = stable.retained;
  memory.sealed_open = stable.sealed_open;
  memory.names_backends = names_backends(planned);

  SessionOptions options;
  options.profile = model.profile_name(profile);
  options.entry = entry;
  std::vector<Backend*> backends;
  std::string one;
  if (memory.names_backends) {
    one = session_here(model, profile, {.profile = options.profile}).backend;
    backends = host_backends(one);
    options.packed_in_file = packed_in_file();
    memory.session_is = "on this machine, whose kernels prepare other bytes than another machine's";
  } else {
    one = "reference";
    if (architecture == Architecture::kPortable)
      memory.session_is = "on 64-bit machines, and more than on 32-bit ones";
  }
  options.backends = backends;
  options.backend = one.empty() ? nullptr : one.c_str();
  const Requirements alone = value_of(detail::requirements_on(model, options, pointers), loaded);
  SharedArena arena({});
  options.arena = &arena;
  memory.session = alone.bytes, memory.shareable = alone.shareable;
  memory.sharing_session = value_of(detail::requirements_on(model, options, pointers), loaded).bytes;
  return memory;
}

nlohmann::json to_json(const TargetMemory& m) {
  return {{"open_bytes", m.open},
          {"retained_bytes", m.retained},
          {"stable_open_bytes", m.stable_open},
          {"stable_retained_bytes", m.stable_retained},
          {"sealed_open_bytes", m.sealed_open},
          {"session_bytes", m.session},
          {"session_exact", m.session_is.empty()},
          {"stack_bytes", kCortexStackBytes}};
}
std::string to_text(const TargetMemory& m) {
  return fmt::format(
      "{} bytes to open, {} of them kept ({} and {} where the file is in flash); {} bytes for a session{}{}",
      m.open, m.retained, m.stable_open, m.stable_retained, m.session, m.session_is.empty() ? "" : " ",
      m.session_is);
}

}  // namespace sinter::convert
