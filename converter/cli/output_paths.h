// Checks of the names of files that a command writes, before any work.
#pragma once

#include <string>
#include <vector>

namespace sinter::convert {

struct NamedFile {
  const char* what;  // "--report", "the model"
  std::string path;  // empty: not given
};

// Throws FileError where no file can be put, and UsageError where one would replace another of these files.
void check_outputs(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);

}  // namespace sinter::convert
