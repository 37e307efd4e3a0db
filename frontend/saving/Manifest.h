// What a saved computation says of itself: which files it has, which variables, functions, tapes and values, by name.
// JSON, whose first line has the digest of all that follows. Plain data; nothing here knows MLIR.
#pragma once

#include <wengert/Structure.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace wg::detail {

/// What this library writes, and the newest that it reads. docs/saving.md says what changed with which version.
inline constexpr int64_t kSavedVersion = 1;
inline constexpr uint64_t kLongestManifest = uint64_t(256) << 20;

/// A file of the package, whose name holds its digest.
struct ManifestPart {
  std::string name, digest; ///< 64 hexadecimal digits of BLAKE3
  uint64_t bytes = 0;
};

struct ManifestVariable {
  std::string name; ///< in the files of arrays, and for who asks
  TensorType type;
  std::string own; ///< VariableOptions::name
  bool trainable = true, generator = false;
};

/// Where an input of a function comes from.
struct ManifestInput {
  enum Kind : uint8_t {
    argument, ///< leaf `index` of the arguments
    formal,   ///< the same, a variable
    variable, ///< variable `index`
    constant, ///< constant `index`: a captured tensor
    order     ///< the order of effects
  } kind = argument;
  uint32_t index = 0;
};

/// One concrete function.
struct ManifestFunction {
  std::string name, entry;
  ManifestPart program;
  bool interpret = false;
  std::vector<ManifestInput> inputs;
  std::vector<uint32_t> assigned; ///< inputs
  uint32_t numResults = 0;
  std::vector<std::string> inputNames; ///< for errors
  bool isUsers = false;                ///< it has a signature: `arguments`, `results`
  std::vector<TreeWord> arguments, results;
  std::vector<uint32_t> aliasOf, placeOf; ///< by leaf (LeafVariables)
  std::vector<int64_t> capturedLeaves;    ///< by leaf: the variable that is captured as well, -1 if none
  std::vector<bool> capturedPlaces;       ///< by leaf
  std::vector<uint32_t> captured;         ///< variables
  std::string reason;
  int64_t numOps = 0;
  struct Dropped {
    std::string op;
    int64_t operand = 0;
    std::string where, reason;
  };
  std::vector<Dropped> certificate;
};

/// A tensor: a constant, or a value on the tapes.
struct ManifestTensor {
  bool onTape = false;
  uint32_t index = 0;
};

/// What the tapes of a computation hold: the ops of all of them, once, as a function of the leaves, which returns every
/// value that an op makes; and these values.
struct ManifestTapes {
  struct Leaf {
    bool isVariable = false; ///< the present value of variable `index`; else constant `index`
    uint32_t index = 0;
  };
  struct Call {
    uint32_t function = 0;       ///< what was called; of a rule, its vjp
    std::vector<uint32_t> asked; ///< the inputs that it is differentiated by
    uint32_t numResults = 0;     ///< before the residuals
    std::string forward;         ///< digest of the program that was run and kept them; of a rule empty
    bool isRule = false;         ///< a rule of C++, traced
    std::string rule;            ///< its name
    int64_t jvp = -1;            ///< a function, or none
    bool transposes = false;
  };
  struct Tape {
    bool persistent = false, watchAccessed = true, allowNonDifferentiable = false, recording = false;
    /// Values: leaf i as i, result i of the program as (number of leaves) + i.
    std::vector<uint32_t> watched;
    struct Watched {
      uint32_t variable = 0;
      std::vector<uint32_t> reads;
    };
    std::vector<Watched> variables;
  };
  ManifestPart program;
  std::string entry;
  std::vector<Leaf> leaves;
  uint32_t numArguments = 0;    ///< of the program: the first leaves; others are watched, and not used yet
  std::vector<uint32_t> values; ///< by result of the program: constants
  std::vector<std::vector<uint32_t>> members; ///< by op of the program: the tapes that recorded it
  std::vector<Call> calls;                    ///< by the number in the name of what is called
  std::vector<Tape> tapes;
};

/// What is one program in memory: functions of the same text that differ in what they are given.
using ManifestCode = std::tuple<std::string, std::string, bool, std::vector<std::string>>;
inline ManifestCode codeOf(const ManifestFunction &function) {
  return {function.program.name, function.entry, function.interpret, function.inputNames};
}

struct ManifestItem {
  enum class Kind : uint8_t { value, variables, function, tape, position } kind = Kind::value;
  std::string name;
  // value
  std::vector<TreeWord> words;
  std::vector<ManifestTensor> tensors;
  std::vector<uint32_t> ofValue; ///< its variables
  // variables: their names in it
  std::vector<std::pair<std::string, uint32_t>> named;
  // function
  std::vector<uint32_t> functions;
  bool interpret = false, recompute = false;
  int64_t capacity = 1024;
  std::vector<std::string> argumentNames;
  // tape: its number. position: epoch, batch
  uint32_t tape = 0;
  std::array<int64_t, 2> position = {};
};

struct Manifest {
  int64_t version = kSavedVersion; ///< of the file that was read; what is written has kSavedVersion
  std::string library;             ///< the version that wrote it
  std::map<std::string, std::string> metadata;
  std::vector<ManifestPart> variableParts, constantParts; ///< safetensors
  std::vector<ManifestVariable> variables;
  std::vector<TensorType> constants; ///< named `0`, `1`, ...
  std::vector<ManifestFunction> functions;
  std::optional<ManifestTapes> tapes;
  std::vector<ManifestItem> items;
  /// What is to be made before it is loaded.
  std::vector<std::string> hostFunctions, cFunctions;
};

/// The bytes of program text that loading reads beyond reading each program once: what several functions have with
/// entries or names of their own, and what is differentiated for the calls on tapes. Files by anybody may ask for much
/// of it, so there is a limit, which saving keeps to as well.
uint64_t repeatedText(const Manifest &manifest);
inline constexpr uint64_t kMostRepeatedText = uint64_t(64) << 20;

std::string textOf(const Manifest &manifest);
/// All that it says of numbers of things fits together; what the files hold is compared by who reads them. Throws
/// Error, kind io, that opens with `path`.
Manifest readManifest(const std::string &text, const std::string &path, const Where &where);

} // namespace wg::detail
