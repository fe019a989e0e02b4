// `inspect --memory` of several models: their memory in one program whose sessions never run at once.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/cli/target_memory.h"

namespace sinter::convert {

struct TogetherModel {
  std::string file;
  TargetMemory memory;

  // The bytes, besides the file, that the model and a session with a shared arena keep.
  size_t own() const { return memory.retained + memory.sharing_session; }
  size_t alone() const { return memory.retained + memory.session; }
};

struct TogetherMemory {
  std::vector<TogetherModel> models;

  size_t arena() const;     // the SharedArena: the largest part that one of them takes
  size_t together() const;  // all models, their sessions, and the arena
  size_t apart() const;     // the same with an arena for each
};

nlohmann::json to_json(const TogetherMemory& all);
std::string to_text(const TogetherMemory& all);

}  // namespace sinter::convert
