// The texts of a file that no step reads: facts about the model, and the names of classes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace sinter::convert {

struct ModelTexts {
  std::map<std::string, std::string> metadata;             // by key
  std::map<std::string, std::vector<std::string>> labels;  // by output, along its class axis

  bool empty() const { return metadata.empty() && labels.empty(); }
};

// The most bytes of a file's texts, because a device keeps them in memory. The reader has limits for each
// text besides (runtime/model/model_state.h).
inline constexpr size_t kMostTextBytes = size_t{4} << 20;

}  // namespace sinter::convert
