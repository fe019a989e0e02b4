// `inspect --memory` of several models: what they take in one program whose sessions never run at once.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/cli/target_memory.h"

namespace sinter::convert {

struct TogetherModel {
  std::string file;
  TargetMemory memory;

  // Bytes that stay taken, besides the file: of the model, and of a session that shares an arena.
  size_t own() const { return memory.retained + memory.sharing_session; }
  size_t alone() const { return memory.retained + memory.session; }
};

struct TogetherMemory {
  std::vector<TogetherModel> models;

  size_t arena() const;     // of the SharedArena: the largest part that one of them takes
  size_t together() const;  // all models, their sessions, and the arena
  size_t apart() const;     // the same with an arena for each
};

nlohmann::json to_json(const TogetherMemory& all);
std::string to_text(const TogetherMemory& all);

}  // namespace sinter::convert
