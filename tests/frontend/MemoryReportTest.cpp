// T-44: what a tape keeps and who reads it, of a network whose values are counted by hand; and the paths on it.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <algorithm>

using namespace wg;

namespace {

/// Three layers, 3 -> 4 -> 5 -> 1, each op on a line of its own.
struct Network {
  Variable w1{full({3, 4}, 0.1f), "w1"}, b1{zeros({4}), "b1"}, w2{full({4, 5}, 0.1f), "w2"},
      w3{full({5, 1}, 0.1f), "w3"};

  Tensor operator()(const Tensor &x) const {
    Tensor z1 = matmul(x, w1);
    Tensor s1 = z1 + b1;
    Tensor h1 = relu(s1);
    Tensor z2 = matmul(h1, w2);
    Tensor h2 = tanh(z2);
    Tensor y = matmul(h2, w3);
    return reduce_sum(y * y);
  }
};

/// The value whose description begins like this.
const MemoryReport::Value &valueOf(const MemoryReport &report, const std::string &what) {
  auto found = std::find_if(report.values.begin(), report.values.end(),
                            [&](const MemoryReport::Value &value) { return value.what.starts_with(what); });
  static const MemoryReport::Value none;
  EXPECT_NE(found, report.values.end()) << "no " << what << " in:\n" << report;
  return found == report.values.end() ? none : *found;
}
/// Its readers, without their lines.
std::vector<std::string> readersOf(const MemoryReport &report, const std::string &what) {
  std::vector<std::string> names;
  for (const std::string &reader : valueOf(report, what).readers) {
    EXPECT_NE(reader.find(" (MemoryReportTest.cpp:"), std::string::npos) << reader;
    names.push_back(reader.substr(0, reader.find(" (")));
  }
  return names;
}
using Names = std::vector<std::string>;

// For a batch of 2, in f32. What each derivative reads: of a product the other operand, of relu and tanh the result, of
// y * y its operand.
constexpr int64_t kX = 2 * 3 * 4, kW1 = 3 * 4 * 4, kB1 = 4 * 4, kW2 = 4 * 5 * 4, kW3 = 5 * 1 * 4;
constexpr int64_t kHidden1 = 2 * 4 * 4, kHidden2 = 2 * 5 * 4, kY = 2 * 1 * 4, kLoss = 4;
constexpr int64_t kRead = kX + kHidden1 /* relu */ + kW2 + kHidden2 /* tanh */ + kW3 + kY;

void checkReaders(const MemoryReport &report, const std::string &x) {
  EXPECT_EQ(readersOf(report, x), (Names{"'contract'"}));
  EXPECT_EQ(readersOf(report, "variable 'w2': f32[4,5]"), (Names{"'contract'"}));
  EXPECT_EQ(readersOf(report, "variable 'w3': f32[5,1]"), (Names{"'contract'"}));
  Names ofRelu = readersOf(report, "'relu' (MemoryReportTest.cpp:"), ofTanh = readersOf(report, "'tanh' (");
  std::sort(ofRelu.begin(), ofRelu.end()), std::sort(ofTanh.begin(), ofTanh.end());
  EXPECT_EQ(ofRelu, (Names{"'contract'", "'relu'"}));
  EXPECT_EQ(ofTanh, (Names{"'contract'", "'tanh'"}));
  EXPECT_EQ(report.bytes_read, kRead) << report;
}

} // namespace

TEST(MemoryReportTest, AnEagerTapeKeepsEveryValue) {
  Network network;
  Tensor x = ones({2, 3});
  GradientTape tape({.persistent = true});
  Tensor loss = network(x);
  MemoryReport report = tape.memory_report();
  EXPECT_EQ(report.bytes, kX + kW1 + kHidden1 /* z1 */ + kB1 + kHidden1 /* b1, broadcast */ + kHidden1 /* s1 */ +
                              kHidden1 /* h1 */ + kW2 + kHidden2 /* z2 */ + kHidden2 /* h2 */ + kW3 + kY +
                              kY /* y * y */ + kLoss)
      << report;
  EXPECT_EQ(report.values.size(), 14u) << report;
  checkReaders(report, "a constant: f32[2,3]");
  // A sum reads nothing, and nothing asks for the gradient by x, which w1 would be read for.
  for (const char *unread : {"variable 'w1': f32[3,4]", "variable 'b1': f32[4]", "'add' (", "'reduce_sum' ("})
    EXPECT_EQ(readersOf(report, unread), Names()) << unread;
  std::string text = to_string(report);
  EXPECT_EQ(text.rfind(std::to_string(report.bytes) + " bytes in 14 values, " + std::to_string(kRead) +
                           " of them read by derivatives\n",
                       0),
            0u)
      << text;
  EXPECT_NE(text.find("variable 'w1': f32[3,4], 48 bytes: no derivative reads it"), std::string::npos) << text;
  // Asking changes nothing; and of x's gradient w1 is read.
  tape.gradient(loss, network.w1);
  tape.watch(x);
  network(x);
  EXPECT_EQ(readersOf(tape.memory_report(), "variable 'w1': f32[3,4]"), (Names{"'contract'"}));
}

TEST(MemoryReportTest, ATracedTapeKeepsWhatIsRead) {
  Network network;
  MemoryReport report;
  auto step = wg::function("step", [&](const Tensor &x) {
    GradientTape tape({.persistent = true});
    Tensor loss = network(x);
    report = tape.memory_report();
    return tape.gradient(loss, network.w1).value();
  });
  ConcreteFunction traced = step.trace(ones({2, 3}));
  EXPECT_EQ(report.bytes, kRead) << report;
  EXPECT_EQ(report.values.size(), 6u) << report;
  checkReaders(report, "argument 0: f32[2,3]");
  // Nothing of it is in the program.
  std::string text = traced.text(Stage::traced);
  auto plain = wg::function("step", [&](const Tensor &x) {
    GradientTape tape({.persistent = true});
    return tape.gradient(network(x), network.w1).value();
  });
  EXPECT_EQ(text, plain.trace(ones({2, 3})).text(Stage::traced));
}

TEST(MemoryReportTest, SizesThatAreOpenCountAsOne) {
  Network network;
  MemoryReport report;
  auto step = wg::function("step", [&](const Tensor &x) {
    GradientTape tape;
    Tensor loss = network(x);
    report = tape.memory_report();
    return loss;
  });
  step.trace(TensorSpec{f32, {dynamic, 3}});
  EXPECT_EQ(report.bytes_read, kRead - (kX + kHidden1 + kHidden2 + kY) / 2) << report;
}

TEST(MemoryReportTest, ACalledFunctionKeepsWhatItsDerivativeReads) {
  Variable w(full({3, 4}, 0.1f), "w");
  auto layer = wg::function("layer", [&](const Tensor &x) { return tanh(tanh(matmul(x, w))); });
  Tensor x = ones({2, 3});
  for (bool isTraced : {false, true}) {
    MemoryReport report;
    auto once = [&](const Tensor &x) {
      GradientTape tape;
      Tensor y = layer(x);
      Tensor loss = reduce_sum(square(y));
      report = tape.memory_report();
      return loss;
    };
    if (isTraced)
      wg::function("once", once)(x);
    else
      once(x);
    SCOPED_TRACE(to_string(report));
    EXPECT_EQ(report.bytes_read, kX + kHidden1 /* y, which square reads */ + kHidden1 /* the inner tanh */ +
                                     kHidden1 /* the outer one, for the function's own derivative */);
    EXPECT_EQ(readersOf(report, isTraced ? "argument 0" : "a constant: f32[2,3]"), (Names{"'layer'"}));
    bool isKept = std::any_of(report.values.begin(), report.values.end(), [](const MemoryReport::Value &value) {
      return value.what.find("'layer' (") == 0 &&
             value.what.find(", kept for its derivative: f32[2,4]") != std::string::npos;
    });
    EXPECT_TRUE(isKept);
  }
}

TEST(MemoryReportTest, OpsOfOneLineAndValuesOfOneBufferAreToldApart) {
  Tensor x{1.0, 2.0};
  GradientTape tape;
  tape.watch(x);
  Tensor y = reduce_sum(tanh(exp(x)) * 3.0);
  MemoryReport report = tape.memory_report();
  EXPECT_EQ(readersOf(report, "'exp' ("), (Names{"'exp'"}));
  EXPECT_EQ(readersOf(report, "'tanh' ("), (Names{"'tanh'"}));
  EXPECT_EQ(readersOf(report, "'mul' ("), Names());
  // A view has its operand's memory, which counts once.
  GradientTape views;
  views.watch(x);
  Tensor square = x * x, view = reshape(square, {2, 1}), z = exp(view);
  report = views.memory_report();
  EXPECT_EQ(report.bytes, 3 * 16) << report;
  EXPECT_EQ(report.values.size(), 3u) << report;
}

TEST(MemoryReportTest, AnAssignedVariableAndWhatAHookReadsAreNamed) {
  Variable v(Tensor{1.0, 2.0}, "v");
  Tensor scale{3.0, 4.0};
  for (bool isTraced : {false, true}) {
    MemoryReport report;
    auto once = [&](const Tensor &scale) {
      GradientTape tape;
      Tensor a = v * v;
      v.assign_add(1.0);
      Tensor b = with_gradient_hook(v * v, [=](const Tensor &ct) { return ct * scale; });
      report = tape.memory_report();
      return reduce_sum(a + b);
    };
    if (isTraced)
      wg::function("once", once)(scale);
    else
      once(scale);
    SCOPED_TRACE(to_string(report));
    EXPECT_EQ(readersOf(report, "variable 'v': f64[2]"), (Names{"'mul'"}));
    EXPECT_EQ(readersOf(report, "variable 'v', assigned '"), (Names{"'mul'"}));
    // In a trace a hook is a function, and what it reads is a value of the program.
    if (isTraced)
      EXPECT_EQ(readersOf(report, "argument 0: f64[2]"), (Names{"'with_gradient_hook'"}));
    EXPECT_EQ(report.bytes_read, (isTraced ? 3 : 2) * 16);
  }
}

// The same tape at another line is another tape, though its derivative is known.
TEST(MemoryReportTest, ReadersAreAtTheLinesOfTheirOwnTape) {
  Tensor x(2.0);
  auto report = [&](uint32_t &line) {
    GradientTape tape;
    tape.watch(x);
    line = __LINE__ + 1;
    Tensor y = exp(x);
    return tape.memory_report();
  };
  auto other = [&](uint32_t &line) {
    GradientTape tape;
    tape.watch(x);
    line = __LINE__ + 1;
    Tensor y = exp(x);
    return tape.memory_report();
  };
  for (int i = 0; i < 2; ++i) {
    uint32_t line = 0;
    MemoryReport found = i ? other(line) : report(line);
    const MemoryReport::Value &value = valueOf(found, "'exp' (MemoryReportTest.cpp:" + std::to_string(line));
    ASSERT_EQ(value.readers.size(), 1u);
    EXPECT_EQ(value.readers[0].find("'exp' (MemoryReportTest.cpp:" + std::to_string(line)), 0u) << value.readers[0];
  }
}

TEST(MemoryReportTest, AnEmptyAndAUsedUpTapeKeepNothing) {
  Network network;
  GradientTape tape;
  EXPECT_EQ(to_string(tape.memory_report()), "0 bytes in 0 values, 0 of them read by derivatives");
  Tensor loss = network(ones({2, 3}));
  tape.gradient(loss, network.w1);
  EXPECT_EQ(tape.memory_report().values.size(), 0u);
}

TEST(MemoryReportTest, ExplainShowsThePathThroughTheNetworkAndItsCut) {
  Network network;
  Tensor x = ones({2, 3});
  auto inOrder = [](const std::string &text, const Names &parts) {
    size_t at = 0;
    for (const std::string &part : parts) {
      size_t next = text.find(part, at);
      EXPECT_NE(next, std::string::npos) << text << "\nlacks " << part;
      at = next == std::string::npos ? at : next + part.size();
    }
  };
  auto check = [&](const Tensor &x) {
    GradientTape tape({.persistent = true});
    Tensor loss = network(x);
    inOrder(tape.explain(loss, network.w1),
            {"variable 'w1': connected: 'contract' (", " -> 'add' (", " -> 'relu' (", " -> 'contract' (",
             " -> 'tanh' (", " -> 'contract' (", " -> 'mul' (", " -> 'reduce_sum' ("});
    inOrder(tape.explain(loss, network.b1), {"variable 'b1': connected: ", "'add' (", " -> 'relu' ("});
    Tensor cut = reduce_sum(matmul(round(tanh(matmul(x, network.w1))), network.w2));
    inOrder(tape.explain(cut, network.w1), {"variable 'w1': None, blocked: 'round' (MemoryReportTest.cpp:"});
    inOrder(tape.explain(cut, network.w2), {"variable 'w2': connected: 'contract' (", " -> 'reduce_sum' ("});
    inOrder(tape.explain(cut, network.w3), {"variable 'w3': None, "});
    return loss;
  };
  check(x);
  wg::function("traced", check)(x);
}

// What a turn keeps is one value for all turns, named by the op of the body; so are those that read it.
TEST(MemoryReportTest, ALoopKeepsWhatItsTurnsRead) {
  Variable w(0.5, "w");
  Tensor xs = full({5, 3}, 0.1), h = full({3}, 0.2);
  auto loss = [&](const Tensor &h, const Tensor &xs) {
    auto step = [&](const Tensor &h, const Tensor &x) {
      Tensor next = tanh(h * w + x);
      return std::pair(next, std::monostate());
    };
    return reduce_sum(scan(step, h, xs).first);
  };
  auto contains = [](const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; };
  auto find = [&](const MemoryReport &report, const std::string &what, const std::string &type) {
    for (const MemoryReport::Value &value : report.values)
      if (contains(value.what, what) && contains(value.what, type))
        return value;
    ADD_FAILURE() << what << " is not in " << report;
    return MemoryReport::Value();
  };
  MemoryReport report;
  auto inside = wg::function("inside", [&](const Tensor &h, const Tensor &xs) {
    GradientTape tape;
    tape.watch(h);
    Tensor y = loss(h, xs);
    report = tape.memory_report();
    return tape.gradient(y, h).value();
  });
  inside(h, xs);
  MemoryReport::Value states = find(report, "of each turn what it carries", ": f64[5,3]"),
                      kept = find(report, "of each turn 'tanh' (", ": f64[5,3]");
  EXPECT_EQ(states.bytes, 5 * 3 * 8);
  EXPECT_EQ(report.bytes, 2 * 5 * 3 * 8 + 8 /* w */) << report;
  auto readersOf = [](MemoryReport::Value value) {
    for (std::string &name : value.readers)
      name = name.substr(0, name.find(" ("));
    return value.readers;
  };
  EXPECT_EQ(readersOf(states), Names{"'mul'"}) << report;
  EXPECT_EQ(readersOf(kept), Names{"'tanh'"}) << report;
  EXPECT_FALSE(find(report, "variable 'w'", "f64[]").readers.empty()) << report;

  auto function = wg::function("loss", loss);
  GradientTape tape;
  tape.watch(h);
  Tensor y = function(h, xs);
  report = tape.memory_report();
  EXPECT_TRUE(contains(find(report, "of each turn 'tanh' (", ", kept for its derivative: f64[5,3]").what, "'loss' ("));
}

TEST(MemoryReportTest, ABranchKeepsWhatItsDerivativeReads) {
  MemoryReport report;
  auto f = wg::function("f", [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = cond(reduce_sum(x) > 0.0, [&] { return tanh(x) * 2.0; }, [&] { return exp(x); });
    report = tape.memory_report();
    return tape.gradient(y, x).value();
  });
  f(Tensor{1.0, 2.0});
  std::string text = to_string(report);
  EXPECT_NE(text.find("of a branch"), std::string::npos) << text;
  EXPECT_NE(text.find("'tanh' ("), std::string::npos) << text;
  EXPECT_NE(text.find("'exp' ("), std::string::npos) << text;
}
