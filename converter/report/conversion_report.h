// The conversion's report as JSON for scripts and as an HTML page. summary.h has the text for a terminal.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "converter/convert.h"

namespace sinter::convert {

nlohmann::json to_json(const ConversionReport& report, const Diagnostics& diagnostics);
// Returns the parts that only --report shows: layers, steps and memory.
nlohmann::json details_json(const ConversionReport& report);

// Throws UsageError where write_report() would throw it for the file's name.
void check_report_name(const std::filesystem::path& path);
// Writes the form of the file's extension: .json (one object), .jsonl (a line per pass and diagnostic), .html
// (self-contained). Throws UsageError for others, FileError where it cannot be written.
void write_report(const std::filesystem::path& path, const nlohmann::json& report);

}  // namespace sinter::convert
