#include "tests/common/source_dir.h"

namespace sinter::testing {

std::filesystem::path source_dir() { return SINTER_SOURCE_DIR; }

}  // namespace sinter::testing
