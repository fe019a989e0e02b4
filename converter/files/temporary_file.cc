#include "converter/files/temporary_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {

TemporaryFile::TemporaryFile(const char* suffix) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) throw FileError(fmt::format("no folder for temporary files: {}; set TMPDIR", error.message()));
  path_ = folder / fmt::format("sinter-{}{}", ::getpid(), suffix);
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace sinter::convert
