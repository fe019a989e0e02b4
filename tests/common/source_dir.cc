#include "tests/common/source_dir.h"

#include <cstdlib>

namespace sinter::testing {

std::filesystem::path source_dir() { return SINTER_SOURCE_DIR; }

std::filesystem::path shared_dir() {
  const char* named = std::getenv("SINTER_SHARED");
  return named != nullptr ? named : source_dir() / "../shared";
}

}  // namespace sinter::testing
