// Checks of the names of files that a command writes, before any work.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace sinter::convert {

struct NamedFile {
  const char* what;  // "--report", "the model"
  std::string path;  // empty: not given
};

// Throws FileError where no file can be put, and UsageError where one would replace another of these files.
void check_outputs(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);

// Returns the check of the files that hold a model's external data, which are known once it is read: none of
// them may be written. Throws as check_outputs().
std::function<void(const std::vector<std::filesystem::path>&)> check_of_external_data(
    std::vector<NamedFile> written);

}  // namespace sinter::convert
