// Elements that others made or use: memory that a tensor refers to, C++ containers, DLPack, NumPy's files.
#include "runtime/Buffer.h"
#include "tests/frontend/Support.h"

#include <wengert/DLPackAbi.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <sys/mman.h>
#include <unistd.h>

namespace wg {
namespace {

using tests::messageOf;

/// Read-only memory that ends where no memory is; the elements end at the last byte, so they are
/// aligned to no more than their size.
class ReadOnly {
public:
  template <class T> explicit ReadOnly(const std::vector<T> &values) : bytes_(values.size() * sizeof(T)) {
    mapped_ =
        static_cast<char *>(::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(static_cast<void *>(mapped_), MAP_FAILED);
    std::memcpy(mapped_ + kPage - bytes_, values.data(), bytes_);
    EXPECT_EQ(::mprotect(mapped_, kPage, PROT_READ), 0);
    EXPECT_EQ(::mprotect(mapped_ + kPage, kPage, PROT_NONE), 0);
  }
  ReadOnly(const ReadOnly &) = delete;
  ~ReadOnly() { ::munmap(mapped_, 2 * kPage); }
  template <class T> const T *as() const { return reinterpret_cast<const T *>(mapped_ + kPage - bytes_); }

private:
  static constexpr size_t kPage = 4096;
  size_t bytes_;
  char *mapped_;
};

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = 0.25f * static_cast<float>(i) - 1;
  return values;
}

// ---- from_blob ------------------------------------------------------------------------------------------------------

TEST(BlobTest, TheTensorIsThatMemoryAndTheDeleterRunsOnceWithTheLastHandle) {
  float values[6] = {1, 2, 3, 4, 5, 6};
  int deleted = 0;
  Tensor flat;
  {
    Tensor x = Tensor::from_blob(values, {2, 3}, [&](float *p) {
      EXPECT_EQ(p, values);
      ++deleted;
    });
    EXPECT_EQ(x.dtype(), f32);
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    EXPECT_EQ(x.data<float>().data(), values);
    EXPECT_EQ(reduce_sum(x).item<float>(), 21);
    Tensor copy = x;
    flat = reshape(x, {6}); // of the same memory
  }
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(flat.data<float>().data(), values);
  flat = Tensor();
  EXPECT_EQ(deleted, 1);
}

TEST(BlobTest, TakesEveryElementTypeAndDeleter) {
  double d[2] = {1, 2};
  const int64_t l[2] = {3, 4};
  int32_t i[2] = {5, 6};
  uint8_t u[2] = {7, 8};
  bool b[2] = {false, true};
  EXPECT_EQ(Tensor::from_blob(d, {2}).dtype(), f64);
  EXPECT_EQ(Tensor::from_blob(l, {2}).to_vector<int64_t>(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(Tensor::from_blob(i, {2}).dtype(), i32);
  EXPECT_EQ(Tensor::from_blob(u, {2}).dtype(), u8);
  EXPECT_EQ(Tensor::from_blob(b, {2}).dtype(), boolean);
  auto shared = std::make_shared<std::vector<double>>(3, 0.5);
  Tensor kept = Tensor::from_blob(shared->data(), {3}, [shared] {});
  EXPECT_EQ(shared.use_count(), 2);
  kept = Tensor();
  EXPECT_EQ(shared.use_count(), 1);
  int deleted = 0;
  Tensor::from_blob(d, {2}, [only = std::make_unique<int>(1), &deleted] { deleted += *only; });
  EXPECT_EQ(deleted, 1);
  Tensor::from_blob(new float[3](), {3}, [](float *p) { delete[] p; });
  Tensor nothing = Tensor::from_blob(static_cast<float *>(nullptr), {0, 3}, [&] { ++deleted; });
  EXPECT_EQ((nothing + 1.0f).shape(), (Shape{0, 3}));
  nothing = Tensor();
  EXPECT_EQ(deleted, 2);
}

TEST(BlobTest, AnErrorCallsTheDeleterAndNamesTheRule) {
  alignas(8) char bytes[64] = {};
  int deleted = 0;
  auto count = [&] { ++deleted; };
  EXPECT_NE(messageOf([&] {
              Tensor::from_blob(static_cast<float *>(nullptr), {2}, count);
            }).find("the pointer to the elements of f32[2] is null"),
            std::string::npos);
  std::string message = messageOf([&] { Tensor::from_blob(reinterpret_cast<float *>(bytes + 2), {2}, count); });
  EXPECT_NE(message.find("not aligned to the 4 bytes of a f32"), std::string::npos) << message;
  EXPECT_NE(message.find("InteropTest.cpp:"), std::string::npos) << message;
  EXPECT_NE(messageOf([&] {
              Tensor::from_blob(reinterpret_cast<float *>(bytes), {-1}, count);
            }).find("sizes are not negative"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              Tensor::from_blob(reinterpret_cast<float *>(bytes), {dynamic}, count);
            }).find("every size must be known here"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              Tensor::from_blob(reinterpret_cast<float *>(bytes), {int64_t(1) << 60, 8}, count);
            }).find("2^56"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              Tensor::from_blob(reinterpret_cast<float *>(bytes), {1, 1, 1, 1, 1, 1, 1, 1, 1}, count);
            }).find("the highest is 8"),
            std::string::npos);
  EXPECT_EQ(deleted, 6);
}

/// Were it written anywhere, the process would die.
TEST(BlobTest, NothingWritesToSuchMemory) {
  std::vector<float> values = ramp(9);
  ReadOnly memory(values);
  for (bool interpret : {false, true}) {
    auto train = [&](const Tensor &initial) {
      Variable w(initial);
      optim::Momentum sgd(0.1);
      auto step = wg::function("step",
                               [&](const Tensor &x) {
                                 GradientTape tape;
                                 Tensor loss = mean(square(matmul(x, w) - 1.0f));
                                 sgd.apply(tape.gradient(loss, std::vector<Variable>{w}), std::vector<Variable>{w});
                                 return loss;
                               },
                               {.interpret = interpret});
      std::vector<float> losses;
      for (int i = 0; i < 3; ++i)
        losses.push_back(step(initial).item<float>());
      w.assign(initial); // and once more from that memory, when the step has buffers of its own
      losses.push_back(step(initial).item<float>());
      w.assign_sub(w * 0.5f);
      losses.push_back(step(initial).item<float>());
      return losses;
    };
    std::vector<float> expected = train(Tensor::from(values, {3, 3}));
    EXPECT_EQ(train(Tensor::from_blob(memory.as<float>(), {3, 3})), expected);
    EXPECT_GT(expected[0], expected[2]);
  }
  EXPECT_EQ(std::memcmp(memory.as<float>(), values.data(), values.size() * sizeof(float)), 0);
}

TEST(BlobTest, AVariableThatAloneHoldsSuchMemoryIsUpdatedInMemoryOfItsOwn) {
  ReadOnly memory(ramp(5));
  int deleted = 0;
  Variable v(Tensor::from_blob(memory.as<float>(), {5}, [&] { ++deleted; }));
  auto add = wg::function("add", [&] {
    v.assign_add(Tensor(1.0f));
    return Tensor(0.0f);
  });
  add();
  EXPECT_EQ(deleted, 1) << "the value was replaced";
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{0, 0.25, 0.5, 0.75, 1}));
  const float *own = v.value().data<float>().data();
  add();
  EXPECT_EQ(v.value().data<float>().data(), own) << "now in place";
}

/// Aligned to their element only, and with nothing behind them.
TEST(BlobTest, KernelsComputeTheSameBitsOnUnalignedElements) {
  std::vector<float> values = ramp(7 * 11);
  std::vector<double> doubles(values.begin(), values.end());
  std::vector<int32_t> integers(values.size(), 3);
  std::vector<uint8_t> bytes(values.size(), 5);
  ReadOnly floats(values), wide(doubles), ints(integers), small(bytes);
  auto results = [](const Tensor &x, const Tensor &d, const Tensor &i, const Tensor &u) {
    return std::vector<Tensor>{matmul(x, transpose(x)),
                               matmul(transpose(d), d),
                               softmax(x),
                               reduce_sum(d, 0),
                               reduce_max(x, 1),
                               exp(x) + x,
                               x * 0.5f,
                               cast(i, f64),
                               i + i,
                               transpose(u),
                               concat({u, u}, 1),
                               x[{slice(1, {}, 2), slice({}, -1)}],
                               gather(x, cast(i, i64)[0]),
                               x < 0.0f,
                               cast(x, boolean)};
  };
  Shape shape{7, 11};
  std::vector<Tensor> expected = results(Tensor::from(values, shape), Tensor::from(doubles, shape),
                                         Tensor::from(integers, shape), Tensor::from(bytes, shape));
  auto blobs = [&] {
    return std::array{Tensor::from_blob(floats.as<float>(), shape), Tensor::from_blob(wide.as<double>(), shape),
                      Tensor::from_blob(ints.as<int32_t>(), shape), Tensor::from_blob(small.as<uint8_t>(), shape)};
  };
  auto [x, d, i, u] = blobs();
  std::vector<Tensor> eager = results(x, d, i, u), compiled = wg::function("results", results)(x, d, i, u);
  std::vector<Tensor> ours = wg::function("results", results)(x + 0.0f, d + 0.0, i + 0, u + 0);
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(eager[k].to_vector<double>(), expected[k].to_vector<double>()) << k;
    EXPECT_EQ(compiled[k].to_vector<double>(), ours[k].to_vector<double>()) << k;
  }
}

TEST(BlobTest, AFunctionThatCapturedItKeepsIt) {
  float values[20] = {1, 2, 3};
  int deleted = 0;
  {
    Tensor x = Tensor::from_blob(values, {20}, [&] { ++deleted; });
    auto f = wg::function("f", [x](const Tensor &y) { return reduce_sum(x * y); });
    x = Tensor();
    EXPECT_EQ(f(Tensor(2.0f)).item<float>(), 12);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

// ---- Containers -----------------------------------------------------------------------------------------------------

TEST(ContainerTest, TensorsAreMadeOfNumbersInARow) {
  std::array<float, 4> array{1, 2, 3, 4};
  double plain[] = {1, 2};
  std::vector<int> vector{1, 2, 3};
  EXPECT_EQ(Tensor::from(array).shape(), (Shape{4}));
  EXPECT_EQ(Tensor::from(array, {2, 2}).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Tensor::from(plain).dtype(), f64);
  EXPECT_EQ(Tensor::from(std::span<int>(vector)).to_vector<int>(), vector);
  EXPECT_EQ(Tensor::from(std::span<const int>(vector), {3, 1}).shape(), (Shape{3, 1}));
  EXPECT_EQ((Tensor::from(std::array<bool, 2>{true, false}).dtype()), boolean);
  EXPECT_NE(messageOf([&] { Tensor::from(array, {3}); }).find("4 values for shape (3,)"), std::string::npos);
}

TEST(ContainerTest, ToGivesNumbersAndVectorsOfEveryDepth) {
  Tensor x{{1.5f, -2.5f, 0.0f}, {4.0f, 5.0f, 6.0f}};
  EXPECT_EQ(x.to<std::vector<float>>(), (std::vector<float>{1.5, -2.5, 0, 4, 5, 6}));
  EXPECT_EQ(x.to<std::vector<int>>(), (std::vector<int>{1, -2, 0, 4, 5, 6}));
  EXPECT_EQ(x.to<std::vector<std::vector<double>>>(), (std::vector<std::vector<double>>{{1.5, -2.5, 0}, {4, 5, 6}}));
  EXPECT_EQ(x.to<std::vector<bool>>(), (std::vector<bool>{true, true, false, true, true, true})) << "as cast to bool";
  EXPECT_EQ(x.to<std::vector<std::vector<bool>>>()[0], (std::vector<bool>{true, true, false}));
  EXPECT_EQ((x[{0, 0}].to<float>()), 1.5f);
  EXPECT_EQ(Tensor(7).to<std::vector<int64_t>>(), std::vector<int64_t>{7});
  EXPECT_EQ(reshape(arange(8), {2, 2, 2}).to<std::vector<std::vector<std::vector<int16_t>>>>()[1][0][1], 5);
  EXPECT_EQ(zeros({2, 0}).to<std::vector<std::vector<float>>>(), (std::vector<std::vector<float>>(2)));
  EXPECT_EQ(zeros({0, 2}).to<std::vector<std::vector<float>>>().size(), 0u);
  std::string message = messageOf([&] { x.to<std::vector<std::vector<std::vector<float>>>>(); });
  EXPECT_NE(message.find("f32[2,3] has rank 2, asked for 3 nested vectors"), std::string::npos) << message;
  EXPECT_NE(message.find("InteropTest.cpp:"), std::string::npos) << message;
  EXPECT_NE(messageOf([&] { x.to<float>(); }).find("6 elements"), std::string::npos);
}

// ---- DLPack ---------------------------------------------------------------------------------------------------------

/// What another library exports.
struct Producer {
  std::vector<int64_t> shape, strides;
  int deleted = 0;
  template <class Managed> struct Both {
    Managed managed{};
    Producer *producer;
  };
  template <class Managed = DLManagedTensor> Managed *make(void *data, DLDataType dtype, bool withStrides = true) {
    auto *both = new Both<Managed>{.producer = this};
    DLTensor &tensor = both->managed.dl_tensor;
    tensor = {data,  {kDLCPU, 0},  static_cast<int32_t>(shape.size()),
              dtype, shape.data(), withStrides ? strides.data() : nullptr,
              0};
    both->managed.manager_ctx = both;
    both->managed.deleter = [](Managed *self) {
      auto *both = static_cast<Both<Managed> *>(self->manager_ctx);
      ++both->producer->deleted;
      delete both;
    };
    return &both->managed;
  }
};
constexpr DLDataType kF32{kDLFloat, 32, 1}, kBool{kDLBool, 8, 1};

TEST(DLPackTest, AnExportIsTheSameMemoryUntilItsDeleterRuns) {
  size_t before = runtime::Buffer::liveBytes();
  DLManagedTensor *managed;
  {
    Tensor x{{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}};
    managed = to_dlpack(x);
    EXPECT_EQ(managed->dl_tensor.data, x.data<float>().data());
  }
  const DLTensor &tensor = managed->dl_tensor;
  EXPECT_EQ(tensor.device.device_type, kDLCPU);
  EXPECT_EQ(tensor.ndim, 2);
  EXPECT_EQ((std::vector<int64_t>(tensor.shape, tensor.shape + 2)), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((std::vector<int64_t>(tensor.strides, tensor.strides + 2)), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(static_cast<float *>(tensor.data)[5], 6);
  EXPECT_GT(runtime::Buffer::liveBytes(), before);
  managed->deleter(managed);
  EXPECT_EQ(runtime::Buffer::liveBytes(), before);
}

TEST(DLPackTest, EveryDTypeComesBackAsTheSameMemory) {
  for (DType dtype : {f64, f32, i64, i32, u8, boolean}) {
    Tensor x = cast(Tensor{{0, 1, 2}, {3, 4, 5}}, dtype);
    Tensor y = from_dlpack(to_dlpack(x)), z = from_dlpack(to_dlpack_versioned(x));
    for (const Tensor &back : {y, z}) {
      EXPECT_EQ(back.dtype(), dtype);
      EXPECT_EQ(back.shape(), x.shape());
      EXPECT_EQ(back.to_vector<double>(), x.to_vector<double>());
    }
    DLManagedTensor *a = to_dlpack(x), *b = to_dlpack(y);
    EXPECT_EQ(a->dl_tensor.data, b->dl_tensor.data);
    a->deleter(a), b->deleter(b);
  }
  for (Shape shape : {Shape{}, Shape{0, 3}, Shape{1, 2, 1, 3, 1, 1, 2, 1}}) {
    Tensor x = ones(shape), y = from_dlpack(to_dlpack(x));
    EXPECT_EQ(y.shape(), shape);
    EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
  }
}

TEST(DLPackTest, TheVersionedStructSaysThatItIsReadOnly) {
  DLManagedTensorVersioned *managed = to_dlpack_versioned(ones({3}));
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->flags, 1u);
  managed->deleter(managed);
}

TEST(DLPackTest, AnExportedValueStaysWhenItsVariableIsUpdated) {
  Variable v(ones({4}));
  auto add = wg::function("add", [&] {
    v.assign_add(Tensor(1.0f));
    return Tensor(0.0f);
  });
  add();
  DLManagedTensor *managed = to_dlpack(v.value());
  add();
  v.assign_add(Tensor(1.0f));
  EXPECT_EQ(static_cast<float *>(managed->dl_tensor.data)[0], 2);
  EXPECT_EQ(v.value().to_vector<float>()[0], 4);
  managed->deleter(managed);
}

TEST(DLPackTest, AnImportIsTheSameMemoryWhereItIsCompact) {
  std::vector<float> values = ramp(6);
  ReadOnly memory(values);
  for (bool withStrides : {true, false}) {
    Producer producer{{2, 1, 3}, {3, 77, 1}};
    {
      Tensor x = from_dlpack(producer.make(const_cast<float *>(memory.as<float>()), kF32, withStrides));
      EXPECT_EQ(x.data<float>().data(), memory.as<float>());
      Variable v(x);
      x = Tensor();
      EXPECT_EQ(producer.deleted, 0);
      auto add = wg::function("add", [&] {
        v.assign_add(Tensor(1.0f));
        return Tensor(0.0f);
      });
      add();
      EXPECT_EQ(v.value().to_vector<float>()[0], values[0] + 1);
    }
    EXPECT_EQ(producer.deleted, 1);
  }
  Producer offset{{2}, {1}};
  DLManagedTensor *managed = offset.make(const_cast<float *>(memory.as<float>()), kF32);
  managed->dl_tensor.byte_offset = 8;
  EXPECT_EQ(from_dlpack(managed).data<float>().data(), memory.as<float>() + 2);
  managed = offset.make(const_cast<float *>(memory.as<float>()), kF32);
  auto noDeleter = std::exchange(managed->deleter, nullptr);
  from_dlpack(managed);
  noDeleter(managed);
}

TEST(DLPackTest, OtherStridesAndUnalignedElementsAndOtherBoolsAreCopied) {
  std::vector<float> values = ramp(6);
  auto imported = [&](std::vector<int64_t> shape, std::vector<int64_t> strides, size_t first) {
    Producer producer{shape, strides};
    Tensor x = from_dlpack(producer.make(values.data() + first, kF32));
    EXPECT_EQ(producer.deleted, 1) << "at once";
    EXPECT_FALSE(x.data<float>().data() >= values.data() && x.data<float>().data() < values.data() + 6);
    return x.to_vector<float>();
  };
  auto at = [&](std::vector<size_t> places) {
    std::vector<float> list;
    for (size_t place : places)
      list.push_back(values[place]);
    return list;
  };
  EXPECT_EQ(imported({3, 2}, {1, 3}, 0), at({0, 3, 1, 4, 2, 5})) << "transposed";
  EXPECT_EQ(imported({2, 2}, {3, 1}, 1), at({1, 2, 4, 5})) << "columns";
  EXPECT_EQ(imported({2, 3}, {-3, -1}, 5), at({5, 4, 3, 2, 1, 0})) << "reversed";
  EXPECT_EQ(imported({2, 3}, {0, 1}, 0), at({0, 1, 2, 0, 1, 2})) << "broadcast";

  alignas(4) char bytes[16];
  std::memcpy(bytes + 1, values.data(), 8);
  Producer unaligned{{2}, {1}}, bools{{3}, {1}};
  EXPECT_EQ(from_dlpack(unaligned.make(bytes + 1, kF32)).to_vector<float>(), at({0, 1}));
  EXPECT_EQ(unaligned.deleted, 1);
  uint8_t flags[3] = {0, 1, 2};
  Tensor x = from_dlpack(bools.make(flags, kBool));
  EXPECT_EQ(bools.deleted, 1);
  EXPECT_EQ(reduce_sum(cast(x, i32)).item<int>(), 2);
  flags[2] = 1;
  EXPECT_EQ(static_cast<const void *>(from_dlpack(bools.make(flags, kBool)).data<bool>().data()), flags);
}

TEST(DLPackTest, WhatCannotBeTakenIsAnErrorAndIsGivenBack) {
  std::vector<float> values = ramp(6);
  auto refused = [&](const std::function<void(DLTensor &)> &change) {
    Producer producer{{2, 3}, {3, 1}};
    DLManagedTensor *managed = producer.make(values.data(), kF32);
    change(managed->dl_tensor);
    std::string message = messageOf([&] { from_dlpack(managed); });
    EXPECT_EQ(producer.deleted, 1) << message;
    EXPECT_NE(message.find("InteropTest.cpp:"), std::string::npos) << message;
    return message;
  };
  EXPECT_NE(refused([](DLTensor &t) { t.device.device_type = kDLCUDA; }).find("device of type 2, not on the CPU"),
            std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.dtype = {kDLInt, 16, 1}; }).find("code 0, 16 bits and 1 lane:"),
            std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.dtype = {kDLComplex, 64, 1}; }).find("code 5"), std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.dtype.lanes = 4; }).find("4 lanes"), std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.ndim = 9; }).find("9 axes; 0 to 8"), std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.ndim = -1; }).find("-1 axes"), std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.shape[1] = -3; }).find("sizes are not negative"), std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.shape[1] = int64_t(1) << 62; }).find("2^56"), std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.shape = nullptr; }).find("the pointer to the shape is null"),
            std::string::npos);
  EXPECT_NE(refused([](DLTensor &t) { t.data = nullptr; }).find("the pointer to the elements of f32[2,3] is null"),
            std::string::npos);

  EXPECT_NE(messageOf([] { from_dlpack(static_cast<DLManagedTensor *>(nullptr)); }).find("null"), std::string::npos);
  Producer versioned{{2, 3}, {3, 1}};
  auto *later = versioned.make<DLManagedTensorVersioned>(nullptr, kF32);
  later->version = {2, 1};
  EXPECT_NE(messageOf([&] { from_dlpack(later); }).find("version 2.1; 1 is read"), std::string::npos);
  EXPECT_EQ(versioned.deleted, 1);
  std::string message;
  wg::function("f", [&](const Tensor &x) {
    message = messageOf([&] { to_dlpack(x); });
    return x;
  }).trace(TensorSpec{f32, {2}});
  EXPECT_NE(message.find("has no elements yet"), std::string::npos) << message;
  EXPECT_NE(messageOf([] { to_dlpack(Tensor()); }).find("undefined"), std::string::npos);
}

// ---- .npy and .npz --------------------------------------------------------------------------------------------------

class NumpyTest : public testing::Test {
protected:
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const char *name) const { return directory_ / name; }
  /// Runs Python in the directory with NumPy as `np`; false if there is no NumPy.
  bool python(const std::string &program, bool &works) const {
    std::ofstream(path("program.py")) << "import os\nimport numpy as np\nos.chdir('" + directory_.string() + "')\n" +
                                             program;
    for (std::string interpreter : {"python3", "/usr/bin/python3"}) // Debian's package belongs to the latter
      if (std::system((interpreter + " -c 'import numpy' 2> /dev/null").c_str()) == 0) {
        works = std::system((interpreter + " " + path("program.py")).c_str()) == 0;
        return true;
      }
    std::cout << "not run: there is no numpy (Debian: python3-numpy)\n";
    return false;
  }
  std::filesystem::path directory_ = testing::TempDir() + "wengert-numpy-" + std::to_string(::getpid());
};

TEST_F(NumpyTest, WhatIsSavedIsLoaded) {
  std::map<std::string, Tensor> saved = {{"x", Tensor{{1.5f, 2.5f}, {3.5f, -0.0f}}},
                                         {"layer/0/w", Tensor{1, 2, 3}},
                                         {"", Tensor(2.0)},
                                         {"\xc3\xbc", Tensor{true, false}},
                                         {"nothing", zeros({0, 3})}};
  save_npz(path("a.npz"), saved);
  std::map<std::string, Tensor> loaded = load_npz(path("a.npz"));
  ASSERT_EQ(loaded.size(), saved.size());
  for (const auto &[name, tensor] : saved) {
    EXPECT_EQ(loaded.at(name).dtype(), tensor.dtype()) << name;
    EXPECT_EQ(loaded.at(name).shape(), tensor.shape()) << name;
    EXPECT_EQ(loaded.at(name).to_vector<double>(), tensor.to_vector<double>()) << name;
  }
  save_npz(path("none.npz"), {});
  EXPECT_TRUE(load_npz(path("none.npz")).empty());
  Variable v(Tensor{1.0f, 2.0f});
  save_npz(path("v.npz"), {{"v", v}});
  EXPECT_EQ(load_npz(path("v.npz")).at("v").to_vector<float>(), (std::vector<float>{1, 2}));
  save_npy(path("x.npy"), saved.at("x"));
  EXPECT_EQ(load_npy(path("x.npy")).to_vector<float>(), (std::vector<float>{1.5, 2.5, 3.5, 0}));
}

TEST_F(NumpyTest, WhatCannotBeSavedOrLoadedIsAnErrorAndLeavesTheFile) {
  save_npz(path("a.npz"), {{"x", Tensor(1.0f)}});
  EXPECT_NE(messageOf([&] {
              save_npz(path("a.npz"), {{"y", Tensor(2.0f)}, {std::string("a\0b", 3), Tensor(1.0f)}});
            }).find("is not text in UTF-8"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { save_npz(path("a.npz"), {{"\xff", Tensor(1.0f)}}); }).find("is not text in UTF-8"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { save_npz(path("a.npz"), {{"x", Tensor()}}); }).find("undefined"), std::string::npos);
  EXPECT_EQ(load_npz(path("a.npz")).at("x").item<float>(), 1);
  std::string message = messageOf([&] { load_npz(path("b.npz")); });
  EXPECT_NE(message.find("b.npz: cannot open"), std::string::npos) << message;
  EXPECT_NE(message.find("InteropTest.cpp:"), std::string::npos) << message;
  save_npy(path("x.npy"), Tensor(1.0f));
  EXPECT_NE(messageOf([&] { load_npz(path("x.npy")); }).find("no zip directory"), std::string::npos);
  EXPECT_NE(messageOf([&] { load_npy(path("a.npz")); }).find("is not a .npy file"), std::string::npos);
  wg::function("f", [&](const Tensor &x) {
    for (auto call : {std::function<void()>([&] { save_npz(path("a.npz"), {{"x", x}}); }),
                      std::function<void()>([&] { load_npz(path("a.npz")); }),
                      std::function<void()>([&] { save_npy(path("x.npy"), x); }),
                      std::function<void()>([&] { load_npy(path("x.npy")); })})
      EXPECT_NE(messageOf(call).find("a traced function cannot read or write files"), std::string::npos);
    return x;
  }).trace(TensorSpec{f32, {}});
}

TEST_F(NumpyTest, NumPyReadsWhatIsWritten) {
  save_npz(path("a.npz"), {{"x", Tensor{{1.5, 2.5}, {3.5, 4.5}}},
                           {"n", arange(5)},
                           {"b", Tensor{true, false}},
                           {"\xc3\xbc", Tensor(7)},
                           {"e", zeros({0, 3})}});
  save_npy(path("x.npy"), Tensor{1.0f, 2.0f});
  bool works = false;
  if (python(R"(
a = np.load('a.npz')
assert sorted(a.files) == ['b', 'e', 'n', 'x', '\u00fc'], a.files
assert a['x'].dtype == np.float64 and a['x'].tolist() == [[1.5, 2.5], [3.5, 4.5]]
assert a['n'].dtype == np.int64 and a['n'].tolist() == [0, 1, 2, 3, 4]
assert a['b'].dtype == np.bool_ and a['b'].tolist() == [True, False]
assert a['\u00fc'].dtype == np.int32 and a['\u00fc'].tolist() == 7
assert a['e'].shape == (0, 3)
assert np.load('x.npy').tolist() == [1.0, 2.0]
)",
             works))
    EXPECT_TRUE(works);
}

TEST_F(NumpyTest, WhatNumPyWritesIsRead) {
  bool works = false;
  if (!python(R"(
arrays = dict(x=np.arange(24.).reshape(2, 3, 4), t=np.asfortranarray(np.arange(6, dtype='f4').reshape(2, 3)), n=np.array(-3, dtype='>i4'), b=np.zeros((0, 2), bool))
arrays['\u00fc'] = np.zeros(100000, 'u1')
np.savez('plain.npz', **arrays)
np.savez_compressed('packed.npz', **arrays)
)",
              works))
    return;
  ASSERT_TRUE(works);
  for (const char *file : {"plain.npz", "packed.npz"}) {
    SCOPED_TRACE(file);
    std::map<std::string, Tensor> loaded = load_npz(path(file));
    EXPECT_EQ(loaded.size(), 5u);
    EXPECT_EQ(loaded.at("x").shape(), (Shape{2, 3, 4}));
    EXPECT_EQ(loaded.at("x").to_vector<double>(), arange(24, f64).to_vector<double>());
    EXPECT_EQ(loaded.at("t").to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(loaded.at("n").item<int>(), -3);
    EXPECT_EQ(loaded.at("b").dtype(), boolean);
    EXPECT_EQ(loaded.at("\xc3\xbc").size(), 100000);
  }
}

} // namespace
} // namespace wg
