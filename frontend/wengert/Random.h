// Random numbers: functions of a key. Element i of a draw is a function of the key and of i alone, the same in every
// engine; a draw has no derivative by its key. Shapes are as those of `zeros`.
#pragma once

#include <wengert/Ops.h>

#include <optional>
#include <vector>

namespace wg {

namespace random {
/// A key i64[2] from a seed.
WENGERT_API Tensor key(int64_t seed);
/// `count` keys that are independent of each other and of `key`; an error if it is negative.
WENGERT_API std::vector<Tensor> split(const Located &key, int64_t count = 2);
/// A key for each number, such as that of a step or an example: keys of two numbers are independent, and of `key`.
/// Shapes: key i64[2], number integer[] -> i64[2].
WENGERT_API Tensor fold_in(const Located &key, const Located &number);
} // namespace random

/// Uniform in [low, high).
WENGERT_API Tensor random_uniform(const Located &key, const Shape &shape, double low = 0, double high = 1,
                                  DType dtype = f32);
/// Normal with the given mean and standard deviation (Box and Muller 1958).
WENGERT_API Tensor random_normal(const Located &key, const Shape &shape, double mean = 0, double stddev = 1,
                                 DType dtype = f32);
/// Normal, given that it is within two standard deviations of the mean: mean + stddev sqrt(2) erfinv(u) with u uniform
/// in [-erf(sqrt 2), erf(sqrt 2)). Its own standard deviation is 0.87962566 stddev. Errors: a stddev that is not finite
/// and 0 or more.
WENGERT_API Tensor random_truncated_normal(const Located &key, const Shape &shape, double mean = 0, double stddev = 1,
                                           DType dtype = f32);
/// Exponential with mean `scale`: -scale log(1 - u), which is finite, and may be 0. Errors: a scale that is not finite
/// and 0 or more.
WENGERT_API Tensor random_exponential(const Located &key, const Shape &shape, double scale = 1, DType dtype = f32);
/// Gumbel: location - scale log(-log(1 - u)), where a u of 0 counts as half of the least other one: finite. Errors: a
/// scale that is not finite and 0 or more.
WENGERT_API Tensor random_gumbel(const Located &key, const Shape &shape, double location = 0, double scale = 1,
                                 DType dtype = f32);
/// Laplace: location plus or minus an exponential number of mean `scale`. Errors: a scale that is not finite and 0 or
/// more.
WENGERT_API Tensor random_laplace(const Located &key, const Shape &shape, double location = 0, double scale = 1,
                                  DType dtype = f32);
/// True with the given probability: u < probability. A tensor of probabilities broadcasts with the shape; a NaN is
/// false. Shapes: probability float[...] -> bool[...].
WENGERT_API Tensor random_bernoulli(const Located &key, const Shape &shape, const Located &probability);
/// Integers in [low, high), which are equally probable but for (high - low) / 2^64. Errors: no integer between low and
/// high, or as many as i64 cannot count; a dtype that is no integer, or does not hold them.
WENGERT_API Tensor random_integers(const Located &key, const Shape &shape, int64_t low, int64_t high,
                                   DType dtype = i64);
/// Classes, each with probability softmax(logits), by the maximum of logits + Gumbel numbers (Gumbel 1954; Maddison,
/// Tarlow and Minka 2014): one for each row, or `samples` of them, independent, along a last axis. A class whose logit
/// is -inf is not drawn unless all are; a NaN counts as the largest. Errors: logits without a last axis, or with an
/// empty one; a negative count.
/// Shapes: logits float[..., classes] -> i64[...] or i64[..., samples].
WENGERT_API Tensor random_categorical(const Located &key, const Located &logits, std::optional<int64_t> samples = {});
/// The places 0, ..., count - 1 in an order of which each is as probable: that which sorts words of 64 random bits.
/// Errors: a negative count. Shapes: -> i64[count].
WENGERT_API Tensor random_permutation(const Located &key, int64_t count);
/// x with the places along an axis in such an order, one order for all of x.
/// Shapes: x any[...] of rank 1 or more -> as x.
WENGERT_API Tensor random_shuffle(const Located &key, const Located &x, int64_t axis = 0);

/// A key that every draw advances; inside a traced function it is state like any variable. Threads may share it: no two
/// draws have the same key. Each draw is the function of the same name of the next key. In a data parallel step each
/// shard has keys of its own, whichever rank computes it; keys that a program hands over itself are the same for all.
class WENGERT_API Generator {
public:
  explicit Generator(int64_t seed, Where where = Where::current());
  /// A key that no other call of this generator returns.
  Tensor next(Where where = Where::current()) const;
  Tensor uniform(const Shape &shape, double low = 0, double high = 1, DType dtype = f32,
                 Where where = Where::current()) const;
  Tensor normal(const Shape &shape, double mean = 0, double stddev = 1, DType dtype = f32,
                Where where = Where::current()) const;
  Tensor truncated_normal(const Shape &shape, double mean = 0, double stddev = 1, DType dtype = f32,
                          Where where = Where::current()) const;
  Tensor exponential(const Shape &shape, double scale = 1, DType dtype = f32, Where where = Where::current()) const;
  Tensor gumbel(const Shape &shape, double location = 0, double scale = 1, DType dtype = f32,
                Where where = Where::current()) const;
  Tensor laplace(const Shape &shape, double location = 0, double scale = 1, DType dtype = f32,
                 Where where = Where::current()) const;
  Tensor bernoulli(const Shape &shape, const Located &probability) const;
  Tensor integers(const Shape &shape, int64_t low, int64_t high, DType dtype = i64,
                  Where where = Where::current()) const;
  Tensor categorical(const Located &logits, std::optional<int64_t> samples = {}) const;
  Tensor permutation(int64_t count, Where where = Where::current()) const;
  Tensor shuffle(const Located &x, int64_t axis = 0) const;
  const Variable &state() const { return state_; }

private:
  Variable state_;
};

} // namespace wg
