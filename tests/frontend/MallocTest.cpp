// A compiled train step asks the system for no memory: the C library's allocator is counted in front of the real one.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>

#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
#define WENGERT_SANITIZED
#endif

#ifndef WENGERT_SANITIZED
static std::atomic<bool> counting = false;
static std::atomic<long> calls = 0;

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static void count() {
  if (counting.load(std::memory_order_relaxed))
    calls.fetch_add(1, std::memory_order_relaxed);
}
void *malloc(size_t bytes) { return count(), __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return count(), __libc_calloc(n, bytes); }
void *realloc(void *old, size_t bytes) { return count(), __libc_realloc(old, bytes); }
void *memalign(size_t alignment, size_t bytes) { return count(), __libc_memalign(alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return count(), __libc_memalign(alignment, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes) {
  count();
  *block = __libc_memalign(alignment, bytes);
  return *block ? 0 : 12;
}
}
#endif

namespace wg {
namespace {

TEST(Malloc, AThousandTrainStepsCallItNever) {
#ifdef WENGERT_SANITIZED
  GTEST_SKIP() << "skipped: the sanitizer owns the allocator";
#else
  nn::Sequential model(nn::Dense(64, 32, [](const Tensor &x) { return relu(x); }), nn::Dense(32, 10));
  optim::Adam adam(0.001);
  std::vector<Variable> variables = model.trainable_variables();
  auto step = function("train_step", [&](const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = mean(softmax_cross_entropy(model(x), y));
    adam.apply(tape.gradient(loss, variables), variables);
    return loss;
  });
  Tensor x = random_uniform(random::key(3), Shape{32, 64}), y = cast(arange(32), i32) % 10;
  counting = true;
  float first = step(x, y).item<float>();
  EXPECT_GT(calls, 0) << "tracing and compiling do call it: it is counted";
  counting = false;
  for (int i = 0; i < 10; ++i)
    step(x, y);
  calls = 0;
  counting = true;
  for (int i = 0; i < 1000; ++i)
    step(x, y);
  counting = false;
  EXPECT_EQ(calls, 0);
  EXPECT_LT(step(x, y).item<float>(), first);
#endif
}

} // namespace
} // namespace wg
