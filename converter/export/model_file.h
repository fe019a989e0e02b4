// Writes the bytes of an ONNX model whose initializers may be larger than memory.
#pragma once

#include <filesystem>
#include <vector>

#include "converter/export/model_parts.h"

namespace sinter::convert {

// Writes `model`, whose graph has no initializers, with these. Initializers are read one after another. The
// bytes of large ones go to external_data_path(out) if `external`, or if the model would be larger than
// protobuf allows; returns whether they did. Both files appear whole or not at all. Throws FileError.
bool write_model_file(const std::filesystem::path& out, onnx_pb::ModelProto& model,
                      const std::vector<Initializer>& initializers, bool external);

}  // namespace sinter::convert
