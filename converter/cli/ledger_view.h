// The type ledger as a .sinter file holds it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sinter/model.h"

namespace sinter::convert {

// The entries that conversion left in the file, in order; none if they were stripped. Throws DataError where
// they are damaged.
nlohmann::json ledger_of(const Model& model);
// One entry for people, on one line.
std::string ledger_line(const nlohmann::json& entry);

}  // namespace sinter::convert
