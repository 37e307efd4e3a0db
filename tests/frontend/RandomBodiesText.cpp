// Programs with bodies as text, and parts of them.
#include "tests/frontend/RandomBodies.h"

#include <sstream>

namespace wg::tests {

using Step = BodyStep;
using Block = BodyStep::Block;

namespace {

constexpr const char *kKinds[] = {"op",     "constant", "cond",      "switch_case",  "while_loop",       "scan",
                                  "map",    "fold",     "for_range", "for_range to", "associative_scan", "read",
                                  "assign", "draw",     "call",      "gradient",     "tangent",          "lanes"};

class Printer {
public:
  explicit Printer(const BodyProgram &program) : program_(program) {}

  std::string print() {
    out_ << "program " << program_.seed << " of " << program_.dtype << "\n";
    list("  captured ", program_.captured, true, "\n");
    for (size_t i = 0; i < program_.variables.size(); ++i)
      out_ << "  variable $" << i << " " << program_.variables[i] << "\n";
    for (size_t i = 0; i < program_.functions.size(); ++i) {
      out_ << "  function @" << i;
      print(program_.functions[i].block, "  ");
    }
    out_ << "  main";
    print(program_.main, "  ");
    return out_.str();
  }

private:
  void list(const char *before, const std::vector<int> &values, bool types, const char *after) {
    if (values.empty())
      return;
    out_ << before;
    for (size_t i = 0; i < values.size(); ++i) {
      out_ << (i ? ", " : "") << "%" << values[i];
      if (types)
        out_ << " " << program_.types[static_cast<size_t>(values[i])];
    }
    out_ << after;
  }
  void print(const Block &block, const std::string &indent) {
    list(" (", block.parameters, true, ")");
    out_ << " {\n";
    for (const Step &step : block.steps) {
      out_ << indent << "  ";
      list("", step.outs, true, " = ");
      out_ << (step.kind == Step::op ? step.name : kKinds[step.kind]);
      list(" ", step.operands, false, "");
      if (step.name == "scale" || step.name == "shift" || step.name == "less" || step.name == "any_less")
        out_ << " by " << step.factor;
      for (size_t i = 0; i < step.numbers.size(); ++i)
        out_ << (i ? "," : " [") << step.numbers[i] << (i + 1 == step.numbers.size() ? "]" : "");
      out_ << (step.flag ? " flag" : "");
      if (!step.blocks.empty())
        out_ << " structure " << step.structure;
      out_ << "   #" << step.number;
      for (const Block &inner : step.blocks)
        print(inner, indent + "  ");
      if (step.blocks.empty())
        out_ << "\n";
    }
    out_ << indent << "}";
    list(" -> ", block.results, false, "");
    out_ << "\n";
  }

  const BodyProgram &program_;
  std::ostringstream out_;
};

/// The steps of these numbers give constants instead, or do nothing.
void cut(Block &block, const std::set<int> &cuts) {
  std::vector<Step> kept;
  for (Step &step : block.steps) {
    if (!cuts.count(step.number)) {
      for (Block &inner : step.blocks)
        cut(inner, cuts);
      kept.push_back(std::move(step));
      continue;
    }
    for (int out : step.outs) {
      Step constant;
      constant.kind = Step::constant;
      constant.number = step.number;
      constant.numbers = {step.number, 0};
      constant.outs = {out};
      kept.push_back(std::move(constant));
    }
  }
  block.steps = std::move(kept);
}

void readBy(const Block &block, std::set<int> &values) {
  values.insert(block.results.begin(), block.results.end());
  for (const Step &step : block.steps) {
    values.insert(step.operands.begin(), step.operands.end());
    for (const Block &inner : step.blocks)
      readBy(inner, values);
  }
}
/// Without constants that nobody reads.
void dropUnread(Block &block, const std::set<int> &read) {
  std::erase_if(block.steps,
                [&](const Step &step) { return step.kind == Step::constant && !read.count(step.outs[0]); });
  for (Step &step : block.steps)
    for (Block &inner : step.blocks)
      dropUnread(inner, read);
}

} // namespace

std::string toString(const BodyProgram &program) { return Printer(program).print(); }

BodyProgram randomBodies(uint64_t seed, const std::set<int> &cuts) {
  BodyProgram program = drawBodies(seed);
  if (cuts.empty())
    return program;
  std::set<int> read;
  for (BodyProgram::Function &function : program.functions) {
    cut(function.block, cuts);
    readBy(function.block, read);
  }
  cut(program.main, cuts);
  readBy(program.main, read);
  for (BodyProgram::Function &function : program.functions)
    dropUnread(function.block, read);
  dropUnread(program.main, read);
  return program;
}

} // namespace wg::tests
