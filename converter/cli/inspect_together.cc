#include "converter/cli/inspect_together.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinter::convert {

size_t TogetherMemory::arena() const {
  size_t most = 0;
  for (const TogetherModel& m : models) most = std::max(most, m.memory.shareable);
  return most;
}

size_t TogetherMemory::together() const {
  size_t bytes = arena();
  for (const TogetherModel& m : models) bytes += m.own();
  return bytes;
}

size_t TogetherMemory::apart() const {
  size_t bytes = 0;
  for (const TogetherModel& m : models) bytes += m.alone();
  return bytes;
}

nlohmann::json to_json(const TogetherMemory& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const TogetherModel& m : all.models)
    list.push_back({{"file", m.file},
                    {"retained_bytes", m.memory.retained},
                    {"session_bytes", m.memory.session},
                    {"sharing_session_bytes", m.memory.sharing_session},
                    {"shareable_bytes", m.memory.shareable},
                    {"session_exact", m.memory.session_is.empty()}});
  return {{"models", list},
          {"shared_arena_bytes", all.arena()},
          {"together_bytes", all.together()},
          {"apart_bytes", all.apart()}};
}

std::string to_text(const TogetherMemory& all) {
  size_t width = 5;
  for (const TogetherModel& m : all.models) width = std::max(width, m.file.size());
  std::string text = fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>12}\n", "bytes", width, "model", "session",
                                 "sharing", "of the arena");
  std::string note;
  for (const TogetherModel& m : all.models) {
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>12}\n", m.file, width, m.memory.retained,
                        m.memory.session, m.memory.sharing_session, m.memory.shareable);
    if (!m.memory.session_is.empty())
      note += fmt::format("{}: a session's bytes are those {}\n", m.file, m.memory.session_is);
  }
  const size_t together = all.together(), apart = all.apart();
  return text + note +
         fmt::format(
             "apart     {} bytes\ntogether  {} bytes, {} of them one shared arena, for sessions that never "
             "run "
             "at once ({:.0f} % of apart)\n",
             apart, together, all.arena(),
             apart > 0 ? 100.0 * static_cast<double>(together) / static_cast<double>(apart) : 100.0);
}

}  // namespace sinter::convert
