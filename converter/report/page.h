// The conversion's report as one HTML page: nothing is loaded from elsewhere, and it is readable
// without scripts. Made from the report's JSON alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sinter::convert {

std::string as_page(const nlohmann::json& report);

// Parts of it, and what they share.
std::string network_drawing(const nlohmann::json& report);  // SVG; empty without a plan
// Of one of the report's regions.
std::string memory_drawing(const nlohmann::json& report, uint32_t region);
// Of all of them, with their memories' names if there are several.
std::string memory_drawings(const nlohmann::json& report);
// Bytes of a region that each step of the plan takes, its workspace included; what overlaps counts once.
std::vector<uint64_t> live_bytes(const nlohmann::json& report, uint32_t region);
std::string type_keys();
std::string low_outputs(const nlohmann::json& report);  // empty: none has a low SQNR
extern const char kPageStyle[], kPageScript[];

// Text escaped for XML, for any bytes.
std::string escaped(const std::string& text);
// Its start and its end, in at most `most` letters.
std::string shortened(const std::string& text, size_t most);
// "31.2 dB", "exact".
std::string db_words(const nlohmann::json& db);
// CSS class of a ratio: n0 (good) to n4; "nx": not known.
std::string noise_class(const nlohmann::json& db);
// CSS class of an element type: p8, p16, ph (half), pf (float), pi (other).
std::string type_class(const std::string& type);
// "12.3 kB"
std::string bytes_words(double bytes);

}  // namespace sinter::convert
