// The classification of a product's letters.
#include "runtime/Letters.h"

#include <gtest/gtest.h>

namespace wg::runtime {
namespace {

Letters lettersOf(std::string_view text, std::vector<int64_t> a, std::vector<int64_t> b) {
  return Letters(*parseEquation(text), a, b);
}

TEST(LettersTest, EachLetterIsInOneGroupInTheOrderOfTheResult) {
  Letters letters = lettersOf("xkbmy,nbykxl->lnbxm", {2, 3, 5, 7, 11}, {13, 5, 11, 3, 2, 17});
  EXPECT_EQ(namesOf(letters.batch), "bx");
  EXPECT_EQ(namesOf(letters.m), "m");
  EXPECT_EQ(namesOf(letters.n), "ln");
  EXPECT_EQ(namesOf(letters.k), "ky") << "in the order of a";
}

TEST(LettersTest, SizesAndStepsAreThoseOfTheTensors) {
  Letters letters = lettersOf("bmk,kn->mbn", {2, 3, 5}, {5, 7});
  ASSERT_EQ(letters.batch.size() + letters.m.size() + letters.n.size() + letters.k.size(), 4u);
  auto is = [](const Letter &letter, int64_t size, int64_t a, int64_t b, int64_t c) {
    return letter.size == size && letter.a == a && letter.b == b && letter.c == c;
  };
  EXPECT_EQ(namesOf(letters.m), "mb");
  EXPECT_TRUE(is(letters.m[0], 3, 5, 0, 14));
  EXPECT_TRUE(is(letters.m[1], 2, 15, 0, 7));
  EXPECT_TRUE(is(letters.n[0], 7, 0, 1, 1));
  EXPECT_TRUE(is(letters.k[0], 5, 1, 7, 0));
  EXPECT_EQ(sizeOf(letters.m), 6);
  EXPECT_EQ(sizeOf(std::vector<Letter>()), 1);
}

TEST(LettersTest, ExchangingTheOperandsExchangesRowsAndColumns) {
  Letters letters = lettersOf("mk,kn->mn", {3, 5}, {5, 7});
  letters.exchange();
  EXPECT_EQ(namesOf(letters.m), "n");
  EXPECT_EQ(namesOf(letters.n), "m");
  EXPECT_EQ(letters.k[0].a, 7);
  EXPECT_EQ(letters.k[0].b, 1);
}

TEST(LettersTest, NeighboursInEveryTensorAreOneLetter) {
  Letters letters = lettersOf("abkl,kln->abn", {2, 3, 5, 7}, {5, 7, 11});
  mergeNeighbours(letters.m);
  mergeNeighbours(letters.k);
  ASSERT_EQ(letters.m.size(), 1u);
  EXPECT_EQ(letters.m[0].names, "ab");
  EXPECT_EQ(letters.m[0].size, 6);
  EXPECT_EQ(letters.m[0].a, 35);
  ASSERT_EQ(letters.k.size(), 1u);
  EXPECT_EQ(letters.k[0].size, 35);
}

TEST(LettersTest, NeighboursThatOneTensorSeparatesStayTwo) {
  Letters apart = lettersOf("abk,kn->anb", {2, 3, 5}, {5, 7}), turned = lettersOf("klm,lkn->mn", {2, 3, 5}, {3, 2, 7});
  mergeNeighbours(apart.m);
  mergeNeighbours(turned.k);
  EXPECT_EQ(apart.m.size(), 2u);
  EXPECT_EQ(turned.k.size(), 2u);
}

TEST(LettersTest, ALetterOfSizeOneSeparatesNothing) {
  Letters letters = lettersOf("aubk,kn->aubn", {2, 1, 3, 5}, {5, 7});
  dropUnits(letters.m);
  EXPECT_EQ(namesOf(letters.m), "ab");
  mergeNeighbours(letters.m);
  EXPECT_EQ(letters.m.size(), 1u);
}

TEST(LettersTest, ASizeZeroKeepsStepsApart) {
  Letters letters = lettersOf("mk,kn->mn", {3, 0}, {0, 7});
  EXPECT_EQ(sizeOf(letters.k), 0);
  EXPECT_EQ(letters.m[0].a, 1);
  EXPECT_EQ(letters.m[0].c, 7);
}

TEST(LettersTest, AnEquationIsItsParts) {
  Result<Equation> equation = parseEquation("mk,kn->mn");
  ASSERT_TRUE(equation.ok());
  EXPECT_EQ(equation->text(), "mk,kn->mn");
  EXPECT_EQ(partsOf("k,k->").c, "");
  for (std::string_view text : {"mk,kn", "mk->kn,mn", "mm,mn->mn", "mk,kn->m", "m1,1n->mn"})
    EXPECT_FALSE(parseEquation(text).ok()) << text;
}

} // namespace
} // namespace wg::runtime
