// Takes the large tensors out of a serialised ModelProto before protobuf sees it: protobuf-lite would copy
// them, and it ends at 2 GB.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sinter::convert {

// Writes to `lean` the same message, with every tensor's long raw_data replaced by mapped_offset and
// mapped_length (see onnx.proto). False where the bytes are no well-formed ModelProto; `fault` is then the
// sentence to show.
bool scan_model(std::span<const std::byte> bytes, std::string* lean, std::string* fault);

}  // namespace sinter::convert
