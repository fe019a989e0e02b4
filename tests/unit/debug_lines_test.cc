// The debug segment: lines come back as they were, in few bytes, and a damaged segment is refused.
#include "converter/emit/debug_lines.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "converter/diagnostics/errors.h"
#include "converter/emit/text_table.h"

namespace sinter::convert {
namespace {

using nlohmann::json;

// Of one program whose values have these names.
class NamedModel {
 public:
  explicit NamedModel(const std::vector<std::string>& names) {
    TextTable texts;
    for (const std::string& name : names) texts.add(name);
    texts.place();
    std::vector<flatbuffers::Offset<fb::Value>> values;
    std::vector<uint32_t> places;
    for (const std::string& name : names)
      values.push_back(fb::CreateValue(buffer_)), places.push_back(texts.at(name));
    const auto value_list = buffer_.CreateVector(values);
    const auto program =
        fb::CreateProgram(buffer_, value_list, 0, 0, 0, 0, 0, 0, buffer_.CreateVector(places));
    const auto programs = buffer_.CreateVector(std::vector{program});
    const auto debug = fb::CreateDebug(buffer_, 0, 0, 0, buffer_.CreateVector(texts.bytes()));
    buffer_.Finish(fb::CreateModel(buffer_, 0, programs, 0, 0, debug));
  }
  const fb::Model& operator*() const { return *fb::GetModel(buffer_.GetBufferPointer()); }

 private:
  flatbuffers::FlatBufferBuilder buffer_;
};

Bytes deflated(const std::string& text) {
  uLongf length = compressBound(text.size());
  Bytes out(8 + length);
  const uint64_t size = text.size();
  std::memcpy(out.data(), &size, 8);
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data() + 8), &length,
                      reinterpret_cast<const Bytef*>(text.data()), text.size(), 9),
            Z_OK);
  out.resize(8 + length);
  return out;
}

std::string lines_of(const json& objects) {
  std::string text;
  for (const json& object : objects) text += object.dump() + "\n";
  return text;
}

const json kObjects = json::array(
    {{{"value", "conv"}, {"node", "node_conv"}, {"requests", json::array()}},
     {{"value", "relu"}, {"scale", 0.1}, {"zero_point", -3}},
     {{"value", "conv"},
      {"node", "node_conv"},
      {"requests", {{{"operand", "x"}, {"constant", true}}, {{"operand", "x"}, {"constant", true}}}}},
     {{"outputs", {"relu", "", "conv", "new"}}, {"became", nullptr}, {"more", {{"of", {1, 2}}}}},
     json::object(),
     {{"outputs", {json::array({"nested"})}}, {"became", false}, {"more", 1e300}},
     {{"value", "\xc3\xa4"}, {"scale", 0.30000000000000004}, {"zero_point", 0}}});

TEST(DebugLines, ComeBackInTheirOrder) {
  const NamedModel named({"conv", "node_conv", "", "relu", "conv"}), nameless({});
  for (const NamedModel* model : {&named, &nameless}) {
    const Bytes segment = debug_segment(lines_of(kObjects), **model);
    EXPECT_EQ(debug_objects(segment, **model), kObjects);
  }
}

TEST(DebugLines, NothingIsNoSegment) {
  const NamedModel model({"x"});
  EXPECT_TRUE(debug_segment("", *model).empty());
  EXPECT_TRUE(debug_objects({}, *model).empty());
}

TEST(DebugLines, TakeLessThanLines) {
  std::vector<std::string> names;
  json objects = json::array();
  for (int i = 0; i < 2000; ++i) {
    names.push_back("layer_" + std::to_string(i * 7919 % 10007));
    objects.push_back(
        {{"value", names.back()}, {"node", "node_" + names.back()}, {"reason", "computed in float32"}});
    names.push_back("node_" + names.back());
  }
  const NamedModel model(names);
  const std::string lines = lines_of(objects);
  const Bytes segment = debug_segment(lines, *model);
  EXPECT_LT(segment.size() * 10, deflated(lines).size());
  EXPECT_EQ(debug_objects(segment, *model), objects);
}

TEST(DebugLines, OfEarlierBuilds) {
  const NamedModel model({"x"});
  EXPECT_EQ(debug_objects(deflated(lines_of(kObjects)), *model), kObjects);
  EXPECT_EQ(debug_objects(deflated("{\"value\":\"x\"}\n"), *model), json::array({{{"value", "x"}}}));
}

TEST(DebugLines, DamagedSegmentsAreRefused) {
  const NamedModel model({"x", "y"});
  const json good =
      json::parse(R"({"values":["z"],"forms":[["a","b"]],"lines":[0,0],"cells":[[1,1],[[1,2],[]]]})");
  EXPECT_EQ(debug_objects(deflated(good.dump()), *model),
            json::parse(R"([{"a":"x","b":["x","z"]},{"a":"y","b":[]}])"));
  const auto refused = [&](const char* pointer, const json& value) {
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    EXPECT_THROW(debug_objects(deflated(bad.dump()), *model), DataError) << pointer << " " << value;
  };
  refused("/cells/0/0", 0);  // before the first
  refused("/cells/0/1", 3);  // behind the last
  refused("/cells/0/0", INT64_MAX), refused("/cells/0/0", INT64_MIN), refused("/cells/0/0", 1e300);
  refused("/cells/0/0", "x"), refused("/cells/1/0", json::array({json::array({1})}));
  refused("/lines/1", 1), refused("/lines/1", -1), refused("/lines/1", 0.5), refused("/lines", 3);
  refused("/lines", json::array({0, 0, 0}));
  refused("/forms/0", 1), refused("/forms/0/0", 1), refused("/forms", "x"),
      refused("/values", json::object());
  refused("/forms/0", json::array({"a", "b", "c"})), refused("/cells/1", 1), refused("/cells", nullptr);
  for (const char* key : {"values", "lines", "cells"}) {
    json bad = good;
    bad.erase(key);
    EXPECT_THROW(debug_objects(deflated(bad.dump()), *model), DataError) << key;
  }
  Bytes segment = debug_segment(lines_of(kObjects), *model);
  segment.resize(segment.size() - 3);
  EXPECT_THROW(debug_objects(segment, *model), DataError);
}

// A small file whose objects would fill the memory.
TEST(DebugLines, ObjectsOutOfProportionAreRefused) {
  const NamedModel model({});
  json cells = json::array({1});
  while (cells.size() < 100000) cells.push_back(0);
  const json bomb{{"values", {std::string(100000, 'x')}},
                  {"forms", {{"a"}}},
                  {"lines", std::vector<int>(cells.size(), 0)},
                  {"cells", {cells}}};
  EXPECT_THROW(debug_objects(deflated(bomb.dump()), *model), DataError);
}

TEST(TextTable, EndsAreNotWrittenAgain) {
  TextTable texts;
  const std::vector<std::string> all{"node_conv", "conv", "v", "", "node_relu", "relu", "xconv", "conv"};
  for (const std::string& text : all) texts.add(text);
  texts.place();
  EXPECT_EQ(texts.bytes().size(), 1 + sizeof("node_conv") + sizeof("node_relu") + sizeof("xconv"));
  for (const std::string& text : all)
    EXPECT_STREQ(reinterpret_cast<const char*>(texts.bytes().data()) + texts.at(text), text.c_str());
  EXPECT_EQ(texts.at(""), 0u);
}

}  // namespace
}  // namespace sinter::convert
