// --skip-damaged: files of samples that cannot be decoded are left out.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "converter/data/file_list.h"
#include "converter/diagnostics/errors.h"

namespace sinter::convert::detail {

// Both decode every file, drop what is damaged, and return the reasons, each with its file. Throws DataError
// where nothing is left, FileError where a file cannot be read.
std::vector<std::string> drop_damaged(FileList* list);
std::vector<std::string> drop_damaged(std::vector<std::filesystem::path>* files);

// The result of `decode`; a DataError that it throws gets the flag's name.
template <class Decode>
auto or_skip_damaged(const Decode& decode) {
  try {
    return decode();
  } catch (const DataError& e) {
    throw DataError(fmt::format("{} (--skip-damaged leaves damaged files out)", e.what()));
  }
}

}  // namespace sinter::convert::detail
