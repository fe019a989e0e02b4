// The type ledger in a .sinter file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sinter/model.h"

namespace sinter::convert {

// Returns the file's entries in order; none if they were stripped. Throws DataError where they are damaged.
nlohmann::json ledger_of(const Model& model);
// Returns the fate of the ONNX node, or of the node with a result, of this name, if it is not a step with all
// of its results: a chain of entries (diagnostics/node_fates.h) that ends with a step or value of the file.
nlohmann::json fates_of(const Model& model, const std::string& name);
// Returns the entry of an initializer or --const that left no value of its name; null for other names.
nlohmann::json constant_of(const Model& model, const std::string& name);
// Returns an entry as a line of text.
std::string ledger_line(const nlohmann::json& entry);

}  // namespace sinter::convert
