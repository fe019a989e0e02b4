// Samples of which each is a file, or one for each input, of its own: pictures, sounds, raw bytes, arrays.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "converter/data/file_list.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert::detail {

// Decodes the first sample at once, so that data that does not fit is refused before anything runs. A file is
// decoded whenever its sample is read, and messages name it. Throws FileError and DataError.
std::unique_ptr<SampleSource> open_listed(FileList list, std::vector<SampleInput> inputs,
                                          const SampleOptions& options);

}  // namespace sinter::convert::detail
