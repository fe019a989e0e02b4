// The type ledger as a .sinter file holds it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sinter/model.h"

namespace sinter::convert {

// The entries that conversion left in the file, in order; none if they were stripped. Throws DataError where
// they are damaged.
nlohmann::json ledger_of(const Model& model);
// The fate of the ONNX node of this name, or the one that gave a value of this name, if it is not a step
// with all of its results: a chain of entries (diagnostics/node_fates.h) that ends with something that the
// file has.
nlohmann::json fates_of(const Model& model, const std::string& name);
// The entry of an initializer, or of an input that --const made constant, that left no value of its name;
// null for other names.
nlohmann::json constant_of(const Model& model, const std::string& name);
// One entry as a line of text.
std::string ledger_line(const nlohmann::json& entry);

}  // namespace sinter::convert
