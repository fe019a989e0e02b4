// The conversion's report as one HTML page, made from its JSON. It loads nothing, and needs no scripts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinter::convert {

std::string as_page(const nlohmann::json& report);

// The sections of the page, HTML or SVG. A section is empty if the report has nothing for it.
std::string low_outputs(const nlohmann::json& report);
std::string layer_tables(const nlohmann::json& report);
std::string range_histograms(const nlohmann::json& report);
std::string network_drawing(const nlohmann::json& report);
// Returns the drawing of one of the report's regions.
std::string memory_drawing(const nlohmann::json& report, uint32_t region);
// Returns the drawings of all regions, with their memories' names if there are several.
std::string memory_drawings(const nlohmann::json& report);
// Returns the bytes of a region that each step takes, its workspace included; shared bytes count once.
std::vector<uint64_t> live_bytes(const nlohmann::json& report, uint32_t region);
extern const char kPageStyle[], kPageScript[];

// ---- parts that sections share; HTML, unless a comment says more

// Returns the text of a key; empty if there is none.
std::string text_of(const nlohmann::json& j, const char* key);
// Returns the number of a key; 0 if there is none.
double number_of(const nlohmann::json& j, const char* key);

// Returns text of any bytes, escaped for XML.
std::string escaped(const std::string& text);
// Returns the start and the end of the text, in at most `most` letters.
std::string shortened(const std::string& text, size_t most);
// Returns "31.2 dB", "exact".
std::string db_words(const nlohmann::json& db);
// Returns "12.3 kB".
std::string bytes_words(double bytes);

// Returns the CSS class of a ratio: n0 (good) to n4; "nx" if it is not known.
std::string noise_class(const nlohmann::json& db);
// Returns the CSS class of an element type: p8, p16, ph (half), pf (float), pi (other).
std::string type_class(const std::string& type);
// Return a text on a coloured ground.
std::string chip(const std::string& look, const std::string& text);
std::string noise_chip(const nlohmann::json& db);
std::string type_chip(const std::string& type);
// Return an entry of the key to colours, and the key to the types' colours.
std::string key_entry(const char* look, const char* what);
std::string type_keys();
// Returns a field that searches the rows of a table, each of which is a `what`.
std::string search_box(const char* what, const char* table);

// A table. '#' begins the head of a column of numbers, '~' that of a column whose texts may break anywhere.
class PageTable {
 public:
  explicit PageTable(std::vector<std::string_view> heads) : heads_(std::move(heads)) {}
  bool empty() const { return rows_.empty(); }
  // Adds a row of cells, which are HTML.
  void add(const std::vector<std::string>& cells, const std::string& id = {});
  std::string html(const char* look = "scroll", const char* id = "") const;

 private:
  std::vector<std::string_view> heads_;
  std::string rows_;
};

}  // namespace sinter::convert
