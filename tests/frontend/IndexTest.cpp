// Reading parts of a tensor: x[i], x[{...}], rows; against a reading of the elements one by one, eagerly,
// traced, and with sizes that are `?`.
#include "tests/frontend/Support.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace wg {
namespace {

using tests::messageOf;

/// 0, 1, 2, ... in a shape: each element is its place.
Tensor counted(const Shape &shape) { return reshape(arange(shape.numElements(), f64), shape); }

/// What is read, as a shape and the places of the elements in row-major order, by NumPy's rules.
struct Part {
  Shape shape;
  std::vector<double> places;
};
Part partOf(const Shape &shape, const std::vector<Index> &list) {
  std::vector<Index> each;
  int64_t named = std::count_if(list.begin(), list.end(),
                                [](const Index &i) { return i.kind == Index::place || i.kind == Index::range; });
  for (const Index &index : list)
    if (index.kind == Index::rest)
      each.insert(each.end(), static_cast<size_t>(shape.rank() - named), Index(slice()));
    else
      each.push_back(index);
  while (std::count_if(each.begin(), each.end(), [](const Index &i) { return i.kind != Index::added; }) < shape.rank())
    each.push_back(slice());
  Part part{{}, {0}};
  int axis = 0;
  for (const Index &index : each) {
    std::vector<int64_t> taken;
    if (index.kind == Index::added) {
      part.shape.push_back(1);
      continue;
    }
    int64_t size = shape.dim(axis++);
    auto bound = [&](int64_t at) { return at < 0 ? std::max<int64_t>(at + size, 0) : std::min(at, size); };
    if (index.kind == Index::place)
      taken = {index.at < 0 ? index.at + size : index.at};
    else
      for (int64_t i = bound(index.slice.start.value_or(0)); i < bound(index.slice.stop.value_or(size));
           i += index.slice.step)
        taken.push_back(i);
    if (index.kind == Index::range)
      part.shape.push_back(static_cast<int64_t>(taken.size()));
    std::vector<double> next;
    for (double place : part.places)
      for (int64_t i : taken)
        next.push_back(place * static_cast<double>(size) + static_cast<double>(i));
    part.places = std::move(next);
  }
  return part;
}

const std::vector<std::vector<Index>> kLists = {
    {0},
    {-1},
    {1, 2, 3},
    {-2, -3, -4},
    {},
    {ellipsis},
    {slice()},
    {newaxis},
    {1, slice(0, 3), newaxis},
    {ellipsis, 1},
    {0, ellipsis, -1},
    {newaxis, ellipsis, newaxis},
    {slice({}, {}, 2), slice(-2, {}), slice({}, -1)},
    {slice(1, 1), 2},
    {slice(2, 1)},
    {slice(-100, 100), slice(100, {}), 0},
    {slice(), slice(1, 3, 2), slice(0, {}, 3)},
    {slice({}, {}, 5), slice({}, {}, 9)},
    {ellipsis, slice(1, {}), newaxis},
    {1, newaxis, 1, newaxis, newaxis},
};
const Shape kShape{2, 3, 4};

TEST(IndexTest, APartHasTheElementsAndTheShapeThatNumPyGives) {
  Tensor x = counted(kShape);
  for (size_t i = 0; i < kLists.size(); ++i) {
    SCOPED_TRACE(i);
    Part part = partOf(kShape, kLists[i]);
    Tensor y = x[kLists[i]];
    EXPECT_EQ(y.shape(), part.shape);
    EXPECT_EQ(y.to_vector<double>(), part.places);
    EXPECT_FALSE(y.is(x)) << "a part of all is a tensor of its own";
  }
}

// A part is a value: what would be assigned to it were lost.
static_assert(!std::is_assignable_v<decltype(std::declval<Tensor &>()[0]), Tensor> &&
              std::is_assignable_v<Tensor &, Tensor>);
static_assert(std::forward_iterator<RowIterator>);

TEST(IndexTest, TheReadingOfPlacesIsThatOfTheOps) {
  Tensor x = counted(kShape);
  EXPECT_EQ(x[1].to_vector<double>(), index(x, 1).to_vector<double>());
  EXPECT_EQ((x[{ellipsis, -1}].to_vector<double>()), index(x, -1, 2).to_vector<double>());
  EXPECT_EQ((x[{slice(0, 1), slice(1, {})}].to_vector<double>()), slice(x, {0, 1}, {1, 3}).to_vector<double>());
  Variable v(counted({3}));
  EXPECT_EQ(v[2].item<double>(), 2);
  EXPECT_EQ(v[{slice({}, 2)}].to_vector<double>(), (std::vector<double>{0, 1}));
  size_t i = 1;
  uint8_t j = 2;
  EXPECT_EQ((x[{i, j}].to_vector<double>()), (std::vector<double>{20, 21, 22, 23}));
}

TEST(IndexTest, AGradientIsAtThePlacesThatWereRead) {
  for (size_t i = 0; i < kLists.size(); ++i) {
    SCOPED_TRACE(i);
    Tensor x = counted(kShape) + 1.0;
    GradientTape tape;
    tape.watch(x);
    Tensor gradient = tape.gradient(reduce_sum(square(x[kLists[i]])), x).value();
    std::vector<double> expected(24, 0.0);
    for (double place : partOf(kShape, kLists[i]).places)
      expected[static_cast<size_t>(place)] = 2 * (place + 1);
    EXPECT_EQ(gradient.to_vector<double>(), expected);
  }
}

TEST(IndexTest, ATraceWithOpenSizesReadsTheSame) {
  for (bool first : {false, true})
    for (size_t i = 0; i < kLists.size(); ++i) {
      SCOPED_TRACE(std::to_string(i) + (first ? " first" : " all"));
      auto f = wg::function("f",
                            [&](const Tensor &x) {
                              GradientTape tape;
                              tape.watch(x);
                              Tensor y = x[kLists[i]];
                              return std::vector<Tensor>{y, tape.gradient(reduce_sum(square(y)), x).value()};
                            },
                            {.interpret = true});
      ConcreteFunction open = f.trace(TensorSpec{f64, first ? Shape{dynamic, 3, 4} : Shape{dynamic, dynamic, dynamic}});
      Tensor x = counted(kShape);
      std::vector<Tensor> results = open.call_flat(std::vector<Tensor>{x});
      Part part = partOf(kShape, kLists[i]);
      EXPECT_EQ(results[0].shape(), part.shape);
      EXPECT_EQ(results[0].to_vector<double>(), part.places);
      std::vector<double> expected(24, 0.0);
      for (double place : part.places)
        expected[static_cast<size_t>(place)] = 2 * place;
      EXPECT_EQ(results[1].to_vector<double>(), expected);
    }
}

TEST(IndexTest, MachineCodeReadsTheSame) {
  auto f = wg::function("f", [&](const Tensor &x) {
    std::vector<Tensor> parts;
    for (const auto &list : kLists)
      parts.push_back(x[list] * 1.0);
    return parts;
  });
  std::vector<Tensor> results = f(counted(kShape));
  for (size_t i = 0; i < kLists.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(results[i].shape(), partOf(kShape, kLists[i]).shape);
    EXPECT_EQ(results[i].to_vector<double>(), partOf(kShape, kLists[i]).places);
  }
}

TEST(IndexTest, WhatCannotBeReadIsAnErrorAtTheUsersLine) {
  Tensor x = counted(kShape);
  std::string message = messageOf([&] { x[2]; });
  EXPECT_NE(message.find("place 2 of axis 0, whose size is 2"), std::string::npos) << message;
  EXPECT_NE(message.find("IndexTest.cpp:"), std::string::npos) << message;
  EXPECT_NE(messageOf([&] { x[-3]; }).find("place -3 of axis 0"), std::string::npos);
  EXPECT_NE((messageOf([&] { x[{ellipsis, 4}]; })).find("place 4 of axis 2"), std::string::npos);
  EXPECT_NE((messageOf([&] { x[{0, 0, 0, 0}]; })).find("4 places for a tensor of rank 3"), std::string::npos);
  EXPECT_NE((messageOf([&] { x[{ellipsis, 0, ellipsis}]; })).find("two ellipses"), std::string::npos);
  EXPECT_NE((messageOf([&] { x[{0, slice({}, {}, -1)}]; })).find("stride -1 of axis 1 is not positive"),
            std::string::npos);
  EXPECT_NE((messageOf([&] { x[slice(0, 1, 0)]; })).find("stride 0 of axis 0"), std::string::npos);
  EXPECT_NE((messageOf([&] { x[std::vector<Index>(7, newaxis)]; })).find("rank 10; the highest is 8"),
            std::string::npos);
  EXPECT_NE((messageOf([&] { x[~uint64_t(0)]; })).find("place 9223372036854775807 of axis 0"), std::string::npos);
  EXPECT_NE((messageOf([&] { Tensor()[0]; })).find("undefined"), std::string::npos);
  EXPECT_NE((messageOf([&] { Tensor(1.0)[0]; })).find("1 place for a tensor of rank 0"), std::string::npos);
  // Beyond an open axis: when the function runs.
  auto third = wg::function("third", [](const Tensor &t) { return t[2]; }, {.interpret = true})
                   .trace(TensorSpec{f64, {dynamic}});
  EXPECT_EQ(third(counted({3}))[0].item<double>(), 2);
  EXPECT_NE(messageOf([&] { third(counted({2})); }).find("IndexTest.cpp:"), std::string::npos)
      << messageOf([&] { third(counted({2})); });
}

TEST(IndexTest, RowsAreThoseOfTheFirstAxis) {
  Tensor x = counted({3, 2});
  double place = 0;
  for (Tensor row : x) {
    EXPECT_EQ(row.to_vector<double>(), (std::vector<double>{place, place + 1}));
    place += 2;
  }
  EXPECT_EQ(place, 6);
  std::vector<Tensor> rows(x.begin(), x.end());
  EXPECT_EQ(rows.size(), 3u);
  for (Tensor row : zeros({0, 4}))
    ADD_FAILURE() << row;
  for (const Tensor &number : counted({2})) // a temporary lives as long as the loop
    EXPECT_EQ(number.rank(), 0);
}

TEST(IndexTest, RowsAreRecordedAndTraced) {
  auto sum = [](const Tensor &x) {
    Tensor total(0.0);
    double weight = 1;
    for (Tensor row : x)
      total = total + reduce_sum(square(row)) * weight++;
    return total;
  };
  Tensor x = counted({3, 2});
  GradientTape tape;
  tape.watch(x);
  Tensor y = sum(x);
  std::vector<double> expected{0, 2, 8, 12, 24, 30};
  EXPECT_EQ(tape.gradient(y, x).value().to_vector<double>(), expected);
  auto [value, gradient] = value_and_grad(wg::function("sum", sum))(x);
  EXPECT_EQ(value.item<double>(), y.item<double>());
  EXPECT_EQ(Tensor(gradient).to_vector<double>(), expected);
}

TEST(IndexTest, RowsOfAScalarAndOfAnOpenAxisAreErrors) {
  auto iterate = [](const Tensor &x) {
    for (Tensor row : x)
      return row;
    return x;
  };
  EXPECT_NE(messageOf([&] { iterate(Tensor(1.0)); }).find("a scalar has no axis to iterate over"), std::string::npos);
  std::string message = messageOf([&] { wg::function("f", iterate).trace(TensorSpec{f64, {dynamic, 2}}); });
  EXPECT_NE(message.find("how many rows f64[?,2] has"), std::string::npos) << message;
  EXPECT_NE(message.find("IndexTest.cpp:"), std::string::npos) << message;
  EXPECT_EQ(wg::function("f", iterate).trace(TensorSpec{f64, {2, dynamic}})(counted({2, 3}))[0].shape(), (Shape{3}))
      << "an open size behind the first is none";
}

// ---- shape_check ----------------------------------------------------------------------------------------------------

TEST(ShapeCheckTest, ReturnsTheTensorOrSaysWhatIsWrongAndWhere) {
  Tensor x = zeros({2, 3});
  EXPECT_TRUE(shape_check(x, {2, 3}).is(x));
  EXPECT_TRUE(shape_check(x, {dynamic, 3}, "images").is(x));
  EXPECT_TRUE(shape_check(x, {-1, -1}).is(x));
  EXPECT_EQ(shape_check(Variable(1.0f), {}).item<float>(), 1);
  std::string message = messageOf([&] { shape_check(x, {dynamic, 784}, "images"); });
  EXPECT_NE(message.find("shape_check: `images` has the shape (2, 3), wanted (?, 784): axis 1 has 3 places, not 784"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("IndexTest.cpp:"), std::string::npos) << message;
  EXPECT_NE(messageOf([&] {
              shape_check(x, {6});
            }).find("the tensor has the shape (2, 3), wanted (6,): the rank is 2, not 1"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { shape_check(x, {-2, 3}); }).find("the size -2"), std::string::npos);
  EXPECT_NE(messageOf([&] { shape_check(Tensor(), {}); }).find("undefined"), std::string::npos);
}

TEST(ShapeCheckTest, AnOpenSizeIsCheckedWhenTheFunctionRuns) {
  for (bool interpret : {true, false}) {
    auto f = wg::function("f",
                          [](const Tensor &x) {
                            Tensor y = shape_check(x, {2, 3}, "x");
                            EXPECT_EQ(y.shape(), (Shape{2, 3}));
                            return y * 2.0;
                          },
                          {.interpret = interpret})
                 .trace(TensorSpec{f64, {dynamic, dynamic}});
    EXPECT_EQ(f(counted({2, 3}))[0].to_vector<double>(), (std::vector<double>{0, 2, 4, 6, 8, 10}));
    for (Shape wrong : {Shape{3, 2}, Shape{1, 3}, Shape{2, 2}, Shape{6, 1}, Shape{0, 3}}) {
      std::string message = messageOf([&] { f(counted(wrong)); });
      EXPECT_NE(message.find("IndexTest.cpp:"), std::string::npos) << toString(wrong) << ": " << message;
    }
  }
  std::string message = messageOf([] {
    wg::function("f", [](const Tensor &x) {
      return shape_check(x, {dynamic, 784}, "images");
    }).trace(TensorSpec{f32, {dynamic, 10}});
  });
  EXPECT_NE(message.find("`images` has the shape (?, 10), wanted (?, 784)"), std::string::npos) << message;
  auto same = wg::function("f", [](const Tensor &x) {
    EXPECT_TRUE(shape_check(x, {dynamic, 10}).is(x));
    return x;
  });
  same.trace(TensorSpec{f32, {dynamic, 10}});
}

} // namespace
} // namespace wg
