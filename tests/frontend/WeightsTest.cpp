// Weights in files: all or nothing or what is there, in one file or in shards, ours or those of other libraries.
#include "tests/frontend/Files.h"
#include "tests/frontend/Support.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace wg::tests {
namespace {

namespace fs = std::filesystem;
using Floats = std::vector<float>;
using Named = std::vector<nn::Module::Named>;

class WeightsTest : public testing::Test {
protected:
  WeightsTest() {
    std::string name = (fs::temp_directory_path() / "wengert-weights-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    path = directory_ / "model.safetensors";
  }
  ~WeightsTest() override { fs::remove_all(directory_); }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(directory_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  void put(const std::string &name, const std::string &text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }
  fs::path directory_;
  std::string path;
};

Floats valuesOf(const Variable &variable) { return variable.value().to_vector<float>(); }
Variable zerosLike(std::initializer_list<int64_t> shape) { return Variable(zeros(Shape(shape))); }
/// 0, 1, 2 ... in a shape.
Tensor counted(std::initializer_list<int64_t> shape) {
  Shape sizes(shape);
  return reshape(arange(sizes.numElements(), f32), sizes);
}

// ---- Part of the weights -------------------------------------------------------------------------------------------

TEST_F(WeightsTest, WhatIsThereIsAssignedAndTheReportSaysTheRest) {
  put("model.safetensors", [] {
    std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                         R"("c":{"dtype":"F8_E4M3","shape":[2,1],"data_offsets":[8,10]},)"
                         R"("e":{"dtype":"U8","shape":[],"data_offsets":[10,11]}})";
    std::string size(8, '\0');
    size[0] = static_cast<char>(header.size()), size[1] = static_cast<char>(header.size() >> 8);
    return size + header + std::string("\0\0\x80\x3f\0\0\0\x40\1\2\3", 11);
  }());
  Variable a = zerosLike({1}), b = zerosLike({2}), c = zerosLike({2, 1}), d = zerosLike({1});
  Named variables = {{"d", d}, {"a", a}, {"b", b}, {"c", c}};
  EXPECT_THROW(load_weights(path, variables), Error);
  EXPECT_EQ(valuesOf(a), Floats{0});
  RestoreReport report = load_weights(path, variables, {.partial = true});
  EXPECT_FALSE(report.complete());
  EXPECT_EQ(valuesOf(a), Floats{1});
  EXPECT_EQ(valuesOf(b), (Floats{0, 0}));
  EXPECT_EQ(report.matched, std::vector<std::string>{"a"});
  EXPECT_EQ(report.missing, std::vector<std::string>{"d"});
  EXPECT_EQ(report.unused, std::vector<std::string>{"e"});
  ASSERT_EQ(report.mismatched.size(), 2u);
  EXPECT_EQ(report.mismatched[0].file, (TensorType{f32, {1}}));
  EXPECT_EQ(report.mismatched[0].program, (TensorType{f32, {2}}));
  EXPECT_FALSE(report.mismatched[1].file);
  EXPECT_EQ(report.mismatched[1].found, "F8_E4M3[2,1]");
  EXPECT_EQ(wg::to_string(report), "1 of 4 variables restored\n"
                                   "  not in the file: `d`\n"
                                   "  of another type: `b` (f32[1] in the file, f32[2] in the program), "
                                   "`c` (F8_E4M3[2,1] in the file, f32[2,1] in the program)\n"
                                   "  in the file, not asked for: `e`");
  EXPECT_TRUE(load_weights(path, {{"a", d}}).complete());
  EXPECT_EQ(valuesOf(d), Floats{1});
  EXPECT_TRUE(says(messageOf([&] { load_weights(path + "x", variables, {.partial = true}); }), "cannot open"));
}

TEST_F(WeightsTest, TensorsAndMetadataRoundTrip) {
  write_safetensors(path, {{"x", Tensor{1.5f, 2.0f}}, {"n", Tensor(int64_t{7})}}, {.metadata = {{"format", "pt"}}});
  Safetensors read = read_safetensors(path);
  EXPECT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensors.at("x").to_vector<float>(), (Floats{1.5f, 2}));
  EXPECT_EQ(read.tensors.at("n").item<int64_t>(), 7);
  EXPECT_EQ(read.metadata.at("format"), "pt");
  EXPECT_TRUE(read.unread.empty());
  EXPECT_TRUE(says(messageOf([&] { write_safetensors(path, {{"\xff", Tensor(1.0f)}}); }), "not valid UTF-8"));
  EXPECT_THROW(write_safetensors(path, {{"x", Tensor()}}), Error);
  EXPECT_THROW(save_weights(path, Named(), {.max_shard_bytes = -1}), Error);
  EXPECT_EQ(read_safetensors(path).tensors.size(), 2u);
}

// ---- Shards --------------------------------------------------------------------------------------------------------

TEST_F(WeightsTest, ShardsAreWrittenAndReadByAnyOfTheirPaths) {
  Variable a(counted({4})), b(counted({2, 3})), c(counted({1}));
  Named variables = {{"a", a}, {"b", b}, {"c", c}};
  const std::string index = "model.safetensors.index.json";
  save_weights(path, variables, {.max_shard_bytes = 20});
  EXPECT_EQ(files(), (std::vector<std::string>{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                               "model-00003-of-00003.safetensors", index}));
  std::ifstream in(directory_ / index);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}),
            "{\n  \"metadata\": {\n    \"total_size\": 44\n  },\n  \"weight_map\": {\n"
            "    \"a\": \"model-00001-of-00003.safetensors\",\n    \"b\": \"model-00002-of-00003.safetensors\",\n"
            "    \"c\": \"model-00003-of-00003.safetensors\"\n  }\n}\n");
  for (const std::string &name : {path, (directory_ / index).string(), directory_.string()}) {
    Variable x = zerosLike({4}), y = zerosLike({2, 3});
    RestoreReport report = load_weights(name, {{"a", x}, {"b", y}});
    EXPECT_EQ(report.unused, std::vector<std::string>{"c"});
    EXPECT_EQ(valuesOf(x), valuesOf(a));
    EXPECT_EQ(valuesOf(y), valuesOf(b));
    EXPECT_EQ(read_safetensors(name).tensors.size(), 3u);
  }
  // The next save has names of its own, and takes the old shards away; the one after has the first names.
  put("model-1.safetensors", "theirs");
  put("model-00001-of-00002.safetensors.bak", "theirs");
  save_weights(path, variables, {.max_shard_bytes = 40, .metadata = {{"k", "v"}}});
  EXPECT_EQ(files(),
            (std::vector<std::string>{"model-00001-of-00002.safetensors", "model-00001-of-00002.safetensors.bak",
                                      "model-00002-of-00002.safetensors", "model-1.safetensors", index}));
  EXPECT_EQ(read_safetensors(path).metadata.at("k"), "v");
  save_weights(path, variables, {.max_shard_bytes = 40});
  EXPECT_EQ(files()[1], "model-1.safetensors");
  EXPECT_EQ(files()[2], "model-2-00001-of-00002.safetensors");
  EXPECT_EQ(read_safetensors(path).tensors.size(), 3u);
  // What fits into one file is one.
  save_weights(path, variables, {.max_shard_bytes = 1000});
  EXPECT_EQ(files(), (std::vector<std::string>{"model-00001-of-00002.safetensors.bak", "model-1.safetensors",
                                               "model.safetensors"}));
  save_weights(path, variables, {.max_shard_bytes = 1});
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(read_safetensors(path).tensors.size(), 3u);
}

TEST_F(WeightsTest, AnIndexThatLiesIsAnError) {
  write_safetensors(directory_ / "a.safetensors", {{"a", Tensor(1.0f)}});
  write_safetensors(directory_ / "b.safetensors", {{"b", Tensor(2.0f)}});
  const std::string index = directory_ / "m.index.json";
  auto why = [&](const std::string &text) {
    put("m.index.json", text);
    std::string message = messageOf([&] { read_safetensors(index); });
    size_t at = message.find("m.index.json: ");
    return at == std::string::npos ? message : message.substr(at + 14, message.find('\n') - at - 14);
  };
  EXPECT_EQ(why(R"({"metadata":{"x":[1,{"y":null}]},"weight_map":{"a":"a.safetensors","b":"b.safetensors"},"z":[{}]})"),
            "no error");
  EXPECT_EQ(why(R"({"weight_map":{"a":"a.safetensors","a":"b.safetensors"}})"), "the weight_map names 'a' twice");
  EXPECT_EQ(why(R"({"weight_map":{"a":"a.safetensors","b":"a.safetensors"}})"),
            "says that 'b' is in a.safetensors, where it is not");
  EXPECT_EQ(why(R"({"weight_map":{"b":"b.safetensors","c":"b.safetensors"}})"),
            "says that 'c' is in b.safetensors, where it is not");
  EXPECT_EQ(why(R"({"weight_map":{"x":"a.safetensors"}})"), "does not say that 'a' is in a.safetensors, where it is");
  for (const char *name : {"../a.safetensors", "/etc/passwd", "..", ".", "", "x/y"})
    EXPECT_TRUE(says(why(std::string(R"({"weight_map":{"a":")") + name + "\"}}"), "is not the name of a file beside"))
        << name;
  EXPECT_TRUE(says(why(R"({"weight_map":{"a":"c.safetensors"}})"), "c.safetensors: cannot open"));
  EXPECT_EQ(why(R"({"metadata":{}})"), "is not an index of shards: it has no weight_map");
  EXPECT_EQ(why("[]"), "is not a JSON object");
  EXPECT_EQ(why(R"({"weight_map":[]})"), "its weight_map is not an object");
  EXPECT_EQ(why(R"({"weight_map":{"a":1}})"), "tensor 'a' is not in a file: the weight_map has no string for it");
  EXPECT_EQ(why(R"({"weight_map":{},"weight_map":{}})"), "has two of weight_map");
  EXPECT_EQ(why("{"), "is not a JSON object: its text is damaged at byte 2");
  put("n.index.json", "{}");
  EXPECT_TRUE(says(messageOf([&] { read_safetensors(directory_); }), "is a directory with 2 files *.index.json"));
}

// ---- Mappings ------------------------------------------------------------------------------------------------------

TEST_F(WeightsTest, StarsCarryOver) {
  write_safetensors(path, {{"encoder.layer.0.linear.weight", counted({2, 3})},
                           {"encoder.layer.1.linear.weight", counted({2, 3}) + 10},
                           {"encoder.a.b", Tensor{5.0f}},
                           {"x.y|z", Tensor{6.0f}}});
  Variable w0 = zerosLike({3, 2}), w1 = zerosLike({3, 2}), b = zerosLike({1}), bar = zerosLike({1}), kept(Tensor{9.0f});
  WeightMapping mapping{{{"layers.*.weight", "encoder.layer.*.linear.weight", weights::transposed()},
                         {"**.kept", {}},
                         {"body/**", "none.**|encoder.**"}}};
  RestoreReport report = load_weights(
      path, {{"layers.0.weight", w0}, {"layers.1.weight", w1}, {"body/a.b", b}, {"x.y|z", bar}, {"s.t.kept", kept}},
      {.mapping = mapping});
  EXPECT_TRUE(report.complete() && report.unused.empty());
  EXPECT_EQ(valuesOf(w0), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(valuesOf(w1), (Floats{10, 13, 11, 14, 12, 15}));
  EXPECT_EQ(valuesOf(b), Floats{5});
  EXPECT_EQ(valuesOf(bar), Floats{6});
  EXPECT_EQ(valuesOf(kept), Floats{9});
  // A star stands for no dot.
  EXPECT_TRUE(says(messageOf([&] { load_weights(path, {{"layers.0.0.weight", w0}}, {.mapping = mapping}); }),
                   "holds no tensor `layers.0.0.weight`"));
  EXPECT_TRUE(says(messageOf([&] { load_weights(path, {{"a", w0}}, {.mapping = {{{"a", "b.*"}}}}); }),
                   "`b.*` of the mapping has more stars than `a`"));
  EXPECT_TRUE(says(messageOf([&] { load_weights(path, {{"a", w0}}, {.mapping = {{{"a", {"x.y", "q"}}}}}); }),
                   "holds no tensor `x.y` for `a`"));
}

TEST_F(WeightsTest, ConversionsMakeOurLayouts) {
  auto made = [&](const Tensor &theirs, const WeightConversion &how, std::initializer_list<int64_t> shape) {
    write_safetensors(path, {{"x", theirs}});
    Variable variable = zerosLike(shape);
    load_weights(path, {{"x", variable}}, {.mapping = {{{"x", "x", how}}}});
    return variable.value();
  };
  auto same = [](const Tensor &a, const Tensor &b) { expectNear(a, b, 0); };
  same(made(counted({2, 3, 4, 5}), weights::convolution(), {4, 5, 3, 2}),
       transpose(counted({2, 3, 4, 5}), {2, 3, 1, 0}));
  same(made(counted({2, 3, 4}), weights::convolution(), {4, 3, 2}), transpose(counted({2, 3, 4}), {2, 1, 0}));
  same(made(counted({2, 3, 4, 5, 6}), weights::convolution(), {4, 5, 6, 3, 2}),
       transpose(counted({2, 3, 4, 5, 6}), {2, 3, 4, 1, 0}));
  same(made(counted({2, 3, 4, 5}), weights::transposed_convolution(), {4, 5, 2, 3}),
       transpose(counted({2, 3, 4, 5}), {2, 3, 0, 1}));
  same(made(counted({6, 4}), weights::part(1, 3), {2, 4}), counted({6, 4})[slice(2, 4)]);
  same(made(counted({6}), weights::reordered({2, 0, 1}), {6}), Tensor{4.0f, 5.0f, 0.0f, 1.0f, 2.0f, 3.0f});
  same(made(counted({2, 3}), weights::reshaped(), {3, 2}), counted({3, 2}));
  same(made(counted({6, 2}), weights::part(0, 2).then(weights::transposed()), {2, 3}),
       transpose(counted({6, 2})[slice(0, 3)]));
  same(made(counted({2}), [](const Tensor &x) { return x * 2; }, {2}), counted({2}) * 2);
  // What a Dense reads is [C, H, W] there and [H, W, C] here.
  Tensor image = counted({3, 4, 5}), weight = counted({2, 60});
  same(matmul(reshape(transpose(image, {1, 2, 0}), {1, 60}), made(weight, weights::flattened({3, 4, 5}), {60, 2})),
       matmul(reshape(image, {1, 60}), transpose(weight)));

  std::string message = messageOf([&] { made(counted({3}), weights::convolution(), {3}); });
  EXPECT_TRUE(says(message, "`x` is nothing by the mapping of ") && says(message, "f32[3] is not a window") &&
              says(message, "of `x` f32[3], and f32[3] in the program"))
      << message;
  EXPECT_TRUE(says(messageOf([&] { made(counted({3, 2}), weights::transposed(), {3, 2}); }),
                   "`x` is f32[2,3] by the mapping of "));
  for (const WeightConversion &bad : {weights::part(3, 3), weights::reordered({0, 0, 1}), weights::flattened({2, 2}),
                                      WeightConversion([](const Tensor &) { return Tensor(); })})
    EXPECT_THROW(made(counted({3, 3}), bad, {3, 3}), Error);
}

TEST_F(WeightsTest, DtypesAreConvertedWhereThatIsAskedFor) {
  std::string header = R"({"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                       R"("h":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}})";
  put("model.safetensors", std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header +
                               std::string("\xc0\x3f\0\xc0\0\x3e\0\xc0", 8));
  Variable b = zerosLike({2}), h(zeros({2}, f64)), d = zerosLike({1}), n(zeros({1}, i32));
  EXPECT_THROW(load_weights(path, {{"b", b}, {"h", h}}), Error);
  load_weights(path, {{"b", b}, {"h", h}}, {.mapping = {.rules = {}, .cast = true}});
  EXPECT_EQ(valuesOf(b), (Floats{1.5f, -2}));
  EXPECT_EQ(valuesOf(h), (Floats{1.5f, -2}));
  write_safetensors(path, {{"d", Tensor{2.5}}, {"n", Tensor{int64_t{3}}}, {"f", Tensor{1.5f}}});
  load_weights(path, {{"d", d}, {"n", n}}, {.mapping = {.rules = {}, .cast = true}});
  EXPECT_EQ(valuesOf(d), Floats{2.5f});
  EXPECT_EQ(n.value().to_vector<int32_t>(), std::vector<int32_t>{3});
  EXPECT_TRUE(says(messageOf([&] { load_weights(path, {{"f", n}}, {.mapping = {.rules = {}, .cast = true}}); }),
                   "`f` is f32[1]"));
}

/// One of each of our layers.
struct Zoo : nn::Module {
  nn::Embedding embedding{7, 4};
  nn::Conv2d conv{3, 2, {3, 2}};
  nn::Dense dense{4, 5}, square{4, 4};
  nn::BatchNorm batch{5};
  nn::LayerNorm layer{5};
  nn::LSTM lstm{3, 2};
  nn::GRU gru{3, 2};
  nn::RNN rnn{3, 2};
  nn::Bidirectional<nn::LSTM> both{3, 2};
  nn::GRUCell cell{3, 2};
  nn::MultiHeadAttention attention{4, 2};
  nn::Dropout dropout{0.5};
  Zoo() {
    add("embedding", embedding), add("conv", conv), add("dense", dense), add("square", square), add("batch", batch);
    add("layer", layer), add("lstm", lstm), add("gru", gru), add("rnn", rnn), add("both", both);
    add("alone", cell), add("attention", attention), add("dropout", dropout);
  }
};

TEST_F(WeightsTest, TorchsNamesAndLayoutsAreKnown) {
  Zoo zoo;
  std::map<std::string, Tensor> file = {{"embedding.weight", counted({7, 4})},
                                        {"conv.weight", counted({2, 3, 3, 2})},
                                        {"conv.bias", counted({2})},
                                        {"dense.weight", counted({5, 4})},
                                        {"dense.bias", counted({5})},
                                        {"square.weight", counted({4, 4})},
                                        {"square.bias", counted({4})},
                                        {"batch.num_batches_tracked", Tensor(int64_t{3})},
                                        {"alone.weight_ih", counted({6, 3})},
                                        {"alone.weight_hh", counted({6, 2})},
                                        {"alone.bias_ih", counted({6})},
                                        {"alone.bias_hh", counted({6}) + 1},
                                        {"attention.in_proj_weight", counted({12, 4})},
                                        {"attention.in_proj_bias", counted({12})},
                                        {"attention.out_proj.weight", counted({4, 4}) + 1},
                                        {"attention.out_proj.bias", counted({4}) + 1}};
  for (const char *name : {"weight", "bias", "running_mean", "running_var"})
    file.emplace(std::string("batch.") + name, counted({5}) + static_cast<float>(name[0]));
  for (const char *name : {"weight", "bias"})
    file.emplace(std::string("layer.") + name, counted({5}) + static_cast<float>(name[0]));
  for (const auto &[name, gates, end] :
       {std::tuple("lstm", 4, ""), {"gru", 3, ""}, {"rnn", 1, ""}, {"both", 4, ""}, {"both", 4, "_reverse"}}) {
    float more = std::string(end).empty() ? 0 : 100;
    file.emplace(std::string(name) + ".weight_ih_l0" + end, counted({2 * gates, 3}) + more);
    file.emplace(std::string(name) + ".weight_hh_l0" + end, counted({2 * gates, 2}) + more);
    file.emplace(std::string(name) + ".bias_ih_l0" + end, counted({2 * gates}) + more);
    file.emplace(std::string(name) + ".bias_hh_l0" + end, counted({2 * gates}) + 1);
  }
  write_safetensors(path, file);
  RestoreReport report = load_weights(path, zoo, {.mapping = torch_mapping(zoo)});
  EXPECT_EQ(report.unused, std::vector<std::string>{"batch.num_batches_tracked"}) << report;
  std::map<std::string, Tensor> ours;
  for (const auto &[name, variable] : zoo.named_variables())
    ours.emplace(name, variable.value());
  auto same = [&](const std::string &name, const Tensor &wanted) {
    SCOPED_TRACE(name);
    expectNear(ours.at(name), wanted, 0);
  };
  same("embedding.weight", file["embedding.weight"]);
  same("conv.weight", transpose(file["conv.weight"], {2, 3, 1, 0}));
  same("dense.weight", transpose(file["dense.weight"]));
  same("square.weight", transpose(file["square.weight"]));
  same("batch.running_variance", file["batch.running_var"]);
  same("layer.bias", file["layer.bias"]);
  same("lstm.cell.weight", transpose(file["lstm.weight_ih_l0"]));
  same("lstm.cell.recurrent_weight", transpose(file["lstm.weight_hh_l0"]));
  same("lstm.cell.bias", file["lstm.bias_ih_l0"] + file["lstm.bias_hh_l0"]);
  same("gru.cell.bias", file["gru.bias_ih_l0"]);
  same("gru.cell.recurrent_bias", file["gru.bias_hh_l0"]);
  same("both.backward.cell.weight", transpose(file["both.weight_ih_l0_reverse"]));
  same("both.forward.cell.weight", transpose(file["both.weight_ih_l0"]));
  same("alone.weight", transpose(file["alone.weight_ih"]));
  same("attention.key.weight", transpose(file["attention.in_proj_weight"][slice(4, 8)]));
  same("attention.value.bias", file["attention.in_proj_bias"][slice(8, 12)]);
  same("attention.out.weight", transpose(file["attention.out_proj.weight"]));

  // Parts of something larger, under other names.
  std::map<std::string, Tensor> inner;
  for (const auto &[name, tensor] : file)
    inner.emplace("model." + name, tensor);
  write_safetensors(path, inner);
  Zoo other;
  EXPECT_TRUE(load_weights(path, other, {.mapping = torch_mapping(other, {.names = {{"**", "model.**"}}})}).complete());
  for (size_t i = 0; i < zoo.variables().size(); ++i)
    expectNear(other.variables()[i], zoo.variables()[i], 0);

  nn::Sequential unclear(nn::Embedding(4, 4), nn::Dense(4, 4));
  std::string message = messageOf([&] { torch_mapping(unclear); });
  EXPECT_TRUE(says(message, "`0.weight` is f32[4,4] without a bias")) << message;
  write_safetensors(path, {{"0.weight", counted({4, 4})}, {"2.weight", counted({4, 4})}, {"2.bias", counted({4})}});
  load_weights(path, unclear, {.mapping = torch_mapping(unclear, {.names = {{"1.*", "2.*"}}, .tables = {"0.weight"}})});
  expectNear(unclear.variables()[0], counted({4, 4}), 0);
  expectNear(unclear.variables()[1], transpose(counted({4, 4})), 0);
}

TEST_F(WeightsTest, KerasNamesAndLayoutsAreKnown) {
  Zoo zoo;
  std::map<std::string, Tensor> file = {{"embedding/embeddings", counted({7, 4})},
                                        {"conv/kernel", counted({3, 2, 3, 2})},
                                        {"conv/bias", counted({2})},
                                        {"dense/kernel", counted({4, 5})},
                                        {"dense/bias", counted({5})},
                                        {"square/kernel", counted({4, 4})},
                                        {"square/bias", counted({4})},
                                        {"alone/kernel", counted({3, 6})},
                                        {"alone/recurrent_kernel", counted({2, 6})},
                                        {"alone/bias", counted({2, 6})},
                                        {"attention/query/kernel", counted({4, 2, 2})},
                                        {"attention/key/kernel", counted({4, 2, 2}) + 1},
                                        {"attention/value/kernel", counted({4, 2, 2}) + 2},
                                        {"attention/attention_output/kernel", counted({2, 2, 4})},
                                        {"attention/query/bias", counted({2, 2})},
                                        {"attention/key/bias", counted({2, 2})},
                                        {"attention/value/bias", counted({2, 2})},
                                        {"attention/attention_output/bias", counted({4})}};
  for (const char *name : {"gamma", "beta", "moving_mean", "moving_variance"})
    file.emplace(std::string("batch/") + name, counted({5}) + static_cast<float>(name[0]));
  for (const char *name : {"gamma", "beta"})
    file.emplace(std::string("layer/") + name, counted({5}) + static_cast<float>(name[0]));
  for (const auto &[name, gates] : {std::pair("lstm/lstm_cell", 4),
                                    {"gru/gru_cell", 3},
                                    {"rnn/simple_rnn_cell", 1},
                                    {"both/forward_lstm/lstm_cell", 4},
                                    {"both/backward_lstm/lstm_cell", 4}}) {
    file.emplace(std::string(name) + "/kernel", counted({3, 2 * gates}));
    file.emplace(std::string(name) + "/recurrent_kernel", counted({2, 2 * gates}));
    file.emplace(std::string(name) + "/bias", gates == 3 ? counted({2, 6}) : counted({2 * gates}));
  }
  write_safetensors(path, file);
  RestoreReport report = load_weights(path, zoo, {.mapping = keras_mapping(zoo)});
  EXPECT_TRUE(report.unused.empty()) << report;
  std::map<std::string, Tensor> ours;
  for (const auto &[name, variable] : zoo.named_variables())
    ours.emplace(name, variable.value());
  auto same = [&](const std::string &name, const Tensor &wanted) {
    SCOPED_TRACE(name);
    expectNear(ours.at(name), wanted, 0);
  };
  same("conv.weight", file["conv/kernel"]);
  same("square.weight", file["square/kernel"]);
  same("batch.weight", file["batch/gamma"]);
  same("batch.running_variance", file["batch/moving_variance"]);
  same("lstm.cell.weight", file["lstm/lstm_cell/kernel"]);
  // Update, reset, new there; reset, update, new here.
  same("gru.cell.recurrent_bias", Tensor{8.0f, 9.0f, 6.0f, 7.0f, 10.0f, 11.0f});
  same("gru.cell.bias", Tensor{2.0f, 3.0f, 0.0f, 1.0f, 4.0f, 5.0f});
  Tensor kernel = file["gru/gru_cell/kernel"];
  same("gru.cell.weight",
       concat({kernel[{slice(), slice(2, 4)}], kernel[{slice(), slice(0, 2)}], kernel[{slice(), slice(4, 6)}]}, 1));
  same("attention.out.weight", counted({4, 4}));
  same("attention.value.weight", counted({4, 4}) + 2);
}

/// A network that PyTorch has trained; its outputs for images are known.
TEST_F(WeightsTest, ANetworkOfPyTorchIsRead) {
  const std::string data = std::string(WENGERT_SOURCE_DIR) + "/../shared/data";
  if (!fs::exists(data + "/models/mnist_cnn_small.safetensors") || !fs::exists(data + "/mnist"))
    GTEST_SKIP() << "skipped: no ../shared/data/models/mnist_cnn_small.safetensors";
  struct Net : nn::Module {
    nn::Conv2d conv1{1, 10, {5, 5}}, conv2{10, 20, {5, 5}};
    nn::Dense fc1{320, 50, relu}, fc2{50, 10, relu};
    Net() { add("conv1", conv1), add("conv2", conv2), add("fc1", fc1), add("fc2", fc2); }
    Tensor operator()(const Tensor &pixels) const {
      Tensor x = (reshape(pixels, {-1, 28, 28, 1}) - 0.1307f) / 0.3081f;
      x = relu(max_pool2d(conv2(relu(max_pool2d(conv1(x))))));
      return log_softmax(fc2(fc1(flatten(x, 1))));
    }
  } net;
  WeightMapping mapping = torch_mapping(net);
  mapping.rules.insert(mapping.rules.begin(), {"fc1.weight", "fc1.weight", weights::flattened({20, 4, 4})});
  EXPECT_TRUE(load_weights(data + "/models/mnist_cnn_small.safetensors", net, {.mapping = mapping}).unused.empty());
  Tensor known{-20.5948f, -16.3343f, -17.0717f,     -16.8575f, -20.5948f,
               -20.5948f, -20.5948f, -2.77135e-07f, -20.5948f, -16.073f};
  auto [train, test] = data::load_mnist(data + "/mnist");
  expectNear(net(test.x[slice(0, 1)])[0], known, 1e-4);
}

TEST_F(WeightsTest, NothingIsAssignedWhereAConversionFails) {
  write_safetensors(path, {{"a", Tensor{1.0f}}, {"b", Tensor{2.0f}}});
  Variable a = zerosLike({1}), b = zerosLike({1});
  WeightMapping mapping{{{"b", "b", [](const Tensor &x) { return reshape(x, {2, 2}); }}}};
  EXPECT_THROW(load_weights(path, {{"a", a}, {"b", b}}, {.mapping = mapping}), Error);
  EXPECT_EQ(valuesOf(a), Floats{0});
  RestoreReport report = load_weights(path, {{"a", a}, {"b", b}}, {.partial = true, .mapping = mapping});
  EXPECT_EQ(valuesOf(a), Floats{1});
  ASSERT_EQ(report.mismatched.size(), 1u);
  EXPECT_TRUE(says(report.mismatched[0].found, "of `b` f32[1]")) << report;
  // One tensor for two variables is a value of each.
  load_weights(path, {{"x", a}, {"y", b}}, {.mapping = {{{"*", "b"}}}});
  a.assign_add(1.0f);
  EXPECT_EQ(valuesOf(a), Floats{3});
  EXPECT_EQ(valuesOf(b), Floats{2});
  EXPECT_TRUE(says(messageOf([&] {
                     function("f", [&] {
                       load_weights(path, {{"b", b}});
                       return Tensor(1.0f);
                     })();
                   }),
                   "a traced function cannot read or write files"));
}

/// Bytes that this process has read from files.
static int64_t bytesRead() {
  std::ifstream io("/proc/self/io");
  for (std::string word; io >> word;)
    if (int64_t bytes = 0; word == "rchar:" && io >> bytes)
      return bytes;
  return 0;
}

TEST_F(WeightsTest, RowsAreReadAlone) {
  const int64_t rows = 1 << 16, columns = 64; // 16 MiB
  Tensor table = reshape(cast(arange(rows * columns), f32), {rows, columns});
  write_safetensors(path, {{"table", table}, {"bias", arange(3)}, {"empty", zeros({0, 4})}});
  Variable part(zeros({100, columns}), "part"), same(zeros({100, columns}), "same"),
      turned(zeros({columns, 2}), "turned"), none(zeros({0, 4}), "none");
  const int64_t before = bytesRead();
  load_weights(path, Named{{"part", part}, {"same", same}, {"turned", turned}, {"none", none}},
               {.mapping = {{{"part", "table", weights::rows(500, 600)},
                             {"same", "table", weights::rows(500, 600)},
                             {"turned", "table", weights::rows(rows - 2, rows).then(weights::transposed())},
                             {"none", "empty", weights::rows(0, 0)}}}});
  if (const int64_t read = bytesRead() - before; before > 0) { // the header, and these rows once
    EXPECT_GE(read, 102 * columns * 4);
    EXPECT_LT(read, 102 * columns * 4 + 4096);
  }
  EXPECT_TRUE(sameBits(part.value(), slice(table, {500}, {600})));
  EXPECT_TRUE(sameBits(same.value(), part.value()));
  EXPECT_TRUE(sameBits(turned.value(), transpose(slice(table, {rows - 2}, {rows}))));
  // As a function of tensors, and behind another conversion, it takes the same rows.
  TensorType any{f32, {2, columns}};
  EXPECT_TRUE(sameBits(weights::rows(3, 5)({table}, any), slice(table, {3}, {5})));
  EXPECT_TRUE(
      sameBits(weights::transposed().then(weights::rows(3, 5))({table}, any), slice(transpose(table), {3}, {5})));
  Tensor ten = table * 10.0f;
  EXPECT_TRUE(sameBits(weights::rows(3, 5).then(weights::sum())({table, ten}, any), slice(table * 11.0f, {3}, {5})));
  EXPECT_TRUE(sameBits(weights::rows(3, 9).then(weights::rows(0, 2))({table}, any), slice(table, {3}, {5})));
  auto refused = [&](const WeightRule &rule) {
    return messageOf([&] { load_weights(path, Named{{"part", part}}, {.mapping = {{rule}}}); });
  };
  EXPECT_TRUE(says(refused({"part", "table", weights::rows(rows - 50, rows + 50)}), "has no rows 65486 to 65586"));
  EXPECT_TRUE(says(refused({"part", "table", weights::rows(0, 99)}), "f32[99,64]"));
  EXPECT_TRUE(says(refused({"part", {"table", "table"}, weights::rows(0, 100)}), "the rule names 2"));
  EXPECT_TRUE(says(messageOf([&] {
                     load_weights(path, Named{{"bias", Variable(arange(3))}},
                                  {.mapping = {{{"bias", {"bias", "bias"}}}}});
                   }),
                   "the rule names 2"));
  EXPECT_TRUE(says(messageOf([] { weights::rows(3, 2); }), "rows 3 to 2"));
  EXPECT_TRUE(says(messageOf([] { weights::rows(-1, 2); }), "rows -1 to 2"));
}

} // namespace
} // namespace wg::tests
