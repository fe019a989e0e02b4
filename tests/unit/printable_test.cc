#include "converter/diagnostics/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "runtime/core/status.h"

namespace sinter::convert {
namespace {

TEST(Printable, OrdinaryTextStays) {
  for (const char* text :
       {"", "conv1/Relu:0", "a\\b", "caf\u00e9", "\u5377\u79ef", "\u0441\u043b\u043e\u0439", "\U0001f600",
        "\u0645\u0631\u062d\u0628\u0627", "\u00a0"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(as_utf8(text), text);
  }
}

TEST(Printable, NothingIsObeyedOrHidden) {
  EXPECT_EQ(printable("a\x1b[31m\n\r\t\x7f"), "a\\x1b[31m\\x0a\\x0d\\x09\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("c1\u009b31m\u0085"), "c1\\u009b31m\\u0085");
  EXPECT_EQ(printable("\u202etxt\u2066\u2028\u200f\u061c\ufeff"),
            "\\u202etxt\\u2066\\u2028\\u200f\\u061c\\ufeff");
  EXPECT_EQ(printable("t\U000e0041"), "t\\ue0041");
  EXPECT_EQ(printable_lines("a\n\x1b"), "a\n\\x1b");
  EXPECT_EQ(one_message("no:\n  a\nb"), "no:\n  a\\x0ab");
}

// Overlong forms, surrogates, letters beyond the last one, and letters that are cut off.
TEST(Printable, BytesThatAreNotUtf8AreShown) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc0\x80\xe0\x80\x80\xf0\x80\x80\x80"),
            "\\xc0\\x80\\xe0\\x80\\x80\\xf0\\x80\\x80\\x80");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe5\x8d"), "\\xe5\\x8d");
  EXPECT_EQ(printable("\xe5\x8d"
                      "a"),
            "\\xe5\\x8d"
            "a");
}

TEST(Printable, JsonGivesTheTextBack) {
  const nlohmann::json sound{{"a\x1b\u009b", {"\u202e\n", "\U000e0041", 1.5, nullptr}}};
  const std::string text = json_text(sound);
  EXPECT_EQ(nlohmann::json::parse(text), sound);
  EXPECT_EQ(printable_lines(text), text);
  const nlohmann::json broken{{"k\xff", {"v\xfe", true}}};
  EXPECT_EQ(nlohmann::json::parse(json_text(broken, -1)), (nlohmann::json{{"k\\xff", {"v\\xfe", true}}}));
  EXPECT_EQ(printable_json({{"a\n", "b\r"}}), (nlohmann::json{{"a\\x0a", "b\\x0d"}}));
}

// The runtime's own texts, which applications print.
TEST(Printable, StatusesOfForeignNames) {
  char text[200];
  format_status(invalid("no input has the name '%s'", name_of("a\n\x1b[31m\x7f\u009b1m caf\u00e9")), text);
  EXPECT_STREQ(text, "no input has the name 'a??[31m??1m caf\u00e9'");
  format_status(corrupt("damaged").at(Where::kStep, 3), text, {"conv\x1b]0;", "Co\nnv"});
  EXPECT_STREQ(text, "step 3 'conv?]0;' (Co?nv): damaged");
}

TEST(Printable, AnyBytes) {
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() : 0x80 + random() % 0x80);
    const std::string shown = printable(text);
    EXPECT_EQ(printable(shown), shown);
    EXPECT_NO_THROW((void)nlohmann::json(shown).dump());
    EXPECT_NO_THROW((void)nlohmann::json(as_utf8(text)).dump());
    EXPECT_TRUE(nlohmann::json::accept(json_text(nlohmann::json{text})));
  }
}

}  // namespace
}  // namespace sinter::convert
