// The ONNX front end: element types, external data, functions, order, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "converter/import/read/onnx.pb.h"
#include "converter/import/read/reader.h"

namespace sinter::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx_pb::NodeProto* add_node(onnx_pb::GraphProto* g, const std::string& op,
                             const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                             const std::string& name = {}) {
  onnx_pb::NodeProto* n = g->add_node();
  n->set_op_type(op);
  n->set_name(name);
  for (const auto& i : inputs) n->add_input(i);
  for (const auto& o : outputs) n->add_output(o);
  return n;
}

void add_value(onnx_pb::ValueInfoProto* v, const std::string& name) {
  v->set_name(name);
  auto* t = v->mutable_type()->mutable_tensor_type();
  t->set_elem_type(1);
  t->mutable_shape()->add_dim()->set_dim_value(2);
  t->mutable_shape()->add_dim()->set_dim_param("N");
}

// x -> y, of opset 17.
onnx_pb::ModelProto frame() {
  onnx_pb::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  add_value(m.mutable_graph()->add_input(), "x");
  add_value(m.mutable_graph()->add_output(), "y");
  return m;
}

struct Imported {
  std::optional<ImportedModel> model;
  Diagnostics diagnostics;
  std::string text() const { return diagnostics.to_text(); }
};

Imported import(const std::string& bytes, const std::filesystem::path& folder = {}) {
  Imported result;
  auto held = std::make_shared<const std::string>(bytes);
  result.model =
      import_model(held, std::as_bytes(std::span(held->data(), held->size())), folder, result.diagnostics);
  return result;
}
Imported import(const onnx_pb::ModelProto& m, const std::filesystem::path& folder = {}) {
  return import(m.SerializeAsString(), folder);
}

TEST(OnnxReader, ReadsAPlainGraph) {
  auto m = frame();
  auto* n = add_node(m.mutable_graph(), "LeakyRelu", {"x"}, {"y"});
  auto* a = n->add_attribute();
  a->set_name("alpha");
  a->set_type(onnx_pb::AttributeProto::FLOAT);
  a->set_f(0.5f);
  const Imported r = import(m);
  ASSERT_TRUE(r.model) << r.text();
  EXPECT_FALSE(r.diagnostics.refused()) << r.text();
  const ImportedGraph& g = r.model->graph;
  ASSERT_EQ(g.nodes.size(), 1u);
  EXPECT_EQ(g.nodes[0].name, "LeakyRelu_0");
  EXPECT_EQ(g.nodes[0].opset, 17);
  EXPECT_EQ(g.nodes[0].find("alpha")->f, 0.5f);
  ASSERT_EQ(g.inputs.size(), 1u);
  EXPECT_EQ(g.inputs[0].dims[0].value, 2);
  EXPECT_EQ(g.inputs[0].dims[1].symbol, "N");
}

TEST(OnnxReader, LongTensorsStayInTheFile) {
  auto m = frame();
  add_node(m.mutable_graph(), "Add", {"x", "w"}, {"y"});
  auto* t = m.mutable_graph()->add_initializer();
  t->set_name("w");
  t->set_data_type(1);
  t->add_dims(1000);
  std::vector<float> data(1000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  t->set_raw_data(data.data(), data.size() * sizeof(float));
  auto held = std::make_shared<const std::string>(m.SerializeAsString());
  Diagnostics d;
  const auto model = import_model(held, std::as_bytes(std::span(held->data(), held->size())), {}, d);
  ASSERT_TRUE(model) << d.to_text();
  const ConstantPtr c = model->graph.initializers[0].data;
  ASSERT_TRUE(c) << d.to_text();
  EXPECT_EQ(c->as_doubles()[999], 999.0);
  const auto* begin = reinterpret_cast<const char*>(c->load().bytes.data());
  EXPECT_GE(begin, held->data());
  EXPECT_LT(begin, held->data() + held->size());
}

TEST(OnnxReader, DecodesTypedData) {
  auto m = frame();
  std::vector<std::string> names;
  const auto tensor = [&](int type, int64_t n) {
    auto* t = m.mutable_graph()->add_initializer();
    names.push_back("t" + std::to_string(names.size()));
    t->set_name(names.back());
    t->set_data_type(type);
    t->add_dims(n);
    return t;
  };
  auto* t = tensor(3, 2);  // int8
  t->add_int32_data(-128), t->add_int32_data(127);
  t = tensor(10, 1);  // float16 1.0
  t->add_int32_data(0x3c00);
  t = tensor(12, 1);  // uint32
  t->add_uint64_data(4000000000u);
  t = tensor(22, 3);  // int4: 1, -1, 2
  t->add_int32_data(0xf1), t->add_int32_data(0x02);
  t = tensor(9, 2);  // bool
  t->add_int32_data(0), t->add_int32_data(1);
  t = tensor(11, 1);  // double
  t->add_double_data(0.1);
  add_node(m.mutable_graph(), "Identity", {"x"}, {"y"});
  const Imported r = import(m);
  ASSERT_TRUE(r.model);
  EXPECT_FALSE(r.diagnostics.refused()) << r.text();
  const auto& list = r.model->graph.initializers;
  EXPECT_THAT(list[0].data->as_int64s(), ElementsAre(-128, 127));
  EXPECT_EQ(list[1].data->dtype(), DType::kFloat16);
  EXPECT_EQ(static_cast<int>(list[1].data->load().bytes[1]), 0x3c);
  EXPECT_THAT(list[2].data->as_int64s(), ElementsAre(4000000000));
  EXPECT_EQ(list[3].data->load().bytes.size(), 2u);
  EXPECT_EQ(static_cast<int>(list[3].data->load().bytes[0]), 0xf1);
  EXPECT_THAT(list[4].data->as_int64s(), ElementsAre(0, 1));
  EXPECT_THAT(list[5].data->as_doubles(), ElementsAre(0.1));
}

TEST(OnnxReader, ExternalDataIsMappedAndKeptInside) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "onnx_reader_external";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "w.bin", std::ios::binary) << std::string("\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0", 16);
  const auto with = [&](const std::string& location, const std::string& offset) {
    auto m = frame();
    auto* t = m.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(7);
    t->add_dims(1);
    t->set_data_location(1);
    auto* e = t->add_external_data();
    e->set_key("location"), e->set_value(location);
    e = t->add_external_data();
    e->set_key("offset"), e->set_value(offset);
    add_node(m.mutable_graph(), "Reshape", {"x", "w"}, {"y"});
    return import(m, folder);
  };
  const Imported good = with("w.bin", "8");
  EXPECT_FALSE(good.diagnostics.refused()) << good.text();
  EXPECT_THAT(good.model->graph.initializers[0].data->as_int64s(), ElementsAre(7));
  EXPECT_THAT(with("w.bin", "9").text(), HasSubstr("has 16 bytes"));
  EXPECT_THAT(with("w.bin", "x").text(), HasSubstr("is not a number"));
  EXPECT_THAT(with("../w.bin", "0").text(), HasSubstr("not a path inside"));
  EXPECT_THAT(with("/etc/passwd", "0").text(), HasSubstr("not a path inside"));
  EXPECT_THAT(with("absent.bin", "0").text(), HasSubstr("absent.bin"));
}

TEST(OnnxReader, RefusesWhatIsNoModel) {
  EXPECT_THAT(import(std::string()).text(), HasSubstr("empty"));
  EXPECT_THAT(import(std::string("hello, this is text")).text(), HasSubstr("not an ONNX"));
  auto m = frame();
  add_node(m.mutable_graph(), "Identity", {"x"}, {"y"});
  const std::string bytes = m.SerializeAsString();
  for (size_t n = 0; n < bytes.size(); ++n) {
    const Imported r = import(bytes.substr(0, n));
    if (r.model) continue;  // cut at a field boundary: what follows the graph may be missing
    EXPECT_EQ(r.diagnostics.count(Severity::kRefusal), 1u) << n << r.text();
  }
  EXPECT_THAT(import(bytes.substr(0, bytes.size() - 10)).text(), HasSubstr("truncated"));
}

TEST(OnnxReader, ReportsEveryFaultAtOnce) {
  auto m = frame();
  auto* g = m.mutable_graph();
  m.mutable_opset_import(0)->set_version(29);
  add_node(g, "Relu", {"nowhere"}, {"a"}, "lost");
  add_node(g, "Relu", {"x"}, {"a"}, "twice");
  add_node(g, "Add", {"c", "x"}, {"b"}, "round1");
  add_node(g, "Relu", {"b"}, {"c"}, "round2");
  for (int i = 0; i < 2; ++i) {
    auto* t = g->add_initializer();
    t->set_name("w");
    t->set_data_type(1);
    t->add_dims(3);
    t->set_raw_data("1234");
  }
  const std::string text = import(m).text();
  EXPECT_THAT(text, HasSubstr("opset 29"));
  EXPECT_THAT(text, HasSubstr("node 'lost' (Relu): its input 'nowhere'"));
  EXPECT_THAT(text, HasSubstr("'a' is also produced by node 'lost'"));
  EXPECT_THAT(text, HasSubstr("cycle through 'round2', 'round1'"));
  EXPECT_THAT(text, HasSubstr("initializer 'w' is defined twice"));
  EXPECT_THAT(text, HasSubstr("4 bytes of data for float32[3], which needs 12"));
  EXPECT_THAT(text, HasSubstr("graph output 'y' is produced by no node"));
}

TEST(OnnxReader, SortsNodes) {
  auto m = frame();
  add_node(m.mutable_graph(), "Relu", {"b"}, {"y"}, "third");
  add_node(m.mutable_graph(), "Neg", {"x"}, {"a"}, "first");
  add_node(m.mutable_graph(), "Abs", {"a"}, {"b"}, "second");
  const Imported r = import(m);
  EXPECT_FALSE(r.diagnostics.refused()) << r.text();
  EXPECT_THAT(r.text(), HasSubstr("note: the graph's nodes were not in order"));
  const auto& nodes = r.model->graph.nodes;
  EXPECT_EQ(nodes[0].name + nodes[1].name + nodes[2].name, "firstsecondthird");
}

TEST(OnnxReader, SubgraphsSeeOuterNames) {
  auto m = frame();
  add_node(m.mutable_graph(), "If", {"x"}, {"y"}, "branch");
  auto* a = m.mutable_graph()->mutable_node(0)->add_attribute();
  a->set_name("then_branch");
  a->set_type(onnx_pb::AttributeProto::GRAPH);
  add_node(a->mutable_g(), "Add", {"x", "late"}, {"t"}, "inner");
  add_value(a->mutable_g()->add_output(), "t");
  add_node(m.mutable_graph(), "Neg", {"x"}, {"late"}, "outer");
  const Imported r = import(m);
  EXPECT_FALSE(r.diagnostics.refused()) << r.text();
  EXPECT_EQ(r.model->graph.nodes[0].name, "outer");
  a->mutable_g()->mutable_node(0)->set_input(1, "nowhere");
  EXPECT_THAT(import(m).text(), HasSubstr("2 nodes, 'branch', 'inner' (If, Add): its input 'nowhere'"));
}

onnx_pb::FunctionProto* add_function(onnx_pb::ModelProto* m, const std::string& name) {
  auto* f = m->add_functions();
  f->set_name(name);
  f->set_domain("local");
  auto* o = f->add_opset_import();
  o->set_version(13);
  f->add_input("in");
  f->add_output("out");
  return f;
}

TEST(OnnxReader, InlinesFunctions) {
  auto m = frame();
  auto* inner = add_function(&m, "Inner");
  inner->add_attribute("slope");
  auto* n = inner->add_node();
  n->set_op_type("LeakyRelu"), n->set_name("leak"), n->add_input("in"), n->add_output("out");
  auto* a = n->add_attribute();
  a->set_name("alpha"), a->set_ref_attr_name("slope"), a->set_type(onnx_pb::AttributeProto::FLOAT);
  auto* outer = add_function(&m, "Outer");
  auto* d = outer->add_attribute_proto();
  d->set_name("s"), d->set_type(onnx_pb::AttributeProto::FLOAT), d->set_f(0.25f);
  n = outer->add_node();
  n->set_op_type("Neg"), n->set_name("neg"), n->add_input("in"), n->add_output("tmp");
  n = outer->add_node();
  n->set_op_type("Inner"), n->set_domain("local"), n->set_name("call"), n->add_input("tmp"),
      n->add_output("out");
  a = n->add_attribute();
  a->set_name("slope"), a->set_ref_attr_name("s"), a->set_type(onnx_pb::AttributeProto::FLOAT);
  for (const auto& [in, out, name] : {std::tuple{"x", "m", "one"}, {"m", "y", "two"}}) {
    auto* call = add_node(m.mutable_graph(), "Outer", {in}, {out}, name);
    call->set_domain("local");
    if (std::string(name) == "two") {
      a = call->add_attribute();
      a->set_name("s"), a->set_type(onnx_pb::AttributeProto::FLOAT), a->set_f(0.5f);
    }
  }
  const Imported r = import(m);
  EXPECT_FALSE(r.diagnostics.refused()) << r.text();
  const auto& nodes = r.model->graph.nodes;
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[1].name, "one/call/leak");
  EXPECT_EQ(nodes[0].outputs[0], "one/tmp");
  EXPECT_EQ(nodes[2].outputs[0], "two/tmp");
  EXPECT_EQ(nodes[1].find("alpha")->f, 0.25f);
  EXPECT_EQ(nodes[3].find("alpha")->f, 0.5f);
  EXPECT_EQ(nodes[3].opset, 13);
  EXPECT_EQ(nodes[3].outputs[0], "y");
}

TEST(OnnxReader, RefusesFunctionsThatCallThemselves) {
  auto m = frame();
  auto* f = add_function(&m, "Loop");
  auto* n = f->add_node();
  n->set_op_type("Loop"), n->set_domain("local"), n->add_input("in"), n->add_output("out");
  add_node(m.mutable_graph(), "Loop", {"x"}, {"y"}, "call")->set_domain("local");
  EXPECT_THAT(import(m).text(), HasSubstr("the function calls itself"));
}

TEST(Diagnostics, OneLineEach) {
  Diagnostics d;
  d.refuse("bad\nname", "Conv", "no", "do that");
  d.refuse("bad\nname", "Conv", "no", "do that");
  EXPECT_EQ(d.to_text(), "refused: node 'bad\\x0aname' (Conv): no; do that\n");
}

}  // namespace
}  // namespace sinter::convert
