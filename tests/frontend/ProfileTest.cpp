// A profile: counts that equal those made by hand, times, and nothing that it changes.
#include "tests/frontend/Support.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

using namespace wg;
using tests::messageOf;
using tests::says;

namespace {

struct Work {
  double flops = 0, transcendentals = 0, read = 0, written = 0;
  Work operator+(const Work &other) const {
    return {flops + other.flops, transcendentals + other.transcendentals, read + other.read, written + other.written};
  }
};

void expectWork(const Profile &profile, const Work &wanted) {
  Work found;
  for (const KernelProfile &kernel : profile.kernels)
    found = found + Work{kernel.flops, kernel.transcendentals, kernel.bytes_read, kernel.bytes_written};
  EXPECT_EQ(found.flops, wanted.flops) << profile.to_string();
  EXPECT_EQ(found.transcendentals, wanted.transcendentals) << profile.to_string();
  EXPECT_EQ(found.read, wanted.read) << profile.to_string();
  EXPECT_EQ(found.written, wanted.written) << profile.to_string();
}

// Adam's update of one parameter:
//   m = b1 m + (1 - b1) g              3
//   v = b2 v + (1 - b2) g g            4
//   |m|, |v|, which keep out subnormal 2
//   p -= (r m) / (sqrt(v c) + eps)     6: two products, a root, a sum, a quotient, a difference
constexpr double kAdamFlops = 15;
/// Reads p, m, v (the gradient is counted where it is made), writes them.
constexpr double kAdamBytes = 12;
/// r and c follow from the step's number, i64, and the rate, f64: -rate, two products, two expm1, two quotients. Writes
/// the number, r, c.
const Work kAdamRates = {5, 2, 16, 16};

Work adam(double parameters) {
  return {kAdamFlops * parameters, 0, kAdamBytes * parameters + 8, kAdamBytes * parameters}; // and r, c
}

// Step a: e = w x + b - y, loss = sum(e e) / 32, d = e / 32 + e / 32, db = sum(d), dw = sum(d x).
TEST(Profile, CountsOfALine) {
  Variable w(0.0f), b(0.0f);
  auto step = wg::function("a", [=](const Tensor &x, const Tensor &y) mutable {
    GradientTape tape;
    Tensor loss = mean(square(w * x + b - y));
    auto [dw, db] = tape.gradient(loss, w, b);
    w.assign_sub(0.05 * dw);
    b.assign_sub(0.05 * db);
    return loss;
  });
  // For each element w x, + b, - y, e e, its sum, e / 32, their sum, its sum, d x, its sum; then / 32, and two updates
  // of a product and a difference.
  expectWork(step.profile(ones({32}), ones({32})), {10 * 32 + 1 + 4, 0, 2 * 4 * 32 + 8, 12});
}

// Steps b and c: a network of relu layers, cross entropy, Adam.
void checkNetwork(const std::vector<int64_t> &sizes, int64_t batch) {
  std::vector<Variable> parameters;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    parameters.emplace_back(random_normal(random::key(i), {sizes[i], sizes[i + 1]}, 0, 0.01));
    parameters.emplace_back(zeros({sizes[i + 1]}));
  }
  optim::Adam optimizer(0.001);
  auto step = wg::function("network", [&](const Tensor &x, const Tensor &labels) {
    GradientTape tape;
    Tensor h = x;
    for (size_t i = 0; i < parameters.size(); i += 2) {
      h = matmul(h, parameters[i]) + parameters[i + 1];
      if (i + 2 < parameters.size())
        h = relu(h);
    }
    Tensor loss = nn::cross_entropy(h, labels);
    optimizer.apply(tape.gradient(loss, parameters), parameters);
    return loss;
  });
  double n = static_cast<double>(batch), classes = static_cast<double>(sizes.back());
  size_t layers = sizes.size() - 1;
  Work work = kAdamRates;
  for (size_t i = 0; i < layers; ++i) {
    double in = static_cast<double>(sizes[i]), out = static_cast<double>(sizes[i + 1]);
    bool hidden = i + 1 < layers;
    // h w + b; a hidden layer's relu, and where it is positive, a byte each.
    work = work + Work{2 * n * in * out + n * out * (hidden ? 2 : 1), 0, 4 * (n * in + in * out + out),
                       n * out * (hidden ? 5 : 4)};
    // dw = h^T d, db = the sum of d over the batch, and both updates.
    work = work + Work{2 * n * in * out, 0, 4 * (n * in + n * out), 0} + adam(in * out);
    work = work + Work{n * out, 0, 4 * n * out, 0} + adam(out);
    // d = d w^T where the relu was positive.
    if (i > 0)
      work = work + Work{2 * n * in * out, 0, 4 * (n * out + in * out) + n * in, 4 * n * in};
  }
  // Labels from memory: the classes' numbers, i64, are written and read with the labels, and the labels written.
  work = work + Work{0, 0, 8 * (classes + n), 8 * (classes + n)};
  // -1 / n for each row.
  work = work + Work{n, 0, 0, 4 * n};
  // Of each logit: max, the difference from it, exp, the sum of these, the sum of the label's, softmax / n, the sum
  // with -1 / n at the label. Of each row: log, a difference, 1 / (n sum). Reads the logits, the labels, -1 / n.
  work = work + Work{6 * n * classes + 2 * n, n * classes + n, 4 * n * classes + 12 * n, 4 * n * classes + 4 * n};
  // The mean of the rows.
  work = work + Work{n + 1, 0, 4 * n, 4};
  // The forms of products are the machine's: what it copies into another order; and the gradient of the last weights,
  // [128, 10] or [1024, 10], may be made as its transpose, which is wide, and lie in memory before the update reads it.
  Profile profile = step.profile(random_normal(random::key(99), {batch, sizes[0]}), zeros({batch}, i64));
  double last = static_cast<double>(sizes[layers - 1]) * classes;
  std::set<double> tensors; // bytes of those that products read or write
  for (size_t i = 0; i < sizes.size(); ++i) {
    tensors.insert(4 * n * static_cast<double>(sizes[i]));
    if (i < layers)
      tensors.insert(4 * static_cast<double>(sizes[i]) * static_cast<double>(sizes[i + 1]));
  }
  for (const KernelProfile &kernel : profile.kernels) {
    if (kernel.kind == "map" && kernel.summary == "transpose") {
      EXPECT_EQ(kernel.bytes_read, kernel.bytes_written);
      EXPECT_TRUE(tensors.contains(kernel.bytes_read)) << kernel.bytes_read;
      work = work + Work{0, 0, kernel.bytes_read, kernel.bytes_written};
    }
    if (kernel.kind == "map" && kernel.flops == kAdamFlops * last)
      work = work + Work{0, 0, 4 * last, 4 * last};
  }
  expectWork(profile, work);
}

TEST(Profile, CountsOfANetwork) { checkNetwork({784, 128, 10}, 64); }
TEST(Profile, CountsOfALargerNetwork) { checkNetwork({784, 1024, 1024, 10}, 256); }

// Step f: five times y = tanh(y / 2 + 0.1) x; the gradient of its sum by x.
TEST(Profile, CountsOfAChain) {
  for (int64_t n : {4096, 4194304}) {
    auto step = wg::function("f", [](const Tensor &x) {
      GradientTape tape;
      tape.watch(x);
      Tensor y = x;
      for (int i = 0; i < 5; ++i)
        y = tanh(y * 0.5 + 0.1) * x;
      return tape.gradient(reduce_sum(y), x).value();
    });
    // Forward 0.5 y, + 0.1, t x, of which nobody needs the last. Back in each round: t t, 1 - t t, d (1 - t t), / 2; in
    // all but the first d x, and d t into x's gradient, a product and a sum. Last, y's own part of x's.
    double each = 5 * 3 - 1 + 5 * 4 + 4 * 3 + 1;
    double count = static_cast<double>(n);
    expectWork(step.profile(sin(arange(0, n, 1, f32))), {each * count, 5 * count, 4 * count, 4 * count});
  }
}

// Step k: Adam alone.
TEST(Profile, CountsOfAnUpdate) {
  constexpr int64_t n = 10'000'000;
  Variable p(ones({n}));
  optim::Adam optimizer(0.001);
  auto step = wg::function("k", [&](const Tensor &g) {
    optimizer.apply(Grad(g), p);
    return Tensor(0.0f);
  });
  // The gradient lies in memory; the step's own result is a number.
  expectWork(step.profile(ones({n})), adam(n) + kAdamRates + Work{0, 0, 4 * n, 4});
}

TEST(Profile, AConvolutionCountsNoPadding) {
  auto f = wg::function("f", [](const Tensor &x, const Tensor &w) { return conv2d(x, w, {.padding = Padding::same}); });
  // Of 5 rows three windows of 3 reach each other's middle: 3 + 3 + 3 and 2 + 2 terms; columns alike.
  double terms = (3.0 * 3 + 2 * 2) * (3.0 * 3 + 2 * 2) * 4 * 7;
  expectWork(f.profile(ones({1, 5, 5, 4}), ones({3, 3, 4, 7})), {2 * terms, 0, 4.0 * (100 + 252), 4.0 * 175});
}

TEST(Profile, ChangesNothing) {
  Variable w(ones({40, 40})), counter(Tensor(int64_t(0)));
  Generator generator(7);
  auto step = wg::function("step", [&](const Tensor &x) {
    counter.assign_add(Tensor(int64_t(1)));
    w.assign_sub(0.1 * matmul(x, w) + generator.normal({40, 40}));
    return reduce_sum(w.value());
  });
  Tensor x = ones({40, 40});
  Profile first = step.profile(x);
  EXPECT_EQ(counter.value().item<int64_t>(), 0);
  EXPECT_EQ(w.value().to_vector<float>(), ones({40, 40}).to_vector<float>());
  EXPECT_GE(first.calls, 5);
  // The same numbers as a function that was never profiled.
  Variable v(ones({40, 40}));
  Generator same(7);
  auto other = wg::function("step", [&](const Tensor &x) {
    v.assign_sub(0.1 * matmul(x, v) + same.normal({40, 40}));
    return reduce_sum(v.value());
  });
  float total = step(x).item<float>();
  EXPECT_EQ(total, other(x).item<float>());
  (void)step.profile(x);
  EXPECT_EQ(counter.value().item<int64_t>(), 1);
  EXPECT_EQ(step(x).item<float>(), other(x).item<float>());
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(Profile, SaysWhatEachKernelTakes) {
  auto f = wg::function("f", [](const Tensor &x, const Tensor &w) {
    Tensor y = matmul(x, w);
    return std::pair(y, reduce_sum(tanh(y), 0));
  });
  Tensor x = random_normal(random::key(1), {200, 300}), w = random_normal(random::key(2), {300, 16});
  ConcreteFunction concrete = f.trace(x, w);
  for (const Profile &profile : {f.profile(x, w), concrete.profile(x, w)}) {
    EXPECT_EQ(profile.function, concrete.signature());
    ASSERT_EQ(profile.kernels.size(), 2u);
    EXPECT_EQ(profile.distinct_kernels, 2);
    EXPECT_GT(profile.code_bytes, 0);
    EXPECT_GT(profile.seconds, 0);
    EXPECT_TRUE(says(profile.machine, "thread")) << profile.machine;
    const KernelProfile &product = profile.kernels[0], &sum = profile.kernels[1];
    EXPECT_EQ(product.kind, "contract");
    EXPECT_EQ(product.flops, 2.0 * 200 * 300 * 16);
    EXPECT_EQ(sum.kind, "reduce");
    EXPECT_EQ(product.transcendentals, 200.0 * 16); // beside the product, which lies in memory anyway
    EXPECT_EQ(sum.flops, 200.0 * 16);
    for (const KernelProfile &kernel : profile.kernels) {
      EXPECT_GT(kernel.seconds, 0);
      EXPECT_GT(kernel.peak_flops, 0);
      EXPECT_GT(kernel.peak_bytes, 0);
      EXPECT_FALSE(kernel.bound.empty());
      EXPECT_TRUE(says(kernel.lines, "ProfileTest.cpp:")) << kernel.lines;
    }
    EXPECT_NE(product.level, "memory");
    EXPECT_EQ(profile.kernel_seconds(), product.seconds + sum.seconds);
  }
}

TEST(Profile, CopiesOfResultsAndManyKernels) {
  auto f = wg::function("f", [](const Tensor &x) {
    Tensor y = x;
    for (int i = 0; i < 150; ++i) // more than one part of straight code
      y = y - mean(y, i % 2, true);
    return std::pair(y, y);
  });
  Profile profile = f.profile(random_normal(random::key(1), {64, 64}));
  EXPECT_GT(profile.kernels.size(), 128u);
  EXPECT_LT(profile.distinct_kernels, 8);
  for (const KernelProfile &kernel : profile.kernels)
    EXPECT_GE(kernel.seconds, 0) << kernel.name;
  std::string text = profile.to_string(3);
  EXPECT_TRUE(says(text, std::to_string(profile.kernels.size() - 3) + " more")) << text;
  EXPECT_TRUE(says(text, "copies of results")) << text;
}

/// What runs in a loop has rows of its own, whose work is that of all turns.
TEST(Profile, OfBodies) {
  constexpr int64_t n = 40, turns = 30;
  Tensor w = random_normal(random::key(1), {n, n}, 0, 0.1);
  auto f = wg::function("f", [&](const Tensor &x) {
    Tensor last = for_range(0, turns, [&](const Tensor &, const Tensor &x) { return tanh(matmul(x, w)); }, x);
    return cond(reduce_sum(x) > 0, [&] { return matmul(last, w); }, [&] { return exp(last); });
  });
  Tensor x = random_normal(random::key(2), {n, n});
  for (bool positive : {true, false}) {
    Profile profile = f.profile(positive ? abs(x) : -abs(x));
    double seconds = 0;
    int rows = 0;
    for (const KernelProfile &kernel : profile.kernels) {
      seconds += kernel.seconds;
      if (kernel.kind == "loop" || kernel.kind == "cond") {
        EXPECT_EQ(kernel.launches, 1) << profile.to_string();
        EXPECT_EQ(kernel.flops, 0) << profile.to_string();
        ++rows;
      } else if (says(kernel.summary, "contract, tanh")) {
        EXPECT_EQ(kernel.launches, static_cast<double>(turns));
        EXPECT_EQ(kernel.flops, 2.0 * n * n * n * turns);
        EXPECT_EQ(kernel.transcendentals, static_cast<double>(n * n * turns));
        EXPECT_EQ(kernel.bytes_read, 4.0 * 2 * n * n * turns);
        EXPECT_GT(kernel.seconds, 0);
        EXPECT_NE(kernel.level, "memory");
        ++rows;
      } else if (kernel.summary == "contract" || kernel.summary == "exp") {
        bool taken = positive == (kernel.summary == "contract");
        EXPECT_EQ(kernel.launches, taken ? 1 : 0) << profile.to_string();
        EXPECT_EQ(kernel.seconds > 0, taken) << profile.to_string();
        EXPECT_EQ(kernel.bound.empty(), !taken);
        ++rows;
      }
    }
    EXPECT_EQ(rows, 5) << profile.to_string();
    EXPECT_DOUBLE_EQ(profile.kernel_seconds(), seconds);
  }
}

/// A loop whose state lies in registers is one function: its row is all of it, and what it computes is not known.
TEST(Profile, OfALoopInRegisters) {
  auto f = wg::function("f", [](const Tensor &x) {
    return for_range(0, 1000, [](const Tensor &, const Tensor &x) { return x * 0.999 + 0.001; }, x);
  });
  Profile profile = f.profile(ones({8}));
  ASSERT_EQ(profile.kernels.size(), 2u) << profile.to_string(); // and the range's first number
  EXPECT_EQ(profile.distinct_kernels, 2);
  const KernelProfile &loop = profile.kernels[profile.kernels[0].kind == "loop" ? 0 : 1];
  EXPECT_EQ(loop.kind, "loop");
  EXPECT_EQ(loop.launches, 1);
  EXPECT_GT(loop.seconds, profile.kernel_seconds() / 2);
  EXPECT_TRUE(std::isnan(loop.flops));
}

TEST(Profile, OfOpenSizes) {
  auto f = wg::function("f", [](const Tensor &x) { return exp(x) + x; });
  ConcreteFunction concrete = f.trace(TensorSpec{f32, {dynamic, 8}});
  for (int64_t n : {3, 5}) {
    Profile profile = concrete.profile(ones({n, 8}));
    ASSERT_EQ(profile.kernels.size(), 1u);
    EXPECT_EQ(profile.kernels[0].flops, static_cast<double>(8 * n));
    EXPECT_EQ(profile.kernels[0].transcendentals, static_cast<double>(8 * n));
  }
}

TEST(Profile, Errors) {
  auto f = wg::function("f", [](const Tensor &x) { return exp(x); });
  ConcreteFunction concrete = f.trace(ones({3}));
  EXPECT_TRUE(says(messageOf([&] { (void)concrete.profile(ones({4})); }), "f: argument 0 is f32[4], traced for f32[3]"))
      << messageOf([&] { (void)concrete.profile(ones({4})); });
  EXPECT_TRUE(says(messageOf([&] { (void)concrete.profile(); }), "f: takes 1 tensor, got 0"));
  EXPECT_TRUE(says(messageOf([&] { (void)concrete.profile(Tensor()); }), "f: "));
  auto slow = wg::function("slow", [](const Tensor &x) { return exp(x); }, {.interpret = true});
  EXPECT_TRUE(says(messageOf([&] { (void)slow.profile(ones({3})); }),
                   "slow: the function is interpreted: there are no kernels to time"))
      << messageOf([&] { (void)slow.profile(ones({3})); });
  auto rows = wg::function("rows", [](const Tensor &x, const Tensor &i) { return gather(x, i); });
  EXPECT_TRUE(says(messageOf([&] { (void)rows.profile(ones({3}), Tensor::from(std::vector<int64_t>{7})); }),
                   "gather: index 7 at position 0 is out of range for an axis of size 3"))
      << messageOf([&] { (void)rows.profile(ones({3}), Tensor::from(std::vector<int64_t>{7})); });
  auto outer = wg::function("outer", [&](const Tensor &x) {
    (void)f.profile(x);
    return x;
  });
  EXPECT_TRUE(says(messageOf([&] { (void)outer(ones({3})); }), "a function is being traced"))
      << messageOf([&] { (void)outer(ones({3})); });
}

// An index that each call moves on runs out of range after a few calls: those before it count.
TEST(Profile, AProgramThatFailsLater) {
  Variable at(Tensor(int64_t(0)));
  auto next = wg::function("next", [&](const Tensor &x) {
    Tensor y = gather(x, at.value());
    at.assign_add(Tensor(int64_t(1)));
    return y;
  });
  Profile profile = next.profile(ones({5}));
  EXPECT_EQ(profile.calls, 3); // after two that warm up
  EXPECT_EQ(at.value().item<int64_t>(), 0);
}

TEST(Profile, LimitsThatCannotBeKeptAreMeasuredAgain) {
  const char *known = std::getenv("XDG_CACHE_HOME");
  std::string before = known ? known : "";
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("wengert_profile_" + std::to_string(getpid()));
  std::ofstream(folder) << "a file, and no folder";
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  auto f = wg::function("f", [](const Tensor &x) { return exp(x); });
  EXPECT_GT(f.profile(ones({100})).kernels.at(0).peak_flops, 0);
  known ? setenv("XDG_CACHE_HOME", before.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove(folder);
}

/// Limits that were measured while the machine did something else say less than what a kernel does.
TEST(Profile, LimitsThatAreExceededAreRaised) {
  const char *known = std::getenv("XDG_CACHE_HOME");
  std::string before = known ? known : "";
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("wengert_limits_" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  Tensor a = ones({256, 256});
  auto f = wg::function("f", [](const Tensor &a) { return matmul(a, a); });
  f.profile(a);
  // The file says a thousandth of the truth. How much more is found depends on what else the machine does.
  std::filesystem::path path = std::filesystem::directory_iterator(folder / "wengert")->path();
  nlohmann::json json = nlohmann::json::parse(std::ifstream(path));
  double truth = json["peaks"][0]["one"];
  for (auto &peak : json["peaks"])
    peak["one"] = peak["all"] = truth / 1000;
  std::ofstream(path) << json;
  KernelProfile kernel = f.profile(a).kernels.at(0);
  EXPECT_GT(kernel.peak_flops, 1e9 * truth / 100);
  json = nlohmann::json::parse(std::ifstream(path));
  EXPECT_GT(double(json["peaks"][0]["one"]), truth / 100);
  known ? setenv("XDG_CACHE_HOME", before.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(folder);
}

TEST(Profile, Table) {
  Profile profile;
  profile.function = "step(arg0: f32[64,784]) -> (f32[])";
  profile.seconds = 127e-6, profile.copies = 2e-6, profile.calls = 1234, profile.distinct_kernels = 2;
  profile.code_bytes = 2048, profile.machine = "A CPU, 2 threads";
  KernelProfile product;
  product.name = "step_k0_contract", product.kind = "contract", product.summary = "contract, add, relu";
  product.lines = "train.cpp:12, 14-15", product.seconds = 100e-6, product.flops = 12.8e6;
  product.bytes_read = 600e3, product.bytes_written = 40e3, product.is_shared = true;
  product.peak_flops = 256e9, product.peak_bytes = 64e9, product.level = "L2", product.bound = "arithmetic";
  KernelProfile map;
  map.name = "step_k1_map", map.kind = "map", map.lines = "train.cpp:20";
  map.summary = "add, mul, tanh, sub, exp, neg, add, mul, tanh, sub, exp, neg";
  map.seconds = 23e-6, map.launches = 50, map.flops = std::nan(""), map.transcendentals = 5000, map.bytes_written = 999;
  map.peak_flops = 128e9, map.level = "L1", map.bound = "transcendentals";
  profile.kernels = {map, product};
  EXPECT_EQ(
      profile.to_string(),
      "step(arg0: f32[64,784]) -> (f32[])\n"
      "127 us a call, of 1234 calls; 2 kernels, 2 distinct, 2048 bytes of code; A CPU, 2 threads\n"
      "  time  share  runs   FLOPs  transc.  GFLOP/s  of peak  bytes    GB/s  of limit  bound by             kernel"
      "             ops                                       lines\n"
      "100 us   80 %     1  12.8 M               128     50 %  640 k     6.4      10 %  arithmetic, threads  "
      "step_k0_contract   contract, add, relu                       train.cpp:12, 14-15\n"
      " 23 us   18 %    50       ?      5 k                      999  0.0434            transcendentals      "
      "step_k1_map"
      "        add, mul, tanh, sub, exp, neg, add,  ...  train.cpp:20\n"
      "  2 us    2 %                                                                                         "
      "copies of results\n"
      "125 us  100 %                                                                                         "
      "all kernels\n");
  EXPECT_TRUE(says(profile.to_string(1), "1 more")) << profile.to_string(1);
}

} // namespace
