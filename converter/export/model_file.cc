#include "converter/export/model_file.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "converter/files/pending_file.h"
#include "converter/import/read/onnx.pb.h"

namespace sinter::convert {
namespace {

constexpr uint64_t kMostModelBytes = (uint64_t{1} << 31) - (1 << 20);  // protobuf's limit is 2 GiB
constexpr uint64_t kExternalBytes =
    1024;  // smaller initializers stay in the model: readers need them for shapes
constexpr uint64_t kExternalAlignment = 4096;
// Tags of protobuf: field number and the type "length and bytes".
constexpr char kModelGraph = 7 << 3 | 2, kGraphInitializer = 5 << 3 | 2, kTensorRawData = 9 << 3 | 2;

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string serialized(const google::protobuf::MessageLite& message) {
  std::string bytes;
  if (!message.SerializeToString(&bytes)) throw std::length_error("the model's graph is larger than 2 GB");
  return bytes;
}

// An initializer's message but for its data.
struct Planned {
  std::string header;       // with the tag and the length of the data
  uint64_t data_bytes = 0;  // in the model
  uint64_t size() const { return header.size() + data_bytes; }
};

void append(PendingFile& file, const std::string& bytes) { file.write(bytes.data(), bytes.size()); }

uint64_t align_external(uint64_t offset) {
  return (offset + kExternalAlignment - 1) / kExternalAlignment * kExternalAlignment;
}

std::vector<Planned> planned(const std::vector<Initializer>& initializers, const std::string& external) {
  std::vector<Planned> result;
  uint64_t offset = 0;
  for (const Initializer& initializer : initializers) {
    const Constant& data = *initializer.data;
    onnx_pb::TensorProto proto;
    for (const int64_t d : data.dims()) proto.add_dims(d);
    proto.set_data_type(onnx_type(data.dtype()));
    proto.set_name(initializer.name);
    const uint64_t bytes = data.byte_size();
    if (!external.empty() && bytes >= kExternalBytes) {
      offset = align_external(offset);
      const auto entry = [&](const char* key, const std::string& value) {
        auto* e = proto.add_external_data();
        e->set_key(key), e->set_value(value);
      };
      entry("location", external);
      entry("offset", std::to_string(offset));
      entry("length", std::to_string(bytes));
      proto.set_data_location(1);
      offset += bytes;
      result.push_back({serialized(proto), 0});
    } else {
      result.push_back({serialized(proto) + kTensorRawData + varint(bytes), bytes});
    }
  }
  return result;
}

void write_data(PendingFile& file, const Constant& constant) {
  const LoadedBytes loaded = constant.load();
  file.write(loaded.bytes.data(), loaded.bytes.size());
}

}  // namespace

std::filesystem::path external_data_path(const std::filesystem::path& model) {
  return model.string() + ".data";
}

bool write_model_file(const std::filesystem::path& out, onnx_pb::ModelProto& model,
                      const std::vector<Initializer>& initializers, bool external) {
  const std::string graph = serialized(model.graph());
  model.clear_graph();
  const std::string frame = serialized(model);
  const auto graph_bytes = [&](const std::vector<Planned>& all) {
    uint64_t bytes = graph.size();
    for (const Planned& p : all) bytes += 1 + varint(p.size()).size() + p.size();
    return bytes;
  };
  const std::string location = external_data_path(out).filename().string();
  std::vector<Planned> all = planned(initializers, external ? location : "");
  if (!external && graph_bytes(all) + frame.size() > kMostModelBytes) {
    external = true;
    all = planned(initializers, location);
  }
  if (graph_bytes(all) + frame.size() > kMostModelBytes)
    throw std::length_error("the model is larger than 2 GB without its initializers");

  std::optional<PendingFile> beside;
  if (external) {
    beside.emplace(external_data_path(out));
    uint64_t offset = 0;
    for (const Initializer& initializer : initializers) {
      if (initializer.data->byte_size() < kExternalBytes) continue;
      beside->pad_to(offset = align_external(offset));
      write_data(*beside, *initializer.data);
      offset += initializer.data->byte_size();
    }
  }
  PendingFile file(out);
  append(file, frame + kModelGraph + varint(graph_bytes(all)) + graph);
  for (size_t i = 0; i < all.size(); ++i) {
    append(file, kGraphInitializer + varint(all[i].size()) + all[i].header);
    if (all[i].data_bytes > 0) write_data(file, *initializers[i].data);
  }
  if (beside) beside->publish();
  file.publish();
  return external;
}

}  // namespace sinter::convert
