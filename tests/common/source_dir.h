// The checkout from which the tests were built, for files that tests read. One source holds the path, so that
// every other object is the same in every checkout and a compiler cache can share it.
#pragma once

#include <filesystem>

namespace sinter::testing {

// Returns the root of the checkout, absolute.
std::filesystem::path source_dir();
// Returns the folder of models and data that are not in the tree: the one that SINTER_SHARED names, or
// `shared` beside the checkout. It may not exist.
std::filesystem::path shared_dir();

}  // namespace sinter::testing
