// How deep text nests, told without a parser.
#include "ir/Text.h"

#include <gtest/gtest.h>

namespace wg::ir {
namespace {

std::string times(const std::string &part, int n) {
  std::string text;
  for (int i = 0; i < n; ++i)
    text += part;
  return text;
}

std::string messageOf(const std::string &text) {
  runtime::Status status = checkText(text, "f.mlir");
  return status.ok() ? "" : status.failure().message;
}

const std::string kTooDeep = "brackets and aliases nest more than 200 deep";

TEST(TextTest, BracketsNest200Deep) {
  for (auto [open, close] : {std::pair("(", ")"), {"[", "]"}, {"{", "}"}, {"tuple<", ">"}}) {
    EXPECT_EQ(messageOf(times(open, 200) + times(close, 200)), "");
    EXPECT_EQ(messageOf(times(open, 201) + times(close, 201)), kTooDeep);
  }
  EXPECT_EQ(messageOf(times("[]\n", 1000)), "");
}

TEST(TextTest, StringsCommentsAndArrowsAreNoBrackets) {
  EXPECT_EQ(messageOf("\"" + times("(", 300) + "\""), "");
  EXPECT_EQ(messageOf("\"\\\"" + times("(", 300) + "\""), "");
  EXPECT_EQ(messageOf("// " + times("(", 300) + "\n()"), "");
  EXPECT_EQ(messageOf(times("() -> ", 300) + "f32"), "");
  // Comparisons neither open nor close: 201 are open whatever is between them.
  EXPECT_EQ(messageOf(times("( >= >= > ", 201)), kTooDeep);
  EXPECT_EQ(messageOf(times("(d0 <= 0) ", 300)), "");
}

TEST(TextTest, AliasesCountAsWhatTheyStandFor) {
  auto chain = [](int n, const std::string &open, const std::string &close) {
    std::string text = "#a0 = unit\n";
    for (int i = 1; i < n; ++i)
      text += "#a" + std::to_string(i) + " = " + open + "#a" + std::to_string(i - 1) + close + "\n";
    return text;
  };
  EXPECT_EQ(messageOf(chain(90, "[", "]")), "");
  EXPECT_EQ(messageOf(chain(300, "[", "]")), kTooDeep);
  EXPECT_EQ(messageOf(chain(300, "loc(\"g\"(", "))")), kTooDeep);
  EXPECT_EQ(messageOf(chain(300, "\n// here\n[1,\n", "\n]")), kTooDeep);
  EXPECT_EQ(messageOf(chain(300, "dense<1> : tensor<1xi32, ", ">")), kTooDeep);
  EXPECT_EQ(messageOf(chain(300, "1 :\n tensor<1xi32, ", ">")), kTooDeep);
  EXPECT_EQ(messageOf("!a0 = f32 " + times("!a0 = tuple<!a0> ", 1)), "");
}

TEST(TextTest, ManyUsesOfOneAliasDoNotNest) {
  EXPECT_EQ(messageOf("#m = affine_map<(d0) -> (d0)>\nmodule {\n" +
                      times("\"f\"() {a = #m, b = [#m]} : () -> () loc(#l)\n", 1000) + "}\n#l = loc(\"f\":1:2)\n"),
            "");
  // What follows the last definition is none of its body.
  EXPECT_EQ(messageOf("#a = [1] module { func.func @f() attributes {a = #a} " + times("{a = #a} ", 300) + "}"), "");
}

TEST(TextTest, AffineExpressionsAreShort) {
  EXPECT_EQ(messageOf("#m = affine_map<(d0) -> (" + times("d0 + ", 400) + "d0)>"), "");
  EXPECT_EQ(messageOf("#m = affine_map<(d0) -> (" + times("d0 + ", 1000) + "d0)>"),
            "an affine expression has more than 1000 tokens");
  EXPECT_EQ(messageOf("#m = affine_map<(d0) -> (" + times("- ", 2000) + "d0)>"),
            "an affine expression has more than 1000 tokens");
  EXPECT_EQ(messageOf(times("#m = affine_map<(d0) -> (d0)>\n", 1000)), "");
  EXPECT_EQ(messageOf("{affine_map = 1}" + times(" a", 2000)), "");
}

TEST(TextTest, ArraysHaveNoIndices) {
  const std::string refused = "an array attribute has elements of the type index or of a type with a name of its own";
  for (const char *text : {"array<index>", "array<index: 0>", "array < // here\n index: 0>", "array<!t: 0>"})
    EXPECT_EQ(messageOf(text), refused) << text;
  for (const char *text : {"array<i64: 0, 1>", "array<i64> index", "dense<1> : tensor<2xindex>", "\"array<index>\"",
                           "!llvm.array<2 x ptr>", "tuple<index>", "array index", "arrays<index>"})
    EXPECT_EQ(messageOf(text), "") << text;
}

TEST(TextTest, ThePlaceIsNamed) {
  runtime::Status status = checkText("\n\n" + times("[", 300), "f.mlir");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.failure().where, "f.mlir:3");
  EXPECT_NE(messageOf("ML\xefR\x01"), "");
}

} // namespace
} // namespace wg::ir
