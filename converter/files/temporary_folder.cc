#include "converter/files/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path all = std::filesystem::temp_directory_path(error);
  if (error) throw FileError(fmt::format("no folder for temporary files: {}; set TMPDIR", error.message()));
  std::string name = (all / "sinter-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw FileError(fmt::format("{}: no temporary folder can be created: {}; set TMPDIR", all.string(),
                                std::strerror(errno)));
  path_ = name;
  on_signals_.emplace(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sinter::convert
