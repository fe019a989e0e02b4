#include "converter/files/temporary_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {

namespace {

std::string pattern() {
  std::error_code error;
  const std::filesystem::path all = std::filesystem::temp_directory_path(error);
  if (error) throw FileError(fmt::format("no folder for temporary files: {}; set TMPDIR", error.message()));
  return (all / "sinter-XXXXXX").string();
}

}  // namespace

TemporaryFolder::TemporaryFolder() : path_(pattern()), on_signals_(path_.c_str()) {
  if (::mkdtemp(path_.data()) == nullptr)
    throw FileError(fmt::format("{}: no temporary folder can be created: {}; set TMPDIR",
                                std::filesystem::path(path_).parent_path().string(), std::strerror(errno)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sinter::convert
