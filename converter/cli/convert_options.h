// The command line of `sinter convert` as the converter's options. All functions throw UsageError where flags
// contradict each other or would have no effect.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/convert_arguments.h"
#include "converter/convert.h"
#include "converter/import/read/arrays.h"

namespace sinter::convert {

// Returns all options but progress, the check of the written file, and what concerns the files of the
// command. Reads the arrays of --const.
ConversionOptions conversion_options(const ConvertArguments& a);

// Returns the output and the file of each --labels.
std::vector<LabelFile> label_files(const ConvertArguments& a);

// Returns the files that --const and --state-init name.
std::vector<std::string> constant_files(const ConvertArguments& a);

// Throws UsageError where --evaluate needs --label, DataError where a file of arrays lacks the array that it
// names.
void check_labels(const ConvertArguments& a);

}  // namespace sinter::convert
