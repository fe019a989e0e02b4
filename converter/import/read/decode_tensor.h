// TensorProto to ImportedTensor: raw, typed, external and sparse data, every element type.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "converter/diagnostics/diagnostics.h"
#include "converter/import/read/imported_graph.h"
#include "converter/import/read/reader.h"

namespace sinter::onnx_pb {
class TensorProto;
class SparseTensorProto;
}  // namespace sinter::onnx_pb

namespace sinter::convert {

class TensorDecoder {
 public:
  TensorDecoder(std::shared_ptr<const void> owner, std::span<const std::byte> file, DataFolders folders,
                Diagnostics& diagnostics)
      : owner_(std::move(owner)), file_(file), folders_(std::move(folders)), diagnostics_(&diagnostics) {}

  // `place` is the node (or empty) that a refusal names. Data that is wrong is refused at once; element types
  // that Sinter lacks are left in `problem`, to be refused where they are used.
  ImportedTensor decode(const onnx_pb::TensorProto& proto, const std::string& place, const std::string& op);
  ImportedTensor decode(const onnx_pb::SparseTensorProto& proto, const std::string& place,
                        const std::string& op);

  // The files that decoding has opened so far.
  std::vector<std::filesystem::path> external_files() const;

 private:
  struct Problem {
    std::string what, remedy;
  };
  std::shared_ptr<const MappedFile> external(const std::string& location, Problem* problem);

  std::shared_ptr<const void> owner_;
  std::span<const std::byte> file_;
  DataFolders folders_;
  Diagnostics* diagnostics_;
  std::map<std::string, std::shared_ptr<const MappedFile>> opened_;
};

}  // namespace sinter::convert
