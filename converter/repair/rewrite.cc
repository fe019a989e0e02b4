#include "converter/repair/rewrite.h"

#include <fmt/format.h>

#include "converter/diagnostics/errors.h"
#include "converter/import/read/imported_graph.h"
#include "converter/import/read/onnx.pb.h"
#include "converter/repair/wire.h"

namespace sinter::convert {
namespace {

// The numbers of ONNX's fields.
namespace model_field {
constexpr uint32_t kGraph = 7, kOpset = 8, kFunction = 25;
}
namespace graph_field {
constexpr uint32_t kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12, kInfo = 13;
}
namespace node_field {
constexpr uint32_t kInput = 1, kOutput = 2, kOperator = 4, kAttribute = 5;
}
namespace function_field {
constexpr uint32_t kName = 1, kOutput = 5, kNode = 7;
}
namespace attribute_field {
constexpr uint32_t kName = 1, kGraph = 6, kGraphs = 11;
}

template <class Message>
Message parsed(std::span<const std::byte> bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw ModelFileError("the ONNX file is damaged, or changed while it was read");
  return message;
}

// Replaces the data of a tensor; its other fields stay.
void set_data(const NewTensor& made, onnx_pb::TensorProto* t) {
  if (!made.name.empty()) t->set_name(made.name);
  t->set_data_type(static_cast<int32_t>(dtype_to_onnx(made.data->dtype())));
  t->clear_float_data(), t->clear_int32_data(), t->clear_int64_data();
  t->clear_double_data(), t->clear_uint64_data(), t->clear_string_data();
  const LoadedBytes data = made.data->load();
  t->set_raw_data(data.bytes.data(), data.bytes.size());
}

class Rewriter {
 public:
  Rewriter(const RootEdits& edits, int64_t opset) : edits_(edits), opset_(opset) {}

  WireText graph(std::span<const std::byte> bytes, const std::string& key) {
    static const GraphEdits kNone;
    const auto at = edits_.graphs.find(key);
    const GraphEdits& e = at == edits_.graphs.end() ? kNone : at->second;
    WireText out;
    std::map<size_t, WireText> nodes;  // of a graph that is sorted, by place
    bool first = true;
    size_t output = 0;
    const std::vector<WireField> fields = wire_fields(bytes);
    // In the order of the file, in which the places count.
    for (const WireField& f : fields)
      if (f.number == graph_field::kNode && !e.order.empty()) {
        const size_t place = next_;
        nodes.emplace(place, node(f, graph_field::kNode));
      }
    for (const WireField& f : fields) {
      switch (f.number) {
        case graph_field::kNode:
          if (first) {
            for (const NewCast& cast : e.first) add_cast(graph_field::kNode, cast, &out);
            for (const size_t place : e.order) {
              const auto made = nodes.find(place);
              if (made == nodes.end()) throw changed();
              out.add(std::move(made->second));
            }
          }
          first = false;
          if (e.order.empty()) out.add(node(f, graph_field::kNode));
          break;
        case graph_field::kInitializer:
          tensor(f, e, &out);
          break;
        case graph_field::kInput:
          declaration(f, find(e.inputs, wire_string(f.bytes, 1)), nullptr, &out);
          break;
        case graph_field::kInfo:
          declaration(f, find(e.infos, wire_string(f.bytes, 1)), nullptr, &out);
          break;
        case graph_field::kOutput: {
          const auto name = e.output_names.find(output);
          declaration(f, find(e.outputs, output), name == e.output_names.end() ? nullptr : &name->second,
                      &out);
          ++output;
          break;
        }
        default:
          out.add(f.whole);
      }
    }
    // A body without nodes.
    if (first)
      for (const NewCast& cast : e.first) add_cast(graph_field::kNode, cast, &out);
    return out;
  }

  WireText function(std::span<const std::byte> bytes, const std::string& name) {
    static const GraphEdits kNone;
    const auto at = edits_.graphs.find("");
    const GraphEdits& e = at == edits_.graphs.end() ? kNone : at->second;
    WireText out;
    bool first = true;
    for (const WireField& f : wire_fields(bytes)) {
      if (f.number == function_field::kNode) {
        if (first)
          for (const NewCast& cast : e.first) add_cast(function_field::kNode, cast, &out);
        first = false;
        out.add(node(f, function_field::kNode));
      } else if (f.number == function_field::kName) {
        out.add_field(function_field::kName, name);
      } else {
        out.add(f.whole);
      }
    }
    return out;
  }

 private:
  static ModelFileError changed() { return ModelFileError("the ONNX file has changed while it was read"); }

  template <class Map, class Key>
  static OnnxType find(const Map& map, const Key& key) {
    const auto at = map.find(typename Map::key_type(key));
    return at == map.end() ? 0 : at->second;
  }

  void add_cast(uint32_t field, const NewCast& cast, WireText* out) const {
    onnx_pb::NodeProto n;
    n.add_input(cast.input);
    n.add_output(cast.output);
    n.set_name(cast.name);
    n.set_op_type("Cast");
    onnx_pb::AttributeProto* to = n.add_attribute();
    to->set_name("to");
    if (opset_ < 6) {
      std::string name = onnx_type_name(cast.to);
      if (name == "float32") name = "float";
      if (name == "float64") name = "double";
      for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      to->set_s(name), to->set_type(onnx_pb::AttributeProto::STRING);
    } else {
      to->set_i(cast.to), to->set_type(onnx_pb::AttributeProto::INT);
    }
    out->add_field(field, n.SerializeAsString());
  }

  // A node as a field, with what follows it.
  WireText node(const WireField& field, uint32_t number) {
    const size_t place = next_++;
    const auto at = edits_.nodes.find(place);
    const NodeEdits* e = at == edits_.nodes.end() ? nullptr : &at->second;
    WireText content;
    size_t input = 0, output = 0, bodies = 0;
    bool valued = false;
    for (const WireField& f : wire_fields(field.bytes)) {
      const auto renamed = [&](const std::map<size_t, std::string>& names, size_t i) {
        const auto name = names.find(i);
        if (name == names.end())
          content.add(f.whole);
        else
          content.add_field(f.number, name->second);
      };
      if (f.number == node_field::kAttribute) {
        const std::string_view name = wire_string(f.bytes, attribute_field::kName);
        if (e != nullptr && e->value && name.starts_with("value")) {
          value(f, *e->value, &content), valued = true;
          continue;
        }
        content.add(attribute(f, place, &bodies));
      } else if (e != nullptr && f.number == node_field::kInput) {
        renamed(e->inputs, input++);
      } else if (e != nullptr && f.number == node_field::kOutput) {
        renamed(e->outputs, output++);
      } else if (e != nullptr && f.number == node_field::kOperator && !e->op_type.empty()) {
        content.add_field(f.number, e->op_type);
      } else {
        content.add(f.whole);
      }
    }
    if (e != nullptr && e->value && !valued) value({}, *e->value, &content);
    WireText out;
    if (content.size() == field.bytes.size() && content.parts().size() == 1)
      out.add(field.whole);
    else
      out.add_field(number, std::move(content));
    if (e != nullptr)
      for (const NewCast& cast : e->after) add_cast(number, cast, &out);
    return out;
  }

  WireText attribute(const WireField& field, size_t place, size_t* bodies) {
    bool nested = false;
    const std::vector<WireField> fields = wire_fields(field.bytes);
    for (const WireField& f : fields)
      nested |= f.text && (f.number == attribute_field::kGraph || f.number == attribute_field::kGraphs);
    WireText out, content;
    if (!nested) {
      out.add(field.whole);
      return out;
    }
    for (const WireField& f : fields) {
      if (f.text && (f.number == attribute_field::kGraph || f.number == attribute_field::kGraphs))
        content.add_field(f.number, graph(f.bytes, body_key(place, (*bodies)++)));
      else
        content.add(f.whole);
    }
    out.add_field(node_field::kAttribute, std::move(content));
    return out;
  }

  static void value(const WireField& field, const NewTensor& made, WireText* out) {
    onnx_pb::AttributeProto a;
    if (field.text) {
      const auto before = parsed<onnx_pb::AttributeProto>(field.bytes);
      if (before.has_t()) *a.mutable_t() = before.t();
    }
    a.set_name("value"), a.set_type(onnx_pb::AttributeProto::TENSOR);
    onnx_pb::TensorProto* t = a.mutable_t();
    set_data({"", made.data}, t);
    t->clear_dims();
    for (const int64_t d : made.data->dims()) t->add_dims(d);
    out->add_field(node_field::kAttribute, a.SerializeAsString());
  }

  static void tensor(const WireField& field, const GraphEdits& e, WireText* out) {
    const std::string name(e.retyped.empty() && e.clones.empty() ? "" : wire_string(field.bytes, 8));
    const auto retyped = e.retyped.find(name);
    const auto clones = e.clones.find(name);
    const auto add = [&](const NewTensor& made) {
      auto t = parsed<onnx_pb::TensorProto>(field.bytes);
      set_data(made, &t);
      out->add_field(graph_field::kInitializer, t.SerializeAsString());
    };
    if (name.empty() || retyped == e.retyped.end())
      out->add(field.whole);
    else
      add(retyped->second);
    if (!name.empty() && clones != e.clones.end())
      for (const NewTensor& made : clones->second) add(made);
  }

  static void declaration(const WireField& field, OnnxType type, const std::string* name, WireText* out) {
    if (type == 0 && name == nullptr) return out->add(field.whole);
    auto info = parsed<onnx_pb::ValueInfoProto>(field.bytes);
    if (type != 0) info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    if (name != nullptr) info.set_name(*name);
    out->add_field(field.number, info.SerializeAsString());
  }

  const RootEdits& edits_;
  int64_t opset_;
  size_t next_ = 0;  // the place of the next node
};

// The imports of a function, or the model's.
int64_t opset_in(std::span<const std::byte> message, uint32_t field) {
  int64_t version = 1;
  for (const WireField& f : wire_fields(message)) {
    if (f.number != field || !f.text) continue;
    const auto entry = parsed<onnx_pb::OperatorSetIdProto>(f.bytes);
    if (entry.domain().empty() || entry.domain() == "ai.onnx") version = std::max(version, entry.version());
  }
  return version;
}

}  // namespace

void rewrite_model(std::span<const std::byte> file, const ModelEdits& edits, const WriteBytes& write) {
  WireText out;
  size_t function = 0, graphs = 0;
  const int64_t opset = opset_in(file, model_field::kOpset);
  for (const WireField& f : wire_fields(file)) {
    if (f.number == model_field::kGraph && f.text) {
      if (++graphs > 1) throw ModelFileError("the ONNX file has several graphs; export it again");
      out.add_field(f.number, Rewriter(edits.main, opset).graph(f.bytes, ""));
    } else if (f.number == model_field::kFunction && f.text) {
      const auto at = edits.functions.find(function++);
      if (at == edits.functions.end() || at->second.empty()) {
        out.add(f.whole);
        continue;
      }
      const int64_t own = opset_in(f.bytes, 9);
      for (const ModelEdits::Function& variant : at->second)
        out.add_field(f.number, Rewriter(variant.edits, own).function(f.bytes, variant.name));
    } else if (f.number == model_field::kOpset && f.text && edits.opset) {
      auto entry = parsed<onnx_pb::OperatorSetIdProto>(f.bytes);
      if (entry.domain().empty() || entry.domain() == "ai.onnx") entry.set_version(*edits.opset);
      out.add_field(f.number, entry.SerializeAsString());
    } else {
      out.add(f.whole);
    }
  }
  for (const WireText::Part& part : out.parts()) {
    if (const auto* kept = std::get_if<0>(&part))
      write(kept->data(), kept->size());
    else
      write(std::get<1>(part).data(), std::get<1>(part).size());
  }
}

}  // namespace sinter::convert
