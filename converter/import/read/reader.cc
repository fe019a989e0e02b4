#include "converter/import/read/reader.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>

#include "converter/import/grouped_products.h"
#include "converter/import/read/decode_tensor.h"
#include "converter/import/read/onnx.pb.h"
#include "converter/import/read/scan_wire.h"
#include "converter/ir/large_bytes.h"
#include "runtime/model/format.h"

namespace sinter::convert {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  return open(InputFile(path));
}

std::shared_ptr<const MappedFile> MappedFile::open(const InputFile& input) {
  auto file = std::make_shared<MappedFile>();
  if (input.bytes() > 0) {
    // Shared: map_pages_again().
    void* memory = ::mmap(nullptr, input.bytes(), PROT_READ, MAP_SHARED, input.descriptor(), 0);
    if (memory == MAP_FAILED)
      throw FileError(fmt::format("{}: cannot be mapped: {}", input.path().string(), std::strerror(errno)));
    file->bytes = {static_cast<const std::byte*>(memory), input.bytes()};
    register_file_pages(file->bytes);
  }
  return file;
}

MappedFile::~MappedFile() {
  if (bytes.empty()) return;
  forget_file_pages(bytes);
  ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

namespace {

using Kind = ImportedAttribute::Kind;

constexpr const char* kDamaged = "check how the file was copied, or export the model again";

// The number that a name is; -1: none.
int64_t size_of(const std::string& name) {
  int64_t size = -1;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), size);
  return fault == std::errc() && end == name.data() + name.size() && size >= 0 ? size : -1;
}

// Returns whether exporters write this for every size that they do not know, so that two sizes of this name
// may differ. PaddlePaddle writes "?".
bool names_no_size(std::string_view name) {
  constexpr std::string_view kUnknown[] = {"?", "-1", "*", "None", "none", "null", "unknown"};
  return std::find(std::begin(kUnknown), std::end(kUnknown), name) != std::end(kUnknown);
}

// Removes names that stand for any unknown size. Where one dimension alone of the model's inputs has such a
// name, it stays there, so that --dim can give it.
void forget_unknown_names(ImportedGraph& graph, bool is_body) {
  std::map<std::string, int> times;
  for (const ImportedValueInfo& input : graph.inputs)
    for (const ImportedDim& dim : input.dims) ++times[dim.symbol];
  for (auto* infos : {&graph.inputs, &graph.outputs, &graph.value_info})
    for (ImportedValueInfo& info : *infos)
      for (ImportedDim& dim : info.dims)
        if (names_no_size(dim.symbol) && (is_body || infos != &graph.inputs || times[dim.symbol] > 1))
          dim.symbol.clear();
}

std::string clean_domain(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

class Reader {
 public:
  Reader(TensorDecoder tensors, Diagnostics& diagnostics)
      : tensors_(std::move(tensors)), diagnostics_(&diagnostics) {}

  ImportedModel model(const onnx_pb::ModelProto& proto) {
    ImportedModel m;
    m.ir_version = proto.ir_version();
    m.producer = proto.producer_name(), m.domain = proto.domain(), m.doc = proto.doc_string();
    m.version = proto.model_version();
    for (const auto& entry : proto.metadata_props()) m.metadata[entry.key()] = entry.value();
    m.opsets = opsets(proto.opset_import(), "the model");
    if (m.opsets.empty()) {
      m.opsets[""] = 1;
      if (m.ir_version >= 3)
        diagnostics_->refuse({}, {},
                             "the model does not import an operator set (opset_import), so the meaning of "
                             "its operators is undefined",
                             "export it again");
    }
    names_.clear();
    m.graph = graph(proto.graph(), m.opsets);
    forget_unknown_names(m.graph, false);
    for (const auto& f : proto.functions()) {
      places_ = fmt::format("f{}:", m.functions.size()), next_place_ = 0;
      m.functions.push_back(function(f, m.opsets));
    }
    m.node_docs = std::move(node_docs_);
    m.external_files = tensors_.external_files();
    return m;
  }

 private:
  using Opsets = std::map<std::string, int64_t>;

  template <class List>
  Opsets opsets(const List& imports, const std::string& who) {
    Opsets result;
    for (const auto& entry : imports) {
      const std::string domain = clean_domain(entry.domain());
      const auto [at, is_new] = result.emplace(domain, entry.version());
      if (!is_new && at->second != entry.version()) {
        diagnostics_->warn(
            {}, {},
            fmt::format("{} imports operator set '{}' as version {} and as version {}; the newer is used",
                        who, domain.empty() ? "ai.onnx" : domain, at->second, entry.version()));
        at->second = std::max(at->second, entry.version());
      }
      if (domain.empty() && entry.version() > kNewestOpset)
        diagnostics_->refuse(
            {}, {},
            fmt::format("{} uses opset {}; up to {} is supported", who, entry.version(), kNewestOpset),
            "export it for an older opset");
      if (entry.version() < 1)
        diagnostics_->refuse({}, {},
                             fmt::format("{} uses opset {}, which does not exist", who, entry.version()),
                             "export it again");
    }
    return result;
  }

  // Exporters write an unknown dimension as -1.
  ImportedValueInfo value_info(const onnx_pb::ValueInfoProto& proto) const {
    ImportedValueInfo info;
    info.name = proto.name();
    const onnx_pb::TypeProto& type = proto.type();
    switch (type.value_case()) {
      case onnx_pb::TypeProto::kTensorType:
        break;
      case onnx_pb::TypeProto::kSequenceType:
        info.other = "sequence";
        return info;
      case onnx_pb::TypeProto::kMapType:
        info.other = "map";
        return info;
      case onnx_pb::TypeProto::kOptionalType:
        info.other = "optional";
        return info;
      case onnx_pb::TypeProto::kSparseTensorType:
        info.other = "sparse tensor";
        return info;
      case onnx_pb::TypeProto::kOpaqueType:
        info.other = "opaque type";
        return info;
      default:
        return info;
    }
    info.onnx_type = type.tensor_type().elem_type();
    info.dtype = dtype_from_onnx(info.onnx_type);
    info.has_shape = type.tensor_type().has_shape();
    for (const auto& d : type.tensor_type().shape().dim()) {
      ImportedDim dim;
      if (d.has_dim_value()) dim.value = d.dim_value();
      // torch.onnx writes sizes that are not open as a name, too: "16".
      if (d.has_dim_param()) dim.value = size_of(d.dim_param());
      if (d.has_dim_param() && dim.value < 0) dim.symbol = d.dim_param();
      info.dims.push_back(std::move(dim));
    }
    return info;
  }

  ImportedAttribute attribute(const onnx_pb::AttributeProto& proto, const ImportedNode& node,
                              const Opsets& opsets) {
    ImportedAttribute a;
    a.name = proto.name();
    a.reference = proto.ref_attr_name();
    a.f = proto.f();
    a.i = proto.i();
    a.s = proto.s();
    a.floats.assign(proto.floats().begin(), proto.floats().end());
    a.ints.assign(proto.ints().begin(), proto.ints().end());
    a.strings.assign(proto.strings().begin(), proto.strings().end());
    const std::string op = qualified_op(node);
    a.kind = kind_of(proto);
    if (a.kind == Kind::kTensor) {
      if (proto.type() == onnx_pb::AttributeProto::SPARSE_TENSOR ||
          (!proto.has_t() && proto.has_sparse_tensor()))
        a.tensors.push_back(tensors_.decode(proto.sparse_tensor(), node.name, op));
      else
        a.tensors.push_back(tensors_.decode(proto.t(), node.name, op));
    }
    if (a.kind == Kind::kTensors)
      for (const auto& t : proto.tensors()) a.tensors.push_back(tensors_.decode(t, node.name, op));
    if (a.kind == Kind::kGraph) a.graphs.push_back(std::make_shared<ImportedGraph>(body(proto.g(), opsets)));
    if (a.kind == Kind::kGraphs)
      for (const auto& g : proto.graphs())
        a.graphs.push_back(std::make_shared<ImportedGraph>(body(g, opsets)));
    return a;
  }

  static Kind kind_of(const onnx_pb::AttributeProto& p) {
    constexpr Kind kKinds[] = {Kind::kNone,   Kind::kFloat,  Kind::kInt,   Kind::kString,  Kind::kTensor,
                               Kind::kGraph,  Kind::kFloats, Kind::kInts,  Kind::kStrings, Kind::kTensors,
                               Kind::kGraphs, Kind::kTensor, Kind::kOther, Kind::kOther,   Kind::kOther};
    if (p.type() > 0 && p.type() < static_cast<int>(std::size(kKinds))) return kKinds[p.type()];
    // The oldest files give no kind: it follows from the field that is set.
    if (p.has_f()) return Kind::kFloat;
    if (p.has_i()) return Kind::kInt;
    if (p.has_s()) return Kind::kString;
    if (p.has_t() || p.has_sparse_tensor()) return Kind::kTensor;
    if (p.has_g()) return Kind::kGraph;
    if (p.floats_size() > 0) return Kind::kFloats;
    if (p.ints_size() > 0) return Kind::kInts;
    if (p.strings_size() > 0) return Kind::kStrings;
    if (p.tensors_size() > 0) return Kind::kTensors;
    if (p.graphs_size() > 0) return Kind::kGraphs;
    return Kind::kNone;
  }

  ImportedNode node(const onnx_pb::NodeProto& proto, const Opsets& opsets) {
    ImportedNode n;
    n.place = fmt::format("{}{}", places_, next_place_++);
    n.domain = clean_domain(proto.domain());
    n.op_type = proto.op_type();
    n.overload = proto.overload();
    n.inputs.assign(proto.input().begin(), proto.input().end());
    n.outputs.assign(proto.output().begin(), proto.output().end());
    n.name = unique_name(proto.name(), n.op_type);
    if (!proto.doc_string().empty()) node_docs_[n.name] = proto.doc_string();
    const auto found = opsets.find(n.domain);
    n.opset = found == opsets.end() ? 1 : static_cast<int>(std::min<int64_t>(found->second, 1 << 20));
    if (found == opsets.end() && n.domain.empty() && !said_missing_) {
      said_missing_ = true;
      diagnostics_->warn(n.name, n.op_type, "the model does not import ai.onnx; opset 1 is assumed");
    }
    std::set<std::string> seen;
    for (const auto& a : proto.attribute()) {
      if (!seen.insert(a.name()).second)
        diagnostics_->refuse(n.name, qualified_op(n), fmt::format("attribute '{}' is given twice", a.name()),
                             "remove one from the model");
      n.attributes.push_back(attribute(a, n, opsets));
    }
    return n;
  }

  // Names that the model gives are kept; made up (or repeated) ones count.
  std::string unique_name(const std::string& given, const std::string& op) {
    if (!given.empty() && names_.insert(given).second) return given;
    const std::string stem = given.empty() ? op : given;
    std::string name;
    do name = fmt::format("{}_{}", stem, counters_[stem]++);
    while (!names_.insert(name).second);
    return name;
  }

  ImportedGraph body(const onnx_pb::GraphProto& proto, const Opsets& opsets) {
    ImportedGraph g = graph(proto, opsets);
    forget_unknown_names(g, true);
    return g;
  }

  ImportedGraph graph(const onnx_pb::GraphProto& proto, const Opsets& opsets) {
    ImportedGraph g;
    g.name = proto.name();
    for (const auto& t : proto.initializer()) g.initializers.push_back(tensors_.decode(t, {}, "initializer"));
    for (const auto& t : proto.sparse_initializer())
      g.initializers.push_back(tensors_.decode(t, {}, "initializer"));
    std::map<std::string, const ImportedTensor*> data;
    for (const ImportedTensor& t : g.initializers) data[t.name] = &t;
    for (const auto& v : proto.input()) {
      ImportedValueInfo info = value_info(v);
      const auto found = data.find(info.name);
      if (found == data.end()) {
        for (ImportedDim& dim : info.dims) {
          if (dim.value < -1)
            diagnostics_->refuse(
                {}, {}, fmt::format("input '{}' is declared with a dimension of {}", info.name, dim.value),
                "declare a positive size, or a name and --dim NAME=N");
        }
        g.inputs.push_back(std::move(info));
      } else {
        if (info.dtype != DType::kNone && info.dtype != found->second->dtype)
          diagnostics_->warn(
              {}, {},
              fmt::format("'{}' is declared {} and its data is {}: the data's type is used", info.name,
                          onnx_type_name(info.onnx_type), onnx_type_name(found->second->onnx_type)));
        g.initialized_inputs.push_back(std::move(info));
      }
    }
    for (const auto& v : proto.output()) g.outputs.push_back(value_info(v));
    for (const auto& v : proto.value_info()) g.value_info.push_back(value_info(v));
    g.nodes.reserve(static_cast<size_t>(proto.node_size()));
    for (const auto& n : proto.node()) g.nodes.push_back(node(n, opsets));
    return g;
  }

  ImportedFunction function(const onnx_pb::FunctionProto& proto, const Opsets& model_opsets) {
    ImportedFunction f;
    f.domain = clean_domain(proto.domain());
    f.name = proto.name();
    f.overload = proto.overload();
    f.inputs.assign(proto.input().begin(), proto.input().end());
    f.outputs.assign(proto.output().begin(), proto.output().end());
    f.attributes.assign(proto.attribute().begin(), proto.attribute().end());
    f.opsets = opsets(proto.opset_import(), fmt::format("function '{}'", f.name));
    for (const auto& [domain, version] : model_opsets) f.opsets.emplace(domain, version);
    ImportedNode self;
    self.domain = f.domain;
    self.op_type = f.name;
    self.name = f.name;
    for (const auto& n : proto.node()) f.nodes.push_back(node(n, f.opsets));
    for (const auto& a : proto.attribute_proto())
      f.attribute_defaults.push_back(attribute(a, self, f.opsets));
    return f;
  }

  TensorDecoder tensors_;
  std::map<std::string, std::string> node_docs_;
  Diagnostics* diagnostics_;
  std::set<std::string> names_;
  std::map<std::string, int> counters_;
  bool said_missing_ = false;
  std::string places_;  // the beginning of ImportedNode::place
  size_t next_place_ = 0;
};

}  // namespace

std::optional<ImportedModel> read_model(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                                        const DataFolders& folders, Diagnostics& diagnostics) {
  std::string lean, fault;
  if (!scan_model(bytes, &lean, &fault)) {
    diagnostics.refuse({}, {}, fault, kDamaged);
    return std::nullopt;
  }
  onnx_pb::ModelProto proto;
  if (!proto.ParseFromString(lean)) {
    diagnostics.refuse({}, {}, "the file is damaged: it is not a well-formed ONNX model", kDamaged);
    return std::nullopt;
  }
  lean.clear();
  lean.shrink_to_fit();
  if (proto.graph().node_size() == 0 && proto.graph().output_size() == 0) {
    diagnostics.refuse({}, {}, "not an ONNX model: its graph has neither nodes nor outputs", kDamaged);
    return std::nullopt;
  }
  return Reader(TensorDecoder(std::move(owner), bytes, folders, diagnostics), diagnostics).model(proto);
}

std::optional<ImportedModel> import_model(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                                          const DataFolders& folders, Diagnostics& diagnostics,
                                          size_t most_inlined) {
  std::optional<ImportedModel> model = read_model(std::move(owner), bytes, folders, diagnostics);
  if (!model || !inline_functions(*model, diagnostics, most_inlined)) return std::nullopt;
  check_and_sort(*model, diagnostics);
  if (diagnostics.count(Severity::kRefusal) == 0) join_grouped_products(*model);
  return model;
}

std::optional<ImportedModel> import_model(const std::filesystem::path& path, Diagnostics& diagnostics,
                                          size_t most_inlined) {
  const InputFile input(path);
  const auto file = MappedFile::open(input);
  if (format::read_header(file->bytes).ok()) {
    diagnostics.refuse({}, {}, fmt::format("{} is a .sinter file, the result of a conversion", path.string()),
                       "give the ONNX model that it was made from");
    return std::nullopt;
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return import_model(file, file->bytes, {folder, input.real_path().parent_path()}, diagnostics,
                      most_inlined);
}

}  // namespace sinter::convert
