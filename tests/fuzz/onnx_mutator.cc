// Other ONNX models out of one: nodes, attributes, wiring, types, dims, constants, functions and subgraphs
// changed in the parsed message.
#include <algorithm>
#include <iterator>
#include <string>

#include "converter/import/read/onnx.pb.h"
#include "tests/fuzz/targets.h"

namespace sinter::fuzz {

Blob mutate_onnx(View bytes, size_t most, Random& random, const ByteMutator& by_bytes);

namespace {

using onnx_pb::AttributeProto;
using onnx_pb::GraphProto;
using onnx_pb::ModelProto;
using onnx_pb::NodeProto;
using onnx_pb::TensorProto;

constexpr const char* kOps[] = {"Add",
                                "Mul",
                                "Div",
                                "Pow",
                                "Mod",
                                "Where",
                                "Clip",
                                "Relu",
                                "Gelu",
                                "Softmax",
                                "LogSoftmax",
                                "Conv",
                                "ConvTranspose",
                                "MatMul",
                                "Gemm",
                                "Einsum",
                                "MaxPool",
                                "AveragePool",
                                "GlobalAveragePool",
                                "LpPool",
                                "Resize",
                                "Upsample",
                                "GridSample",
                                "RoiAlign",
                                "AffineGrid",
                                "Pad",
                                "Reshape",
                                "Flatten",
                                "Squeeze",
                                "Unsqueeze",
                                "Transpose",
                                "Slice",
                                "Split",
                                "Concat",
                                "Tile",
                                "Expand",
                                "Gather",
                                "GatherND",
                                "GatherElements",
                                "ScatterND",
                                "ScatterElements",
                                "DepthToSpace",
                                "SpaceToDepth",
                                "Shape",
                                "Size",
                                "ConstantOfShape",
                                "Range",
                                "OneHot",
                                "EyeLike",
                                "Trilu",
                                "NonZero",
                                "Unique",
                                "TopK",
                                "Cast",
                                "CastLike",
                                "QuantizeLinear",
                                "DequantizeLinear",
                                "DynamicQuantizeLinear",
                                "QLinearConv",
                                "QLinearMatMul",
                                "MatMulInteger",
                                "ConvInteger",
                                "LSTM",
                                "GRU",
                                "RNN",
                                "ReduceSum",
                                "ReduceMean",
                                "ReduceMax",
                                "ReduceLogSumExp",
                                "ArgMax",
                                "CumSum",
                                "LayerNormalization",
                                "BatchNormalization",
                                "InstanceNormalization",
                                "GroupNormalization",
                                "LRN",
                                "MeanVarianceNormalization",
                                "Attention",
                                "RotaryEmbedding",
                                "NonMaxSuppression",
                                "DFT",
                                "STFT",
                                "HannWindow",
                                "MelWeightMatrix",
                                "BlackmanWindow",
                                "Bernoulli",
                                "Dropout",
                                "Identity",
                                "If",
                                "Loop",
                                "Scan",
                                "SequenceConstruct",
                                "SequenceAt",
                                "SequenceInsert",
                                "SequenceEmpty",
                                "SplitToSequence",
                                "ConcatFromSequence",
                                "SequenceLength",
                                "Optional",
                                "BitShift",
                                "BitwiseAnd",
                                "Not",
                                "Equal",
                                "Constant",
                                "Center",
                                "CenterCropPad",
                                "Col2Im",
                                "DeformConv",
                                "ReverseSequence",
                                "Compress",
                                "Det",
                                "Hardmax",
                                "Shrink",
                                "ThresholdedRelu",
                                "NegativeLogLikelihoodLoss",
                                "SoftmaxCrossEntropyLoss",
                                "RandomNormal",
                                "MaxUnpool",
                                "MaxRoiPool",
                                "TensorScatter",
                                "Swish",
                                "RMSNormalization",
                                "StringNormalizer"};

constexpr const char* kAttributes[] = {"axis",
                                       "axes",
                                       "keepdims",
                                       "perm",
                                       "kernel_shape",
                                       "strides",
                                       "pads",
                                       "dilations",
                                       "group",
                                       "auto_pad",
                                       "output_padding",
                                       "output_shape",
                                       "ceil_mode",
                                       "count_include_pad",
                                       "epsilon",
                                       "alpha",
                                       "beta",
                                       "to",
                                       "mode",
                                       "shape",
                                       "value",
                                       "value_ints",
                                       "value_float",
                                       "body",
                                       "then_branch",
                                       "else_branch",
                                       "num_scan_inputs",
                                       "hidden_size",
                                       "direction",
                                       "activations",
                                       "clip",
                                       "layout",
                                       "equation",
                                       "blocksize",
                                       "batch_dims",
                                       "reduction",
                                       "split",
                                       "num_outputs",
                                       "block_size",
                                       "largest",
                                       "sorted",
                                       "exclusive",
                                       "reverse",
                                       "transA",
                                       "transB",
                                       "ends",
                                       "starts",
                                       "k",
                                       "size",
                                       "sampling_ratio",
                                       "output_height",
                                       "bias"};

class Mutator {
 public:
  Mutator(ModelProto* model, Random& random, const ByteMutator& by_bytes)
      : model_(*model), r_(random), by_bytes_(by_bytes) {}

  void run() {
    for (uint64_t n = 1 + r_.below(5); n > 0; --n) {
      collect();
      change();
    }
  }

 private:
  void collect(GraphProto* g) {
    graphs_.push_back(g);
    for (TensorProto& t : *g->mutable_initializer()) tensors_.push_back(&t);
    for (auto* list : {g->mutable_input(), g->mutable_output()})
      for (auto& v : *list) {
        infos_.push_back(&v);
        names_.push_back(v.name());
      }
    for (const TensorProto& t : g->initializer()) names_.push_back(t.name());
    for (NodeProto& n : *g->mutable_node()) collect(&n);
  }
  void collect(NodeProto* n) {
    nodes_.push_back(n);
    for (const std::string& o : n->output()) names_.push_back(o);
    for (AttributeProto& a : *n->mutable_attribute()) {
      attributes_.push_back(&a);
      if (a.has_t()) tensors_.push_back(a.mutable_t());
      if (a.has_g()) collect(a.mutable_g());
      for (GraphProto& g : *a.mutable_graphs()) collect(&g);
    }
  }
  void collect() {
    graphs_.clear(), nodes_.clear(), tensors_.clear(), infos_.clear(), attributes_.clear();
    names_ = {""};
    collect(model_.mutable_graph());
    for (auto& f : *model_.mutable_functions())
      for (NodeProto& n : *f.mutable_node()) collect(&n);
  }

  void change() {
    switch (r_.below(14)) {
      case 0:
      case 1:
        return wiring();
      case 2:
      case 3:
      case 4:
        return attribute();
      case 5:
        return node_list();
      case 6:
        if (!nodes_.empty())
          r_.pick(nodes_)->set_op_type(r_.one_in(3) ? r_.pick(nodes_)->op_type() : r_.pick(kOps));
        return;
      case 7:
        return new_node();
      case 8:
      case 9:
        return tensor();
      case 10:
      case 11:
        return info();
      case 12:
        return functions();
      default:
        return versions();
    }
  }

  std::string some_name() { return r_.pick(names_); }

  void wiring() {
    if (nodes_.empty()) return;
    NodeProto& n = *r_.pick(nodes_);
    auto& list = r_.one_in(4) ? *n.mutable_output() : *n.mutable_input();
    if (list.empty() || r_.one_in(5)) return void(list.Add(some_name()));
    if (r_.one_in(5)) return list.RemoveLast();
    list[static_cast<int>(r_.index(static_cast<size_t>(list.size())))] = some_name();
  }

  void ints(google::protobuf::RepeatedField<int64_t>* list) {
    if (list->empty() || r_.one_in(4)) {
      if (list->size() < 32)
        list->Add(r_.one_in(2) ? static_cast<int64_t>(r_.below(4)) : r_.pick(kSharpInts));
    } else if (r_.one_in(4)) {
      list->RemoveLast();
    } else {
      int64_t& i = *list->Mutable(static_cast<int>(r_.index(static_cast<size_t>(list->size()))));
      i = other_int(i, r_);
    }
  }

  void attribute() {
    if (nodes_.empty()) return;
    NodeProto& n = *r_.pick(nodes_);
    if (n.attribute_size() == 0 || r_.one_in(8)) {
      AttributeProto& a = *n.add_attribute();
      if (!attributes_.empty() && r_.one_in(2))
        a = AttributeProto(*r_.pick(attributes_));
      else
        a.set_type(static_cast<int>(1 + r_.below(8)));
      if (!r_.one_in(3)) a.set_name(r_.pick(kAttributes));
      return;
    }
    const int index = static_cast<int>(r_.index(static_cast<size_t>(n.attribute_size())));
    if (r_.one_in(10)) {
      n.mutable_attribute()->SwapElements(index, n.attribute_size() - 1);
      return n.mutable_attribute()->RemoveLast();
    }
    AttributeProto& a = *n.mutable_attribute(index);
    if (r_.one_in(12)) return a.set_type(static_cast<int>(r_.below(16)));
    if (r_.one_in(20)) return a.set_ref_attr_name(r_.pick(kAttributes));
    if (r_.one_in(16)) return a.set_name(r_.pick(kAttributes));
    switch (a.type()) {
      case AttributeProto::FLOAT:
        return a.set_f(static_cast<float>(r_.pick(kSharpFloats)));
      case AttributeProto::INT:
        return a.set_i(other_int(a.i(), r_));
      case AttributeProto::STRING: {
        Blob s(a.s().begin(), a.s().end());
        by_bytes_(&s, s.size() + 8);
        return a.set_s(std::string(s.begin(), s.end()));
      }
      case AttributeProto::FLOATS:
        return a.add_floats(static_cast<float>(r_.pick(kSharpFloats)));
      case AttributeProto::INTS:
        return ints(a.mutable_ints());
      case AttributeProto::STRINGS:
        if (a.strings_size() > 0 && r_.one_in(2)) return a.mutable_strings()->RemoveLast();
        return a.add_strings(a.strings_size() > 0 ? a.strings(0) : "Tanh");
      case AttributeProto::TENSOR:
        return change(a.mutable_t());
      default:
        return;
    }
  }

  void node_list() {
    GraphProto& g = *r_.pick(graphs_);
    if (g.node_size() == 0) return;
    const int at = static_cast<int>(r_.index(static_cast<size_t>(g.node_size())));
    const int other = static_cast<int>(r_.index(static_cast<size_t>(g.node_size())));
    if (r_.one_in(3)) return g.mutable_node()->SwapElements(at, other);
    if (r_.one_in(2)) {
      g.mutable_node()->SwapElements(at, g.node_size() - 1);
      return g.mutable_node()->RemoveLast();
    }
    if (g.ByteSizeLong() > 50000) return;
    NodeProto copy = g.node(at);
    for (std::string& o : *copy.mutable_output()) o += "_";
    *g.add_node() = std::move(copy);
  }

  // Anything, applied to what there is; its result becomes an output.
  void new_node() {
    GraphProto& g = *r_.pick(graphs_);
    NodeProto& n = *g.add_node();
    n.set_op_type(r_.pick(kOps));
    for (uint64_t i = 1 + r_.below(4); i > 0; --i) n.add_input(some_name());
    n.add_output("new" + std::to_string(r_.below(1000)));
    if (r_.one_in(3)) n.add_output("more" + std::to_string(r_.below(1000)));
    if (!attributes_.empty())
      for (uint64_t i = r_.below(3); i > 0; --i) *n.add_attribute() = AttributeProto(*r_.pick(attributes_));
    if (g.output_size() > 0 && r_.one_in(2)) {
      auto& o = *g.mutable_output(static_cast<int>(r_.index(static_cast<size_t>(g.output_size()))));
      o.set_name(n.output(0));
      if (r_.one_in(2)) o.clear_type();
    }
    if (r_.one_in(2) && g.node_size() > 1)
      g.mutable_node()->SwapElements(g.node_size() - 1,
                                     static_cast<int>(r_.index(static_cast<size_t>(g.node_size()))));
  }

  void tensor() {
    if (!tensors_.empty()) change(r_.pick(tensors_));
  }
  void change(TensorProto* t) {
    switch (r_.below(7)) {
      case 0:
        return ints(t->mutable_dims());
      case 1:
        return t->set_data_type(static_cast<int>(r_.below(26)));
      case 2:
        return t->set_name(some_name());
      case 3: {
        Blob raw(t->raw_data().begin(), t->raw_data().end());
        by_bytes_(&raw, raw.size() + (r_.one_in(3) ? 8 : 0));
        return t->set_raw_data(raw.data(), raw.size());
      }
      case 4: {
        std::string& raw = *t->mutable_raw_data();
        if (raw.size() < 8) return t->add_int64_data(r_.pick(kSharpInts));
        const int64_t sharp = r_.pick(kSharpInts);
        const size_t width = size_t{1} << r_.below(4);
        raw.replace(r_.index(raw.size() / width) * width, width,
                    std::string(reinterpret_cast<const char*>(&sharp), width));
        return;
      }
      case 5: {  // dims and data that agree
        if (t->dims_size() == 0 || t->raw_data().empty()) return;
        const int64_t d = t->dims(0);
        if (d <= 1 || t->raw_data().size() % static_cast<size_t>(d) != 0) return;
        const auto n = static_cast<int64_t>(r_.below(6));
        const size_t row = t->raw_data().size() / static_cast<size_t>(d);
        t->set_dims(0, n);
        t->mutable_raw_data()->resize(row * static_cast<size_t>(n));
        return;
      }
      default:
        if (r_.one_in(3)) {
          t->set_data_location(1);
          auto& e = *t->add_external_data();
          e.set_key("location");
          e.set_value("in.onnx");
        } else {
          t->add_int32_data(static_cast<int32_t>(r_.pick(kSharpInts)));
        }
    }
  }

  void info() {
    if (infos_.empty()) return;
    auto& v = *r_.pick(infos_);
    if (r_.one_in(8)) return v.set_name(some_name());
    if (r_.one_in(16)) return v.clear_type();
    auto& type = *v.mutable_type()->mutable_tensor_type();
    if (r_.one_in(4)) return type.set_elem_type(static_cast<int>(r_.below(26)));
    auto& dims = *type.mutable_shape()->mutable_dim();
    if (dims.empty() || r_.one_in(6)) return dims.Add()->set_dim_value(static_cast<int64_t>(r_.below(5)));
    if (r_.one_in(6)) return dims.RemoveLast();
    auto& d = dims[static_cast<int>(r_.index(static_cast<size_t>(dims.size())))];
    if (r_.one_in(10)) return d.set_dim_param("N");
    d.set_dim_value(r_.one_in(2) ? static_cast<int64_t>(r_.below(9)) : other_int(d.dim_value(), r_));
  }

  // A function of some nodes, called by others.
  void functions() {
    if (nodes_.empty()) return;
    if (model_.functions_size() == 0 || (model_.functions_size() < 6 && r_.one_in(3))) {
      auto& f = *model_.add_functions();
      f.set_name("F" + std::to_string(model_.functions_size()));
      f.set_domain("local");
      f.add_input("a");
      f.add_output("b");
      const int calls = 1 + static_cast<int>(r_.below(4));
      for (int i = 0; i < calls; ++i) {
        NodeProto& n = *f.add_node();
        n = NodeProto(*r_.pick(nodes_));
        if (r_.one_in(2)) {
          n.Clear();
          n.set_domain("local");
          n.set_op_type("F" + std::to_string(1 + r_.below(static_cast<uint64_t>(model_.functions_size()))));
          n.add_input("a");
        }
        for (std::string& in : *n.mutable_input())
          if (r_.one_in(2)) in = "a";
        n.clear_output();
        n.add_output(i + 1 == calls ? "b" : "t" + std::to_string(i));
      }
      *f.mutable_opset_import() = model_.opset_import();
    }
    NodeProto& n = *r_.pick(nodes_);
    n.set_domain("local");
    n.set_op_type("F" + std::to_string(1 + r_.below(static_cast<uint64_t>(model_.functions_size()))));
  }

  void versions() {
    if (model_.opset_import_size() == 0) return;
    auto& o = *model_.mutable_opset_import(
        static_cast<int>(r_.index(static_cast<size_t>(model_.opset_import_size()))));
    if (r_.one_in(8)) return o.set_domain(r_.one_in(2) ? "com.microsoft" : "");
    o.set_version(r_.one_in(8) ? r_.pick(kSharpInts) : static_cast<int64_t>(1 + r_.below(28)));
  }

  ModelProto& model_;
  Random& r_;
  const ByteMutator& by_bytes_;
  std::vector<GraphProto*> graphs_;
  std::vector<NodeProto*> nodes_;
  std::vector<TensorProto*> tensors_;
  std::vector<onnx_pb::ValueInfoProto*> infos_;
  std::vector<AttributeProto*> attributes_;
  std::vector<std::string> names_;
};

}  // namespace

Blob mutate_onnx(View bytes, size_t most, Random& random, const ByteMutator& by_bytes) {
  ModelProto model;
  if (!random.one_in(12) && model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    Mutator(&model, random, by_bytes).run();
    std::string out;
    if (model.SerializePartialToString(&out) && !out.empty() && out.size() <= most)
      return {out.begin(), out.end()};
  }
  Blob out(bytes.begin(), bytes.end());
  by_bytes(&out, most);
  return out;
}

}  // namespace sinter::fuzz
