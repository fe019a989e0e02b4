// The text of lists of samples: JSON, JSON Lines and CSV.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinter::convert {

struct ListEntry {
  std::string file;                                        // the file of the whole sample; empty: `files`
  std::vector<std::pair<std::string, std::string>> files;  // names of inputs and their files
  std::string label = {};                                  // empty: none
};

// Returns the entries of one JSON array, or of one value a line. An entry is a file's name, or an object of
// names and files; `label` is the key of its label, a whole number or a name. Other keys are passed over.
// `what` names the list in errors. Throws DataError.
std::vector<ListEntry> parse_json_list(std::string_view text, const std::string& what,
                                       const std::string& label);

// Returns the entries of lines FILE,LABEL[,...], quoted as in RFC 4180. The first line is a header if its
// first field has no sample's extension; labels are then in the column named `label`, else in the second.
std::vector<ListEntry> parse_csv_list(std::string_view text, const std::string& what,
                                      const std::string& label);

}  // namespace sinter::convert
