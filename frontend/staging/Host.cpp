// Calls of C++ code. What has an order takes the order of what came before, a variable that stands for it, and assigns
// what comes after it: so bodies, calls and loops carry it as they carry any variable.
#include "frontend/staging/Host.h"

#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"

#include <wengert/Check.h>
#include <wengert/Control.h>
#include <wengert/Host.h>

#include "codegen/Names.h"
#include "runtime/Host.h"

#include <cstring>
#include <iostream>
#include <map>
#include <mutex>

namespace wg {

namespace detail {

using runtime::Array;
using runtime::Status;

/// Stands for the order of what programs do beside computing. It has no value to speak of, so nothing locks it.
static const Variable &order() {
  static const Variable &variable = *[] { // never destroyed
    OutsideTrace outside;
    auto made = new Variable(int64_t(0), VariableOptions{.name = "order of effects", .trainable = false});
    made->state()->isOrder = true;
    return made;
  }();
  return variable;
}

const std::shared_ptr<VariableState> &orderState() { return order().state(); }

Tensor afterEffects(const Tensor &x, const Where &where) {
  Trace *trace = level().trace;
  if (!trace || !x.defined() || !trace->assigns(*order().state()))
    return x;
  Tensor last = order().value(where), after;
  const Tensor *both[] = {&x, &last};
  applyOp(runtime::OpId::barrier, {}, both, {&after, 1}, where);
  return after;
}

namespace {
/// What each function of the process is, by its number: programs that leave the process name it so.
struct HostDescriptions {
  std::mutex mutex;
  std::map<int64_t, HostDescription> byNumber;
  std::multimap<HostDescription, int64_t> numbers;
};
HostDescriptions &descriptions() {
  static HostDescriptions &all = *new HostDescriptions; // never destroyed
  return all;
}
} // namespace

static int64_t described(HostDescription description, int64_t number) {
  HostDescriptions &all = descriptions();
  std::lock_guard lock(all.mutex);
  all.byNumber.emplace(number, description);
  all.numbers.emplace(std::move(description), number);
  return number;
}

std::optional<HostDescription> describeHost(int64_t number) {
  HostDescriptions &all = descriptions();
  std::lock_guard lock(all.mutex);
  auto found = all.byNumber.find(number);
  return found == all.byNumber.end() ? std::nullopt : std::optional(found->second);
}

static int64_t printer(std::string_view format);
static int64_t checker(std::string_view message);

std::vector<int64_t> hostsOf(const HostDescription &description) {
  if (description.kind == HostDescription::print)
    return {printer(description.text)};
  if (description.kind == HostDescription::check)
    return {checker(description.text)};
  HostDescriptions &all = descriptions();
  std::lock_guard lock(all.mutex);
  std::vector<int64_t> numbers;
  for (auto [at, end] = all.numbers.equal_range(description); at != end; ++at)
    numbers.push_back(at->second);
  return numbers;
}

int64_t addHost(std::string name, HostCall call) {
  HostDescription description{HostDescription::function, name};
  return described(
      std::move(description), runtime::addHost([name = std::move(name), call = std::move(call)](
                                                   std::span<const Array> operands, Array &result) -> Status {
        OutsideTrace eager;
        auto failure = [&](runtime::ErrorKind kind, std::string message, std::string remedy = "") {
          return runtime::Failure{.kind = kind, .op = name, .message = std::move(message), .remedy = std::move(remedy)};
        };
        std::vector<Tensor> arguments;
        for (const Array &operand : operands)
          arguments.push_back(makeTensor(operand));
        Tensor made;
        try {
          made = call(arguments);
        } catch (const std::exception &exception) {
          return failure(runtime::ErrorKind::runtime, exception.what());
        }
        if (!made.defined())
          return failure(runtime::ErrorKind::type, "the host function returned an undefined tensor", "return a tensor");
        if (!(made.body()->type == result.type))
          return failure(runtime::ErrorKind::type,
                         "the host function returned " + toString(made.body()->type) + ", and was to return " +
                             toString(result.type),
                         "return what the call says");
        if (size_t bytes = result.numBytes())
          std::memcpy(result.buffer.data(), arrayOf(made).buffer.data(), bytes);
        return {};
      }));
}

static Tensor callSymbol(const char *symbol, int64_t number, const std::string &message, const TensorSpec &result,
                         std::vector<Tensor> arguments, bool ordered, const char *op, const Where &where) {
  if (!result.shape.isStatic())
    raiseOp(op, "the result is " + toString(TensorType{result.dtype, result.shape}) + ", and its sizes are to be known",
            "trace with the sizes given", {{result.dtype, result.shape}}, where);
  bool isTraced = level().trace != nullptr;
  ordered &= isTraced;
  if (ordered)
    arguments.insert(arguments.begin(), order().value(where));
  std::vector<const Tensor *> operands;
  for (const Tensor &argument : arguments)
    operands.push_back(&argument);
  Tensor made, after;
  runtime::Ints sizes;
  for (int64_t size : result.shape)
    sizes.push_back(size);
  applyOp(runtime::OpId::host, runtime::HostAttrs::make(symbol, number, ordered, message, sizes, result.dtype),
          operands, {&made, 1}, where);
  if (ordered) {
    const Tensor *both[] = {&arguments[0], &made};
    applyOp(runtime::OpId::barrier, {}, both, {&after, 1}, where);
    order().assign(Located(after, where));
  }
  return made;
}

Tensor callHost(int64_t number, const std::string &name, const TensorSpec &result, const std::vector<Tensor> &arguments,
                bool ordered, const Where &where) {
  return callSymbol(runtime::kHostCall, number, "the host function '" + name + "' failed", result, arguments, ordered,
                    "host_function", where);
}

//===- print, check -----------------------------------------------------------------------------------------------===//

namespace {
struct PrintStream {
  std::mutex mutex;
  std::ostream *stream = &std::cout;
};
PrintStream &printStream() {
  static PrintStream &stream = *new PrintStream; // never destroyed
  return stream;
}

/// Functions by a text that they are made of: one for each text.
class ByText {
public:
  template <class Make> int64_t find(std::string_view text, Make make) {
    std::lock_guard lock(mutex_);
    auto found = known_.find(text);
    if (found == known_.end())
      found = known_.emplace(text, make(std::string(text))).first;
    return found->second;
  }

private:
  std::mutex mutex_;
  std::map<std::string, int64_t, std::less<>> known_;
};
} // namespace

/// How many `{}` there are.
static size_t placesIn(std::string_view format) {
  size_t count = 0;
  for (size_t at = 0; (at = format.find("{}", at)) != format.npos; at += 2)
    ++count;
  return count;
}

static void printLine(const std::string &format, std::span<const Array> operands) {
  std::string line;
  size_t at = 0;
  for (const Array &operand : operands) {
    size_t place = format.find("{}", at);
    line += format.substr(at, place - at) + runtime::toString(operand);
    at = place + 2;
  }
  line += format.substr(at) + "\n";
  PrintStream &out = printStream();
  std::lock_guard lock(out.mutex);
  *out.stream << line << std::flush;
}

/// A failure unless all elements are true.
static Status checkHolds(const std::string &message, const Array &holds) {
  for (int64_t i = 0; i < holds.numElements(); ++i)
    if (!holds.data<uint8_t>()[i]) {
      Ints place = runtime::placeOf(holds.shape(), i);
      return runtime::Failure{.kind = runtime::ErrorKind::runtime,
                              .op = "check",
                              .message =
                                  message + (place.empty() ? "" : ": it does not hold at " + runtime::toString(place))};
    }
  return {};
}

static int64_t printer(std::string_view format) {
  static ByText &printers = *new ByText;
  return printers.find(format, [](std::string format) {
    return described({HostDescription::print, format},
                     runtime::addHost([format](std::span<const Array> operands, Array &result) -> Status {
                       if (operands.size() != placesIn(format)) // of a program that somebody else wrote
                         return runtime::Failure{.op = "print",
                                                 .message = "the format '" + format + "' has not the " +
                                                            std::to_string(operands.size()) + " places of its tensors"};
                       printLine(format, operands);
                       *result.data<int64_t>() = 0;
                       return {};
                     }));
  });
}

static int64_t checker(std::string_view message) {
  static ByText &checks = *new ByText;
  return checks.find(message, [](std::string message) {
    return described({HostDescription::check, message},
                     runtime::addHost([message](std::span<const Array> operands, Array &result) -> Status {
                       *result.data<int64_t>() = 0;
                       if (operands.size() != 1 || operands[0].dtype() != DType::boolean)
                         return runtime::Failure{.op = "check", .message = "its one operand is to be bool"};
                       return checkHolds(message, operands[0]);
                     }));
  });
}

/// The value of an eager tensor.
static Array valueOf(const char *op, const Tensor &x, const Where &where) {
  if (x.body(where) && x.symbolic())
    raiseOutOfScope(op, x, where);
  return arrayOf(x);
}

void printTensors(std::string_view format, const std::vector<Tensor> &tensors, const Where &where) {
  if (size_t places = placesIn(format); places != tensors.size())
    raiseOp("print",
            "the format has " + std::to_string(places) + " places, and there are " + std::to_string(tensors.size()) +
                " tensors",
            "write {} for each tensor", {}, where);
  if (!level().trace) {
    std::vector<Array> values;
    for (const Tensor &tensor : tensors)
      values.push_back(valueOf("print", tensor, where));
    return printLine(std::string(format), values);
  }
  callSymbol(runtime::kHostCall, printer(format), "cannot print", {DType::i64, Shape()}, tensors, true, "print", where);
}

} // namespace detail

void set_print_stream(std::ostream &stream) {
  detail::PrintStream &out = detail::printStream();
  std::lock_guard lock(out.mutex);
  out.stream = &stream;
}

void set_debug_nans(bool debug) { runtime::setDebugNans(debug); }

void check(const Located &condition, const std::string &message) {
  const Where &where = condition.where();
  Tensor holds = detail::tensorOf(condition);
  if (const TensorType &type = holds.body(where)->type; type.dtype != DType::boolean)
    detail::raiseOp("check", "the condition is " + toString(type) + ", not bool", "compare: check(x > 0, ...)", {type},
                    where, ErrorKind::type);
  if (!detail::level().trace) {
    if (runtime::Status status = detail::checkHolds(message, detail::valueOf("check", holds, where)); !status.ok())
      detail::raise(status.take(), where);
    return;
  }
  detail::callSymbol(runtime::kHostCall, detail::checker(message), message, {DType::i64, Shape()}, {holds}, true,
                     "check", where);
}

//===- C functions ------------------------------------------------------------------------------------------------===//

namespace detail {
namespace {
/// What each C function of the process takes and returns, by its symbol.
struct CFunctions {
  std::mutex mutex;
  std::map<std::string, CFunctionOptions, std::less<>> bySymbol;
};
CFunctions &cFunctions() {
  static CFunctions &all = *new CFunctions; // never destroyed
  return all;
}
} // namespace

static bool fitsArguments(const CFunctionOptions &options, std::span<const TensorType> given) {
  bool fits = given.size() == options.arguments.size();
  for (size_t i = 0; fits && i < given.size(); ++i)
    fits = given[i].dtype == options.arguments[i].dtype && sameSizes(given[i].shape, options.arguments[i].shape);
  return fits;
}

std::string whyNoCFunction(std::string_view symbol, std::span<const TensorType> operands, const TensorType &result) {
  CFunctionOptions options;
  {
    CFunctions &all = cFunctions();
    std::lock_guard lock(all.mutex);
    auto found = all.bySymbol.find(symbol);
    if (found == all.bySymbol.end())
      return "which this process does not have";
    options = found->second;
  }
  std::vector<TensorSpec> given;
  for (const TensorType &type : operands) {
    if (!type.shape.isStatic())
      return "with an operand whose sizes are open";
    given.push_back({type.dtype, type.shape});
  }
  if (!fitsArguments(options, operands))
    return "with other operands than it takes";
  TensorSpec made = options.result(given);
  return TensorType{made.dtype, made.shape} == result ? "" : "with another result than it has";
}
} // namespace detail

CFunction::CFunction(std::string symbol, CFunctionPointer function, CFunctionOptions options, Where where)
    : symbol_(std::move(symbol)), options_(std::move(options)) {
  constexpr const char *kName = "c_function";
  if (!function || !options_.result)
    detail::raiseOp(kName, "'" + symbol_ + "' has no " + (function ? "rule for its result" : "function"), "give both",
                    {}, where);
  if (runtime::Status status = codegen::checkName(symbol_); !status.ok() && !runtime::findForeign(symbol_))
    detail::raiseOp(kName, status.take().message, "give the name that the linker knows", {}, where);
  if (!runtime::addForeign(symbol_.c_str(), function))
    detail::raiseOp(kName, "'" + symbol_ + "' is another function already", "give each its own name", {}, where);
  detail::CFunctions &known = detail::cFunctions();
  std::lock_guard lock(known.mutex);
  known.bySymbol[symbol_] = options_;
}

Tensor CFunction::call(const std::vector<Tensor> &arguments, Where where) const {
  std::string expected;
  std::vector<TensorSpec> given;
  for (const TensorSpec &spec : options_.arguments)
    expected += (expected.empty() ? "" : ", ") + toString(TensorType{spec.dtype, spec.shape});
  std::vector<TensorType> types;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TensorType &type = arguments[i].body(where)->type;
    types.push_back(type);
    given.push_back({type.dtype, type.shape});
  }
  if (!detail::fitsArguments(options_, types)) {
    std::string got;
    for (const TensorType &type : types)
      got += (got.empty() ? "" : ", ") + toString(type);
    detail::raiseOp("c_function", "'" + symbol_ + "' takes " + expected + ", not " + got, "cast or reshape them", types,
                    where, ErrorKind::type);
  }
  return detail::callSymbol(symbol_.c_str(), 0, "'" + symbol_ + "' failed", options_.result(given), arguments, false,
                            "c_function", where);
}

CFunction c_function(std::string symbol, CFunctionPointer function, CFunctionOptions options, Where where) {
  return CFunction(std::move(symbol), function, std::move(options), where);
}

} // namespace wg
