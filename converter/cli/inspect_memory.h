// The output of sinter inspect --memory: regions, offsets and live ranges of values, live bytes of steps.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "converter/cli/file_view.h"
#include "sinter/session.h"

namespace sinter::convert {

// The bytes of weights in the file, the part of them that is widened when a session is created, and the
// constants that the file has in packed form alone, with their bytes.
struct WeightBytes {
  uint64_t all = 0, widened = 0, left_out = 0, left_out_bytes = 0;
  explicit WeightBytes(const fb::Model& root);
};

// Returns the regions and values. `need`: the memory of a session of this file on this machine.
nlohmann::json memory_json(const FileView& view, const Requirements& need);
std::string memory_text(const FileView& view, const Requirements& need);
// Returns one self-contained page: time by address, with a mark at the step that needs the most.
std::string memory_page(const FileView& view, const std::string& name, const Requirements& need);

}  // namespace sinter::convert
