// A conversion as a command runs it: the checks before it, its progress, and what is said where it gives no
// file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "converter/cli/commands.h"
#include "converter/cli/convert_arguments.h"
#include "converter/convert.h"

namespace sinter::convert {

// Checks the names of the files to write against each other and against those that are read, --label's array
// included; those of the model's external data when they are known. Throws UsageError, DataError, FileError.
void check_conversion_files(const ConvertArguments& a, ConversionOptions* options);

// Converts with progress, and prints warnings. nullopt: the model is refused, also by --strict, and the
// outcome has the reasons.
std::optional<ConversionReport> run_conversion(const ConvertArguments& a, ConversionOptions options,
                                               Diagnostics& diagnostics, Outcome& outcome);

// Returns whether the report states why nothing was written; it is printed then, with `json`.
bool is_withheld(const ConversionReport& report, const ConvertArguments& a, nlohmann::json json,
                 Outcome& outcome);

// Writes --report, if it is given: `json` and the details.
void write_conversion_report(const ConversionReport& report, const ConvertArguments& a,
                             const nlohmann::json& json);

// Gives the result: `json`, or `text` and the name of the file.
void give_conversion(const ConvertArguments& a, const nlohmann::json& json, const std::string& text,
                     const Outcome& outcome);

}  // namespace sinter::convert
