// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011), one block an element, so that an element is a function of the key
// and of its place i alone: counter = (i low, i high, key0 high, key1 high), key = (key0 low, key1 low).
// runtime/Random.h has the same bits.
#include "ir/Build.h"
#include "ir/ops/Loops.h"
#include "ir/ops/Scalar.h"

using namespace mlir;

namespace wg::ir {

/// The lower and the upper half of a 64-bit word.
static std::pair<Value, Value> halves(OpBuilder &b, Location loc, Value word) {
  Type half = withLanes(b.getI32Type(), word.getType());
  Value shift = constant(b, loc, word.getType(), 32.0);
  return {arith::TruncIOp::create(b, loc, half, word),
          arith::TruncIOp::create(b, loc, half, arith::ShRUIOp::create(b, loc, word, shift))};
}

struct Block {
  Value word[4];
};

/// One round (equation 4 of the paper's section 3.3): both products, their halves crossed and keyed.
static Block philoxRound(OpBuilder &b, Location loc, const Block &x, Value key0, Value key1) {
  Type type = x.word[0].getType();
  auto product = [&](Value word, uint32_t factor) {
    return arith::MulUIExtendedOp::create(b, loc, word, constant(b, loc, type, APInt(32, factor)));
  };
  auto mix = [&](Value high, Value word, Value key) {
    return arith::XOrIOp::create(b, loc, arith::XOrIOp::create(b, loc, high, word), key).getResult();
  };
  auto first = product(x.word[0], 0xD2511F53), second = product(x.word[2], 0xCD9E8D57);
  return {
      {mix(second.getHigh(), x.word[1], key0), second.getLow(), mix(first.getHigh(), x.word[3], key1), first.getLow()}};
}

/// The words of the element at `at` of a result of `shape`, whose leading axes are those of the keys.
static Block wordsAt(OpBuilder &b, Location loc, Value key, ArrayRef<int64_t> shape, ArrayRef<Coordinate> at,
                     int64_t lanes, ReadElement read) {
  size_t leading = cast<RankedTensorType>(key.getType()).getRank() - 1;
  auto keyWord = [&](int64_t i) {
    SmallVector<Coordinate> place(at.take_front(leading));
    place.push_back({arith::ConstantIndexOp::create(b, loc, i), 0});
    Value word = read(0, place);
    Type wide = withLanes(b.getI64Type(), word.getType());
    return halves(b, loc, word.getType() == wide ? word : arith::ExtSIOp::create(b, loc, wide, word).getResult());
  };
  Value place = linearPlace(b, loc, shape.drop_front(leading), at.drop_front(leading), lanes);
  auto [low, high] =
      halves(b, loc, arith::IndexCastOp::create(b, loc, withLanes(b.getI64Type(), place.getType()), place));
  auto [key0, key0High] = keyWord(0);
  auto [key1, key1High] = keyWord(1);
  Block x{{low, high, key0High, key1High}};
  Value step0 = constant(b, loc, low.getType(), APInt(32, 0x9E3779B9)),
        step1 = constant(b, loc, low.getType(), APInt(32, 0xBB67AE85));
  for (int round = 0; round < 10; ++round) {
    x = philoxRound(b, loc, x, key0, key1);
    key0 = arith::AddIOp::create(b, loc, key0, step0);
    key1 = arith::AddIOp::create(b, loc, key1, step1);
  }
  return x;
}

/// word1 above word0, as one 64-bit word.
static Value wide(OpBuilder &b, Location loc, const Block &x) {
  Type type = withLanes(b.getI64Type(), x.word[0].getType());
  Value high =
      arith::ShLIOp::create(b, loc, arith::ExtUIOp::create(b, loc, type, x.word[1]), constant(b, loc, type, 32.0));
  return arith::OrIOp::create(b, loc, high, arith::ExtUIOp::create(b, loc, type, x.word[0]));
}

/// The top p bits of a word, times 2^-p, where p is the precision of the type: f32 takes 24 bits, f64 53.
Value RandomUniformOp::element(OpBuilder &b, Location loc, ArrayRef<Coordinate> at, int64_t lanes, ReadElement read) {
  Block words = wordsAt(b, loc, getKey(), getType().getShape(), at, lanes, read);
  auto floatType = cast<FloatType>(getType().getElementType());
  Value word = floatType.isF64() ? wide(b, loc, words) : words.word[0];
  unsigned width = getElementTypeOrSelf(word).getIntOrFloatBitWidth(),
           precision = APFloat::semanticsPrecision(floatType.getFloatSemantics());
  Value bits =
      arith::ShRUIOp::create(b, loc, word, constant(b, loc, word.getType(), static_cast<double>(width - precision)));
  Type type = withLanes(floatType, word.getType());
  return arith::MulFOp::create(b, loc, arith::SIToFPOp::create(b, loc, type, bits),
                               constant(b, loc, type, std::ldexp(1.0, -static_cast<int>(precision))));
}

Value RandomBitsOp::element(OpBuilder &b, Location loc, ArrayRef<Coordinate> at, int64_t lanes, ReadElement read) {
  Block words = wordsAt(b, loc, getKey(), getType().getShape(), at, lanes, read);
  return getType().getElementType().isInteger(64) ? wide(b, loc, words) : words.word[0];
}

//===- Batches ----------------------------------------------------------------------------------------------===//

FailureOr<Expr> RandomUniformOp::batch(const Lanes &x) {
  return x[0].make<RandomUniformOp>(x[0], getShape(), getDtype(), x.at(getSizes()));
}
FailureOr<Expr> RandomBitsOp::batch(const Lanes &x) {
  return x[0].make<RandomBitsOp>(x[0], getShape(), getDtype(), x.at(getSizes()));
}

} // namespace wg::ir
