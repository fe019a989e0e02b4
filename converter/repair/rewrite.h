// Writes an ONNX file anew with edits. Bytes that no edit concerns are those of the original, unknown fields
// included; large data is copied from the mapped file and is never held in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "converter/repair/edits.h"

namespace sinter::convert {

using WriteBytes = std::function<void(const void* data, size_t bytes)>;

// Throws ModelFileError where the file is
// not one that the edits were made for.
void rewrite_model(std::span<const std::byte> file, const ModelEdits& edits, const WriteBytes& write);

}  // namespace sinter::convert
