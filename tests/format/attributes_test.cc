// Attributes in a file: text and bytes, and what older versions of a row lack.
//
// The macros of ops.def are not for applications: names that they may have are not macros here.
#define INT only_where_this_is_used
#define FLOAT only_where_this_is_used
#define INTS only_where_this_is_used
#define FLOATS only_where_this_is_used
#define TEXT only_where_this_is_used
#define BYTES only_where_this_is_used
#define ATTRS only_where_this_is_used
#include "sinter/sinter.h"
#undef INT
#undef FLOAT
#undef INTS
#undef FLOATS
#undef TEXT
#undef BYTES
#undef ATTRS
#if defined(SINTER_OP) || defined(SINTER_ATTRS) || defined(SINTER_INT) || defined(SINTER_FLOAT) || \
    defined(SINTER_INTS) || defined(SINTER_FLOATS) || defined(SINTER_TEXT) || defined(SINTER_BYTES)
#error "public headers leave the macros of ops.def behind"
#endif

#include "runtime/core/attr_reader.h"
#include "tests/format/refusal.h"

namespace sinter::testing {
namespace {

// What ops.def would make of a row at version 3 with
// SINTER_ATTRS(SINTER_INT(axis, 7) SINTER_TEXT(name) SINTER_FLOAT(alpha, 0.5, 2) SINTER_INTS(pads, 2)
// SINTER_BYTES(blob, 3)).
struct MadeUpAttrs {
  int64_t axis = 7;
  AttrText name = {};
  double alpha = 0.5;
  IntList pads = {};
  AttrBytes blob = {};
  bool operator==(const MadeUpAttrs&) const = default;
};
template <class A, class Visitor>
void visit_made_up(A& a, Visitor&& visitor) {
  visit_attr(visitor, "axis", a.axis);
  visit_attr(visitor, "name", a.name);
  visit_attr(visitor, "alpha", a.alpha, 2);
  visit_attr(visitor, "pads", a.pads, 2);
  visit_attr(visitor, "blob", a.blob, 3);
}

constexpr std::byte kBlob[] = {std::byte{0}, std::byte{1}, std::byte{255}};
MadeUpAttrs made_up() { return {3, {"resize", 6}, 0.25, {1, 2}, {kBlob, 3}}; }
EncodedAttrs encoded(const MadeUpAttrs& attrs = made_up()) {
  EncodedAttrs lists;
  visit_made_up(attrs, lists);
  return lists;
}
Status read(const EncodedAttrs& e, uint16_t version, MadeUpAttrs* attrs) {
  AttrReader reader(version, {e.ints, e.floats, std::as_bytes(std::span(e.bytes))});
  visit_made_up(*attrs, reader);
  return reader.finish();
}
bool refused(const EncodedAttrs& e, uint16_t version = 3) {
  MadeUpAttrs attrs;
  return read(e, version, &attrs).code == Code::kCorrupt;
}

TEST(Attributes, TextAndBytesComeBackAsViewsOfTheFile) {
  const EncodedAttrs e = encoded();
  EXPECT_EQ(e.ints, (std::vector<int64_t>{3, 6, 2, 1, 2, 3}));
  ASSERT_EQ(e.bytes.size(), 9u);
  MadeUpAttrs attrs;
  ASSERT_TRUE(read(e, 3, &attrs).ok());
  EXPECT_EQ(attrs, made_up());
  EXPECT_EQ(static_cast<const void*>(attrs.name.data), e.bytes.data());
  EXPECT_EQ(static_cast<const void*>(attrs.blob.data), e.bytes.data() + 6);
  MadeUpAttrs empty;
  ASSERT_TRUE(read(encoded({}), 3, &empty).ok());
  EXPECT_EQ(empty, MadeUpAttrs{});
}

TEST(Attributes, OlderVersionsHaveDefaultsForWhatTheyLack) {
  EncodedAttrs one, two;
  one.ints = {3, 6}, one.bytes = {'r', 'e', 's', 'i', 'z', 'e'};
  two.ints = {3, 0, 2, 1, 2}, two.floats = {0.25};
  MadeUpAttrs attrs;
  ASSERT_TRUE(read(one, 1, &attrs).ok());
  EXPECT_EQ(attrs, (MadeUpAttrs{3, {"resize", 6}}));
  attrs = {};
  ASSERT_TRUE(read(two, 2, &attrs).ok());
  EXPECT_EQ(attrs, (MadeUpAttrs{3, {}, 0.25, {1, 2}}));
  // The lists of one version are not those of another.
  EXPECT_TRUE(refused(one, 2) && refused(one, 3) && refused(two, 1) && refused(two, 3) &&
              refused(encoded(), 2));
}

TEST(Attributes, ListsFitExactly) {
  EncodedAttrs e = encoded();
  EXPECT_FALSE(refused(e));
  e.bytes.push_back(0);
  EXPECT_TRUE(refused(e));
  e.bytes.resize(8);
  EXPECT_TRUE(refused(e));
  e = encoded();
  e.ints.pop_back();
  EXPECT_TRUE(refused(e));
  for (const int64_t length : {int64_t{-1}, int64_t{5}, int64_t{7}, int64_t{10}, INT64_MAX, INT64_MIN}) {
    e = encoded();
    e.ints[1] = length;
    EXPECT_TRUE(refused(e)) << length;
  }
  for (const int64_t length : {int64_t{-1}, int64_t{25}, INT64_MAX, INT64_MIN}) {
    e = encoded();
    e.ints[2] = length;
    EXPECT_TRUE(refused(e)) << length;
  }
}

TEST(Attributes, TextHoldsNoZeroByte) {
  EncodedAttrs e = encoded();
  e.bytes[2] = 0;
  EXPECT_TRUE(refused(e));
  e = encoded();
  e.bytes[7] = 0;  // of the bytes, which may
  EXPECT_FALSE(refused(e));
}

struct Versions {
  uint16_t now;
  template <class T>
  void operator()(const char* name, T&, int since) const {
    EXPECT_TRUE(since >= 1 && since <= now) << name;
  }
};
// Every row's attributes were added at a version that the row has had, and files of today's version hold all
// of them.
TEST(Attributes, EveryRowReadsWhatItWrites){
#define SINTER_OP(name, ...)                                                    \
  {                                                                             \
    name##Attrs written, found;                                                 \
    const uint16_t now = op_info(Op::k##name)->version;                         \
    visit_attrs(written, Versions{now});                                        \
    EncodedAttrs e;                                                             \
    visit_attrs(written, e);                                                    \
    const AttrLists lists{e.ints, e.floats, std::as_bytes(std::span(e.bytes))}; \
    EXPECT_TRUE(decode_attrs(Op::k##name, now, lists, &found).ok()) << #name;   \
    EXPECT_EQ(written, found) << #name;                                         \
  }
#include "schemas/ops.def"
#undef SINTER_OP
}

// No operation has text or bytes yet: a step that does is refused, wherever they are.
TEST(Attributes, BytesOfAStepThatTakesNoneAreRefused) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2}), y = b.value(DType::kFloat32, {2});
  b.step(AbsAttrs{}, {x}, {y});
  b.output("y", y);
  EXPECT_TRUE(opened(b).ok());
  b.program().steps[0].attrs.bytes = {'a'};
  EXPECT_REFUSED(b, "attribute lists");
}

}  // namespace
}  // namespace sinter::testing
