// The conversion's report as one HTML page, made from the report's JSON alone. The page loads nothing from
// elsewhere, and is readable without scripts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sinter::convert {

std::string as_page(const nlohmann::json& report);

// The parts of the page, and functions that they share. Each returns HTML or SVG.
std::string network_drawing(const nlohmann::json& report);  // SVG; empty without a plan
// Returns the drawing of one of the report's regions.
std::string memory_drawing(const nlohmann::json& report, uint32_t region);
// Returns the drawings of all regions, with their memories' names if there are several.
std::string memory_drawings(const nlohmann::json& report);
// Returns the bytes of a region that each step of the plan takes, its workspace included; bytes of several
// values count once.
std::vector<uint64_t> live_bytes(const nlohmann::json& report, uint32_t region);
std::string type_keys();
std::string low_outputs(const nlohmann::json& report);  // empty: none has a low SQNR
extern const char kPageStyle[], kPageScript[];

// Returns text of any bytes, escaped for XML.
std::string escaped(const std::string& text);
// Returns the start and the end of the text, in at most `most` letters.
std::string shortened(const std::string& text, size_t most);
// Returns "31.2 dB", "exact".
std::string db_words(const nlohmann::json& db);
// Returns the CSS class of a ratio: n0 (good) to n4; "nx" if it is not known.
std::string noise_class(const nlohmann::json& db);
// Returns the CSS class of an element type: p8, p16, ph (half), pf (float), pi (other).
std::string type_class(const std::string& type);
// Returns "12.3 kB".
std::string bytes_words(double bytes);

}  // namespace sinter::convert
