// Random programs with bodies: conditions, loops, variables, calls and derivatives within one another, as data. The
// same program runs as plain C++, under tapes, in lanes and in traced functions, since running it calls the public API.
#pragma once

#include <wengert/wengert.h>

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace wg::tests {

using Tensors = std::vector<Tensor>;

/// Values are numbered through the whole program; a step names what it reads and what it gives.
struct BodyStep {
  enum Kind {
    op,
    constant,
    cond,
    switchCase,
    whileLoop,
    scan,
    map,
    fold,
    range,
    rangeTo, ///< to an end that a tensor says
    associative,
    read,
    assign,
    draw, ///< from a generator
    call,
    gradient, ///< of a body's float results by its one argument
    tangent,  ///< of a body's first result, where its argument moves by itself
    lanes     ///< vmap
  };
  struct Block {
    std::vector<int> parameters;
    std::vector<BodyStep> steps;
    std::vector<int> results;
  };
  Kind kind = op;
  int number = 0; ///< of the step in the whole program
  std::string name;
  std::vector<int> operands, outs;
  std::vector<int64_t> numbers; ///< axes, sizes, limits: what they mean is the kind's affair
  double factor = 0;
  bool flag = false; ///< reverse, keepdims, unroll
  int structure = 0;
  std::vector<Block> blocks;
};

struct BodyProgram {
  struct Function {
    BodyStep::Block block;
    bool assigns;
  };
  uint64_t seed = 0;
  DType dtype = f64;
  std::vector<TensorType> types; ///< by value
  std::vector<int> inputs, captured;
  std::vector<TensorType> variables;
  std::vector<Function> functions;
  BodyStep::Block main; ///< of the inputs
  int numSteps = 0;
  bool assigns = false;  ///< some variable, or draws random numbers
  bool draws = false;    ///< random numbers
  bool mayFail = false;  ///< an index may be out of range
  bool hasKinks = false; ///< maximum, abs and their like
};

/// The same program for the same seed on every machine.
BodyProgram drawBodies(uint64_t seed);
/// Of it, what is left if the steps of these numbers give constants.
BodyProgram randomBodies(uint64_t seed, const std::set<int> &cuts = {});
std::string toString(const BodyProgram &program);
/// Numbers without a pattern, or small integers, or a bool.
Tensor numbersOf(const TensorType &type, uint64_t phase);

/// What a plain run of the program notes on its way, or puts in the place of what an earlier one noted.
struct Notes {
  double margin = std::numeric_limits<double>::infinity(); ///< how far the closest choice by floats was from another
  double largest = 1;                                      ///< of all floats
  uint64_t path = 1;                                       ///< which branches were taken, how many turns made
  int64_t turns = 0;
  double noise = 0;     ///< each float is off by as much, relative to it: what roundings make of the results
  bool replays = false; ///< what no derivative passes (variables' values, stop_gradient) is what `log` has
  Tensors log;
  size_t next = 0;
  std::map<int, Tensor> moves; ///< how far the variables are from the values in the log
};

/// A program with variables and functions of its own, to be run in any way.
class BodyRun {
public:
  /// Functions that the program calls are traced, interpreted or compiled; with notes they are C++.
  BodyRun(const BodyProgram &program, bool interpret);
  BodyRun(const BodyRun &) = delete;
  /// Variables as they are at the beginning.
  void reset();
  Tensors operator()(const Tensors &inputs) const;
  Tensors state() const; ///< of the variables and the generator

  const BodyProgram &program;
  std::vector<Variable> variables;
  wg::Generator generator;
  Tensors captured;
  Notes *notes = nullptr;

private:
  using Block = BodyStep::Block;
  using Env = std::map<int, Tensor>;
  Tensors run(const Block &block, Env env, const Tensors &arguments) const;
  void step(const BodyStep &step, Env &env) const;
  Tensors control(const BodyStep &step, const Env &env, const Tensors &operands) const;
  Tensors loop(const BodyStep &step, const Env &env, const Tensors &operands) const;
  Tensors scanned(const BodyStep &step, const Env &env, const Tensors &operands) const;
  Tensors derived(const BodyStep &step, const Env &env, const Tensors &operands) const;
  bool notesHere() const { return notes && !wg::tracing(); }
  void choose(uint64_t which) const;
  void keepAway(const Tensor &distances) const;
  void noteValue(const Tensor &value) const;
  Tensor logged(const Tensor &value, int variable = -1) const;
  void watchKinks(const BodyStep &step, const Tensors &operands) const;

  std::vector<std::optional<Function<Tensors(const Tensors &)>>> functions_;
};

/// The op of that name. Those that fail name it.
Tensor applyNamed(const BodyStep &step, const Tensors &operands);

} // namespace wg::tests
