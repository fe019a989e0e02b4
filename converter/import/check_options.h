// Checks what the command line states about a model's inputs, dimensions, values and loops against the model.
#pragma once

#include "converter/import/lower.h"

namespace sinter::convert {

// Refuses names that the model does not have and sizes that contradict each other; warns of sizes of 0.
void check_options(const ImportedModel& model, const LoweringOptions& options, Diagnostics& diagnostics);

}  // namespace sinter::convert
