// The metadata and the class names of an opened file, and the best classes of a result.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "converter/cli/host_session.h"

namespace sinter::convert {

// Returns the metadata, and the class names by output, as "metadata" and "labels".
nlohmann::json texts_json(const Model& model);
// Returns a line of text for each fact and for each output with class names.
std::string texts_text(const Model& model);

// Returns for each row of an output with class names its highest scores, the best first: index, label and
// score. An output without class names gives an empty list. `port`: of one run, to whose rows the scores of
// several samples add theirs; `scores` has its class axis.
nlohmann::json best_classes(const Model& model, const PortInfo& port, const ConstantPtr& scores);
// Returns a line of text for each of the first rows.
std::string best_text(const nlohmann::json& rows);

}  // namespace sinter::convert
