// Takes the large tensors out of a serialised ModelProto before protobuf reads it: protobuf-lite would copy
// them, and its limit is 2 GB.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sinter::convert {

// Writes to `lean` the same message, with every tensor's long raw_data replaced by mapped_offset and
// mapped_length (see onnx.proto). False where the bytes are not a well-formed ModelProto; `fault` is then the
// sentence to show.
bool scan_model(std::span<const std::byte> bytes, std::string* lean, std::string* fault);

}  // namespace sinter::convert
