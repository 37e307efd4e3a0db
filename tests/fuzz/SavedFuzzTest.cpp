// Whatever a package says, nothing ends the process: it is refused with an error, or what it holds can be used.
//
// Small packages (SavedSamples.h), in which is among them all that can be saved, are changed as somebody would who
// knows the format (SavedMutants.h): the manifest, a program, arrays, the archive; digests are right again. Each is
// loaded, and whatever was loaded is used: called, differentiated, restored, saved. The work is done in child
// processes. Mutant i of seed s is always the same.
//
//   WENGERT_FUZZ_SAVED=1000000 WENGERT_FUZZ_SEED=7 build/tests/SavedFuzzTest      more mutants of each kind;
//   WENGERT_FUZZ_FIRST=i begins at mutant i
#include "frontend/saving/Manifest.h"
#include "frontend/saving/Program.h"
#include "runtime/Buffer.h"
#include "tests/fuzz/Children.h"
#include "tests/fuzz/SavedMutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>

// What a load asks for in all, freed or not, so that the bound is on the work as well.
static std::atomic<size_t> asked = 0;

// The sanitizers have operators of their own, and count nothing here.
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
static void *counted(size_t bytes, size_t alignment) {
  asked.fetch_add(bytes, std::memory_order_relaxed);
  void *memory = nullptr;
  if (::posix_memalign(&memory, std::max(alignment, sizeof(void *)), bytes) != 0)
    throw std::bad_alloc();
  return memory;
}
void *operator new(size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void *operator new[](size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void *operator new(size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<size_t>(alignment)); }
void operator delete(void *memory) noexcept { ::free(memory); }
void operator delete[](void *memory) noexcept { ::free(memory); }
void operator delete(void *memory, size_t) noexcept { ::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { ::free(memory); }
void operator delete(void *memory, size_t, std::align_val_t) noexcept { ::free(memory); }
#endif

namespace wg::tests {
namespace {

namespace fs = std::filesystem;

/// Bytes that a load may ask for: so many times the file's, and a constant.
constexpr size_t kTimes = 64, kConstant = size_t(4) << 20;

struct Shared : Trial {
  volatile uint64_t loaded, refused, called, differentiated, usesRefused, mostAsked;
  char doing[256]; ///< what was begun last
};

std::string bytesOf(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder in memory where the machine has one: nothing waits for a disk.
class Folder {
public:
  Folder() {
    fs::path base = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    std::string pattern = (base / "wengert-saved-XXXXXX").string();
    path = ::mkdtemp(pattern.data()) ? pattern : "";
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

class SavedFuzz : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(folder.path.empty());
    std::string log = (folder.path / "samples").string();
    int status = inChild([&] {
      try {
        saveSamples(folder.path.string());
      } catch (const Error &error) {
        std::ofstream(log) << error.what();
        _exit(1);
      }
    });
    ASSERT_EQ(status, 0) << "the samples could not be saved: " << bytesOf(log);
    for (size_t i = 0; fs::is_directory(folder.path / std::to_string(i)); ++i) {
      Parts parts;
      for (const auto &entry : fs::directory_iterator(folder.path / std::to_string(i))) {
        std::string name = entry.path().filename().string();
        parts[name] = bytesOf(entry.path());
        if (name.ends_with(".mlir"))
          programs.push_back(parts[name]);
      }
      samples.push_back(parts);
    }
    ASSERT_GT(samples.size(), 6u);
    shared = sharedWithChildren<Shared>();
    ASSERT_NE(shared, nullptr);
  }

  /// Writes the mutant as it is to be loaded: mostly a file, now and then a directory. Its path.
  std::string put(const Mutant &mutant, bool directory) {
    static MemoryFile file;
    if (!directory) {
      if (!file.put(mutant.archive))
        shared->fail("the file could not be written");
      return file.path();
    }
    fs::path path = folder.path / ("mutant-" + std::to_string(getpid()));
    fs::remove_all(path);
    fs::create_directory(path);
    for (const auto &[name, bytes] : mutant.parts)
      if (name.find('/') == std::string::npos)
        std::ofstream(path / name, std::ios::binary) << bytes;
    return path.string();
  }

  /// Whether a program that was changed may go on for ever: its author may write that.
  static bool mayBeEndless(const Mutant &mutant) {
    return std::any_of(mutant.parts.begin(), mutant.parts.end(), [](const auto &part) {
      return part.first.ends_with(".mlir") && part.second.find("wg.loop") != std::string::npos;
    });
  }

  /// Loads it, and `uses` it.
  void examine(const Mutant &mutant, Dice dice, bool directory, bool uses = true) {
    static bool first = (makeCallables(), true);
    (void)first;
    auto starts = [&](const std::string &what) {
      std::snprintf(shared->doing, sizeof shared->doing, "%s", what.c_str());
    };
    starts("load");
    std::string path = put(mutant, directory);
    try {
      size_t before = asked, live = runtime::Buffer::liveBytes();
      std::optional<Saved> saved;
      std::exception_ptr error;
      try {
        saved.emplace(load(path));
      } catch (...) {
        error = std::current_exception();
      }
      size_t grown = asked - before + (runtime::Buffer::liveBytes() - live);
      shared->mostAsked = std::max<uint64_t>(uint64_t(shared->mostAsked), grown);
      if (grown > kTimes * mutant.archive.size() + kConstant)
        shared->fail("a load asked for " + std::to_string(grown) + " bytes; the file has " +
                     std::to_string(mutant.archive.size()));
      if (error)
        std::rethrow_exception(error);
      shared->loaded = shared->loaded + 1;
      if (!uses)
        return;
      Used used =
          useSaved(*saved, (folder.path / ("again-" + std::to_string(getpid()) + ".wg")).string(), dice, starts);
      shared->called = shared->called + used.called;
      shared->differentiated = shared->differentiated + used.differentiated;
      shared->usesRefused = shared->usesRefused + used.refused;
    } catch (const Error &error) {
      shared->refused = shared->refused + 1;
      if (error.kind() == ErrorKind::internal)
        shared->fail(std::string("an internal error: ") + error.what());
    } catch (const std::bad_alloc &) {
      shared->refused = shared->refused + 1;
    } catch (const std::exception &error) {
      shared->fail(std::string("another exception: ") + error.what());
    }
  }

  void run(Target target, const char *name, uint64_t usual) {
    uint64_t seed = fromEnvironment("WENGERT_FUZZ_SEED", 1), first = fromEnvironment("WENGERT_FUZZ_FIRST", 0),
             count = fromEnvironment("WENGERT_FUZZ_SAVED", usual), end = first + count;
    auto mutantAt = [&](uint64_t i) { return mutantOf(samples, programs, target, seed * 1000003 + i * 2654435761u); };
    auto examineAt = [&](uint64_t i) {
      Mutant mutant = mutantAt(i);
      examine(mutant, Dice(seed + i), target != Target::archive && i % 16 == 0,
              target != Target::program || !mayBeEndless(mutant));
    };
    fs::path results = fs::path(WENGERT_BINARY_DIR) / "results";
    auto report = [&](uint64_t i, const std::string &what) {
      Mutant mutant = mutantAt(i);
      std::string file = (results / (name + ("-" + std::to_string(seed)) + "-" + std::to_string(i) + ".wg")).string();
      std::ofstream(file, std::ios::binary) << mutant.archive;
      ADD_FAILURE() << "mutant " << i << " of seed " << seed << ", of sample " << mutant.sample << ", at '"
                    << shared->doing << "': " << what << "\n  in " << file;
    };
    size_t findings = inChildren(*shared, first, end, {.folder = results, .batch = 1000}, examineAt, report);
    auto as = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf("%llu mutants of %s: %llu loaded, %llu refused; %llu calls, %llu gradients, %llu uses refused; at most "
                "%llu bytes asked for; %zu findings\n",
                as(count), name, as(shared->loaded), as(shared->refused), as(shared->called),
                as(shared->differentiated), as(shared->usesRefused), as(shared->mostAsked), findings);
    if (count >= 300 && findings == 0) {
      EXPECT_GT(shared->loaded, count / 50) << "hardly a mutant is loaded: the mutations are too coarse";
      EXPECT_GT(shared->refused, count / 20) << "hardly a mutant is refused";
    }
  }

  Folder folder;
  std::vector<Parts> samples;
  std::vector<std::string> programs;
  Shared *shared = nullptr;
};

TEST_F(SavedFuzz, SamplesAreLoadedAndUsed) {
  for (size_t i = 0; i < samples.size(); ++i)
    for (bool directory : {false, true}) {
      shared->loaded = 0;
      int status = inChild([&] { examine({i, samples[i], archiveOf(samples[i])}, Dice(i), directory); });
      EXPECT_EQ(status, 0) << "sample " << i << " at '" << shared->doing << "'";
      EXPECT_EQ(shared->loaded, 1u) << "sample " << i;
      EXPECT_STREQ(shared->found, "") << "sample " << i;
    }
}

void expectSays(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// What load says of the sample that has `from` in its manifest, with `to` instead.
class SavedByHand : public SavedFuzz {
protected:
  std::string refusal(const std::string &from, const std::string &to) {
    for (const Parts &sample : samples) {
      Parts parts = sample;
      std::string &text = parts.at("manifest.json");
      size_t at = text.find(from);
      if (at == std::string::npos)
        continue;
      text = withDigest(text.replace(at, from.size(), to));
      return refusalOf(parts);
    }
    return "no sample has " + from;
  }
  std::string refusalOf(const Parts &parts) {
    std::snprintf(shared->doing, sizeof shared->doing, "it ended");
    MemoryFile file;
    EXPECT_TRUE(file.put(archiveOf(parts)));
    (void)inChild([&] {
      makeCallables();
      std::string message = "loaded";
      try {
        for (uint64_t seed = 1; seed < 9; ++seed) {
          Dice dice(seed);
          useSaved(load(file.path()), (folder.path / "again.wg").string(), dice, [](const std::string &) {});
        }
      } catch (const Error &error) {
        message = error.what();
      }
      std::snprintf(shared->doing, sizeof shared->doing, "%s", message.c_str());
    });
    return shared->doing;
  }
};

TEST_F(SavedByHand, ATensorIsNoOtherLeafsVariable) {
  expectSays(refusal(R"("alias":[0,1,2])", R"("alias":[0,0,2])"), ("alias[1] is not the first leaf"));
  expectSays(refusal(R"("place":[0,1,2])", R"("place":[0,0,2])"), ("place[1] is not the first leaf"));
}
TEST_F(SavedByHand, NoFunctionIsTwiceInAnItem) {
  expectSays(refusal(R"("functions":[0,1])", R"("functions":[0,0])"), ("functions has a function twice"));
}
TEST_F(SavedByHand, ARuleMayHaveNoName) { // it is a name that saving again writes
  Parts parts = samples.at(6);
  std::string &text = parts.at("manifest.json");
  size_t at = text.find("\"name\":\"", text.find("\"rule\":"));
  ASSERT_NE(at, std::string::npos);
  text.erase(at + 8, text.find('"', at + 8) - at - 8);
  text = withDigest(text);
  EXPECT_EQ(refusalOf(parts).find("it ended"), std::string::npos);
}
TEST_F(SavedByHand, AProgramOfTapesHasOneBody) { // calls of calls are many times the file's ops
  Parts parts = samples.at(6);
  for (const auto &[name, text] : samples.at(6))
    if (name.starts_with("tapes-")) {
      std::string more = text;
      more.insert(more.rfind('}'),
                  "func.func private @more(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }\n");
      replacePart(parts, name, more);
    }
  expectSays(refusalOf(parts), ("@more has a body"));
}

TEST_F(SavedByHand, ACallThatKeepsOtherValuesIsRunAgainIfThatIsAskedFor) {
  Parts parts = samples.at(6);
  std::string &text = parts.at("manifest.json");
  size_t at = text.find("\"forward\":\"");
  ASSERT_NE(at, std::string::npos);
  text[at + 11] = text[at + 11] == '0' ? '1' : '0';
  text = withDigest(text);
  expectSays(refusalOf(parts), "keeps other values");
  std::snprintf(shared->doing, sizeof shared->doing, "it ended");
  (void)inChild([&] { // no thread is to run in this process, which forks
    auto gradient = [](const Parts &of, const LoadOptions &options) {
      MemoryFile file;
      EXPECT_TRUE(file.put(archiveOf(of)));
      Saved saved = load(file.path(), {}, options);
      Tensor x = saved.get("x"), middle = saved.get("middle");
      return saved.tape("tape").gradient(reduce_sum(middle * middle), x).value().to_vector<double>();
    };
    bool same = gradient(samples.at(6), {}) == gradient(parts, {.rerun_calls = true});
    std::snprintf(shared->doing, sizeof shared->doing, same ? "the same" : "another gradient");
  });
  EXPECT_STREQ(shared->doing, "the same");
}
TEST_F(SavedByHand, AValueOfATapeIsOfTheTypeThatItsOpMakes) {
  Parts parts = samples.at(6);
  std::string &text = parts.at("manifest.json");
  detail::Manifest manifest = detail::readManifest(text, "sample", {});
  uint32_t &value = manifest.tapes->values.back();
  auto other = std::find_if_not(manifest.constants.begin(), manifest.constants.end(),
                                [&](const TensorType &type) { return type == manifest.constants[value]; });
  ASSERT_NE(other, manifest.constants.end());
  value = static_cast<uint32_t>(other - manifest.constants.begin());
  text = detail::textOf(manifest);
  expectSays(refusalOf(parts), "are not of the types that it makes");
}
TEST_F(SavedByHand, ManyNamesOfOneProgramAreBoundedInTheirText) {
  detail::Manifest manifest;
  manifest.functions.resize(3);
  for (detail::ManifestFunction &function : manifest.functions)
    function.program = {"program-a", "a", 1 << 20}, function.entry = "f";
  EXPECT_EQ(detail::repeatedText(manifest), 0u); // one in memory
  manifest.functions[1].entry = "g";
  manifest.functions[2].inputNames = {"x"};
  EXPECT_EQ(detail::repeatedText(manifest), 2u << 20);
  manifest.tapes.emplace();
  manifest.tapes->calls.resize(3); // of function 0
  manifest.tapes->calls[2].asked = {1};
  EXPECT_EQ(detail::repeatedText(manifest), 4u << 20);
  std::string text = detail::textOf({});
  EXPECT_NO_THROW(detail::readManifest(text, "here", {}));
}

TEST_F(SavedByHand, FunctionsThatTapesCallAreBoundedInTheirOps) {
  std::snprintf(shared->doing, sizeof shared->doing, "it ended");
  (void)inChild([&] {
    using Unary = Function<Tensor(const Tensor &)>;
    std::vector<Unary> chain; // each calls the one before twice
    chain.reserve(20);
    chain.push_back(Unary("f0", [](const Tensor &x) { return sin(x); }, {.interpret = true}));
    for (int i = 1; i < 20; ++i)
      chain.push_back(Unary("f" + std::to_string(i),
                            [&inner = chain.back()](const Tensor &x) { return inner(inner(x)); }, {.interpret = true}));
    detail::TapeOps ops;
    bool few = ops.add(*chain[9].trace(TensorSpec{f64, {}}).state(), {0}),
         same = ops.add(*chain[9].trace(TensorSpec{f64, {}}).state(), {0}),
         many = ops.add(*chain[19].trace(TensorSpec{f64, {}}).state(), {0});
    std::snprintf(shared->doing, sizeof shared->doing, "%d %d %d", few, same, many);
  });
  EXPECT_STREQ(shared->doing, "1 1 0");
}

TEST_F(SavedFuzz, NoManifestEndsTheProcess) { run(Target::manifest, "manifests", 1000); }
TEST_F(SavedFuzz, NoProgramEndsTheProcess) { run(Target::program, "programs", 400); }
TEST_F(SavedFuzz, NoArraysEndTheProcess) { run(Target::arrays, "arrays", 400); }
TEST_F(SavedFuzz, NoArchiveEndsTheProcess) { run(Target::archive, "archives", 400); }

} // namespace
} // namespace wg::tests
