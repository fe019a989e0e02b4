// Names that a file has for people, in the form of today and in the one of earlier builds; damaged ones are
// empty.
#include "runtime/model/names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sinter::testing {
namespace {

// A program of two values, a step and a prepare step.
struct Names {
  std::vector<uint8_t> texts;
  std::vector<uint32_t> values, steps, origins;
  std::vector<fb::ValueOrder> orders;
  std::vector<std::string> listed, listed_origins, listed_orders;
  int32_t first = -1;  // in `listed`, of value 0; the others follow

  const fb::Model& build() {
    buffer.Clear();
    std::vector<flatbuffers::Offset<fb::Value>> value_list;
    for (int i = 0; i < 2; ++i)
      value_list.push_back(fb::CreateValue(buffer, 0, 0, fb::ValueKind::Temporary, -1, -1, -1, 0, name(i)));
    const auto step = [&](int i) {
      return buffer.CreateVector(std::vector{fb::CreateStep(buffer, 0, 1, 0, 0, 0, 0, 0, 0, name(i))});
    };
    const auto main = step(2), prepare = step(3);
    const auto list = [&](const std::vector<uint32_t>& items) {
      return items.empty() ? 0 : buffer.CreateVector(items);
    };
    const auto strings = [&](const std::vector<std::string>& items) {
      return items.empty()
                 ? flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>>()
                 : buffer.CreateVectorOfStrings(items);
    };
    const auto program = fb::CreateProgram(buffer, buffer.CreateVector(value_list), main, prepare, 0, 0, 0, 0,
                                           list(values), list(steps), list(origins),
                                           orders.empty() ? 0 : buffer.CreateVectorOfStructs(orders));
    const auto debug =
        fb::CreateDebug(buffer, strings(listed), strings(listed_origins), strings(listed_orders),
                        texts.empty() ? 0 : buffer.CreateVector(texts));
    buffer.Finish(fb::CreateModel(buffer, 0, buffer.CreateVector(std::vector{program}), 0, 0,
                                  listed.empty() && texts.empty() ? 0 : debug));
    return *fb::GetModel(buffer.GetBufferPointer());
  }
  flatbuffers::FlatBufferBuilder buffer;

 private:
  int32_t name(int i) const { return first < 0 ? -1 : first + i; }
};

// value 0, value 1, step, prepare step, the step's origin, the order of value 1
std::vector<std::string> all(const fb::Model& model) {
  const fb::Program& p = *model.programs()->Get(0);
  return {detail::value_name(model, p, 0),  detail::value_name(model, p, 1),
          detail::step_name(model, p, 0),   detail::step_name(model, p, 1),
          detail::step_origin(model, p, 0), detail::value_order(model, p, 1)};
}
using Texts = std::vector<std::string>;

Names today() {
  Names n;
  const std::string texts(
      "\0node_x\0w\0Conv\0"
      "1 0\0",
      19);
  n.texts.assign(texts.begin(), texts.end());
  n.values = {6, 8}, n.steps = {1, 0}, n.origins = {10, 0};
  n.orders = {fb::ValueOrder(1, 15)};
  return n;
}

TEST(Names, Texts) {
  Names n = today();
  EXPECT_EQ(all(n.build()), (Texts{"x", "w", "node_x", "", "Conv", "1 0"}));
}

TEST(Names, StringsOfEarlierBuilds) {
  Names n;
  n.listed = {"x", "w", "node", "wide"}, n.listed_origins = {"", "", "Conv"}, n.listed_orders = {"", "1 0"};
  n.first = 0;
  EXPECT_EQ(all(n.build()), (Texts{"x", "w", "node", "wide", "Conv", "1 0"}));
  n.first = 2;  // the last two are not in the list
  EXPECT_EQ(all(n.build()), (Texts{"node", "wide", "", "", "", ""}));
  n.first = INT32_MAX - 3;
  EXPECT_EQ(all(n.build()), (Texts{"", "", "", "", "", ""}));
}

TEST(Names, Stripped) {
  Names n;
  EXPECT_EQ(all(n.build()), (Texts{"", "", "", "", "", ""}));
}

TEST(Names, Damaged) {
  const Texts none{"", "", "", "", "", ""};
  Names n = today();
  n.texts.back() = 'x';  // the last text has no end
  EXPECT_EQ(all(n.build()), none);
  n = today();
  n.values = {19, UINT32_MAX}, n.steps = {20, 1u << 31}, n.origins = {19, 0},
  n.orders = {fb::ValueOrder(1, 19)};
  EXPECT_EQ(all(n.build()), none);
  n = today();
  n.texts.clear();
  EXPECT_EQ(all(n.build()), none);
  n = today();
  n.values = {6}, n.steps = {1}, n.origins.clear(), n.orders = {fb::ValueOrder(7, 15)};  // short lists
  EXPECT_EQ(all(n.build()), (Texts{"x", "", "node_x", "", "", ""}));
}

}  // namespace
}  // namespace sinter::testing
