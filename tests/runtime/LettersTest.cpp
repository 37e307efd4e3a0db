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

TEST(LettersTest, PanelsAreWalkedAsWhatIsMostLies) {
  auto outside = [](std::string_view text, std::vector<int64_t> a, std::vector<int64_t> b) {
    Letters letters = lettersOf(text, a, b);
    return namesOf(outsideOfPanels(letters.batch, letters.m, letters.n, letters.k));
  };
  EXPECT_EQ(outside("ij,imljk->limk", {5, 40}, {5, 3, 4, 40, 7}), "imlk") << "b is forty times as large as c";
  EXPECT_EQ(outside("ij,imljk->limk", {5, 2}, {5, 3, 4, 2, 7}), "ilmk") << "few terms: c counts as well";
  EXPECT_EQ(outside("qj,ijlk->liqk", {9, 40}, {5, 40, 3, 7}), "ilk") << "b is four times as large as c";
  EXPECT_EQ(outside("qj,ijlk->liqk", {99, 40}, {5, 40, 3, 7}), "lik") << "many rows: c is larger";
  EXPECT_EQ(outside("bqj,njbk->bnqk", {900, 2, 40}, {5, 40, 900, 7}), "bnk") << "a large a is read again for each n";
  EXPECT_EQ(outside("bqj,njbk->bnqk", {9, 2, 40}, {5, 40, 9, 7}), "nbk") << "a small one stays close by";
  EXPECT_EQ(outside("i,lik->kil", {3}, {4, 3, 7}), "kil") << "nothing is summed";
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

// ---- Related letters ------------------------------------------------------------------------------------------------

TEST(RelationTest, RelatedLettersAreInNoGroup) {
  Letters letters(*parseEquation("nhwc,rsco->npqo; h=2p+3r-1; w = q - 2 s + 4"), std::vector<int64_t>{2, 9, 8, 3},
                  std::vector<int64_t>{3, 2, 3, 5}, std::vector<int64_t>{4, 6});
  EXPECT_EQ(namesOf(letters.m), "n");
  EXPECT_EQ(namesOf(letters.n), "o");
  EXPECT_EQ(namesOf(letters.k), "c");
  EXPECT_TRUE(letters.batch.empty());
  ASSERT_EQ(letters.related.size(), 2u);
  const Related &rows = letters.related[0], &columns = letters.related[1];
  EXPECT_EQ(rows.a.names + rows.b.names + rows.c.names, "hrp");
  EXPECT_EQ(rows.c.size, 4);
  EXPECT_EQ(rows.c.c, 6 * 5);
  EXPECT_EQ(rows.a.a, 8 * 3);
  EXPECT_EQ(std::vector<int64_t>({rows.ofA, rows.ofB, rows.ofC, rows.constant}), std::vector<int64_t>({1, -3, -2, -1}));
  EXPECT_EQ(std::vector<int64_t>({columns.ofA, columns.ofB, columns.ofC, columns.constant}),
            std::vector<int64_t>({1, 2, -1, 4}));
  letters.exchange();
  EXPECT_EQ(letters.related[0].a.names, "r");
  EXPECT_EQ(letters.related[0].ofA, -3);
  EXPECT_EQ(letters.related[0].a.a, 2 * 3 * 5);
}

TEST(RelationTest, TheTextIsKept) {
  Result<Equation> equation = parseEquation("hc,rco->po; h=2p+3r-1");
  ASSERT_TRUE(equation.ok());
  EXPECT_EQ(equation->c, "po");
  EXPECT_EQ(equation->relations, "h=2p+3r-1");
  EXPECT_EQ(equation->text(), "hc,rco->po; h=2p+3r-1");
}

TEST(RelationTest, ARelationIsOfOneLetterOfEachTensor) {
  auto said = [](std::string_view text) {
    Result<Equation> equation = parseEquation(text);
    return equation.ok() ? "no failure" : equation.failure().message;
  };
  EXPECT_EQ(said("hc,rco->po; h=p+r"), "no failure");
  EXPECT_EQ(said("hc,rco->po; 2h=3p-4r+5"), "no failure");
  EXPECT_EQ(said("hc,rco->po"), "equation \"hc,rco->po\": letter h appears in one tensor only");
  for (std::string_view wrong : {"h=p", "h=p+", "h=0p+r", "0h=p+r", "h=p+0r", "h=-p+r", "h=p+r+q", "h=p+r-", "h+p=r",
                                 "h=p+r 1", "h=2147483648p+r", "h=p+r-9999999999999999999", "h=p+-r"})
    EXPECT_EQ(said("hc,rco->po; " + std::string(wrong)), "equation \"hc,rco->po; " + std::string(wrong) + "\": \"" +
                                                             std::string(wrong) +
                                                             "\" is not of the form \"h=2p+3r-1\"");
  EXPECT_EQ(said("hc,rco->po;"), "equation \"hc,rco->po;\": no relation follows the \";\"");
  EXPECT_EQ(said("hc,rco->po; h=p+c"),
            "equation \"hc,rco->po; h=p+c\": letter c of relation \"h=p+c\" appears in two tensors");
  EXPECT_EQ(said("hc,rco->po; h=p+x"),
            "equation \"hc,rco->po; h=p+x\": letter x of relation \"h=p+x\" appears in no tensor");
  EXPECT_EQ(said("hc,rco->po; h=p+h"), "equation \"hc,rco->po; h=p+h\": letter h is in two relations, or twice in one");
  EXPECT_EQ(said("hwc,rco->po; h=p+w"), "equation \"hwc,rco->po; h=p+w\": relation \"h=p+w\" has no letter of b");
  EXPECT_EQ(said("hc,rco->po; h=p+r; h=p+r"),
            "equation \"hc,rco->po; h=p+r; h=p+r\": letter h is in two relations, or twice in one");
}

/// Every place, by trying all.
TEST(RelationTest, ARunIsEveryPlaceInRange) {
  for (int64_t ofX : {-6, -3, -2, -1, 1, 2, 4, 6})
    for (int64_t ofY : {-4, -3, -1, 1, 2, 5, 6})
      for (int64_t sizeX : {0, 1, 4, 9})
        for (int64_t sizeY : {0, 1, 7})
          for (int64_t rest = -25; rest <= 25; ++rest) {
            std::vector<std::pair<int64_t, int64_t>> all, found;
            for (int64_t x = 0; x < sizeX; ++x)
              for (int64_t y = 0; y < sizeY; ++y)
                if (ofX * x + ofY * y == rest)
                  all.emplace_back(x, y);
            auto run = runOf(ofX, sizeX, ofY, sizeY, rest);
            for (int64_t i = 0; i < run.count; ++i)
              found.emplace_back(run.x + i * run.stepX, run.y + i * run.stepY);
            ASSERT_EQ(all, found) << ofX << " x + " << ofY << " y = " << rest << ", " << sizeX << " by " << sizeY;
          }
}

TEST(RelationTest, TermsAreCountedWithoutPadding) {
  auto terms = [](std::string_view text, std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t> sizes) {
    return numberOfTerms(Letters(*parseEquation(text), a, b, sizes));
  };
  EXPECT_EQ(terms("mk,kn->mn", {2, 3}, {3, 5}, {}), 30);
  EXPECT_EQ(terms("hc,rco->po; h=p+r-1", {4, 2}, {3, 2, 5}, {4}), (3 + 4 + 3) * 2 * 5);
  EXPECT_EQ(terms("hc,rco->po; h=p+r+9", {4, 2}, {3, 2, 5}, {4}), 0);
  // The shortest letter is gone through, whichever it is; where all are long the count is a bound.
  EXPECT_EQ(terms("h,r->p; h=p+r", {5}, {3'000'000'000}, {7}), 5 + 4 + 3 + 2 + 1);
  EXPECT_EQ(terms("h,r->p; h=p+r", {3'000'000'000}, {7}, {5}), 35);
  EXPECT_EQ(terms("h,r->p; h=p+r", {1 << 20}, {1 << 20}, {1 << 20}), int64_t(1) << 40);
}

} // namespace
} // namespace wg::runtime
