// `wengert train digits|mnist`: a relu network with one hidden layer, trained by a traced, differentiated, fused and
// compiled step; and the report on that step.
#include "runtime/io/File.h"
#include "tools/Commands.h"
#include "tools/Streams.h"

#include <wengert/wengert.h>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <limits>

namespace wg::tools {
namespace {

struct Options {
  std::string what, optimizer = "adam", data, checkpoints, dumpIr, objects, cpu, dtype = "f32";
  int epochs = 0, threads = 1, ranks = 0;
  int64_t batch = 0, hidden = 0, seed = 1, checkpointEvery = 0;
  double lr = 0;
  bool eager = false, report = false;
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Whether this rank speaks for all.
bool speaks() { return dist::rank() == 0; }

/// The network, its optimiser, and the two functions of a training run, over all ranks if there are several.
class Trainer {
public:
  using Step = Function<Tensor(const Tensor &, const Tensor &)>;

  Trainer(const Options &options, int64_t inputs)
      : dtype_(*runtime::parseDType(options.dtype)),
        model_(nn::Dense(inputs, options.hidden, relu, dense(options.seed * 2)),
               nn::Dense(options.hidden, 10, {}, dense(options.seed * 2 + 1))) {
    if (options.optimizer == "sgd")
      optimizer_ = std::make_unique<optim::SGD>(options.lr);
    else if (options.optimizer == "momentum")
      optimizer_ = std::make_unique<optim::Momentum>(options.lr);
    else
      optimizer_ = std::make_unique<optim::Adam>(options.lr);
  }

  Tensor loss(const Tensor &x, const Tensor &y) const { return nn::cross_entropy(model_(x), y); }

  /// The loss of the whole batch, of which x and y are this rank's rows.
  Tensor train(const Tensor &x, const Tensor &y) const { return ranks_ ? ranks_->step(x, y) : step(x, y); }
  /// The share of the test set that is classified right.
  double test(const data::Examples &examples) const {
    if (!ranks_)
      return accuracy(examples.x, examples.y).item<double>();
    auto [begin, end] = dist::rows_of_rank(examples.size());
    return ranks_->accuracy(slice(examples.x, {begin}, {end}), slice(examples.y, {begin}, {end})).item<double>();
  }
  void overRanks() { ranks_.emplace(step, accuracy); }
  std::string communication() const { return ranks_ ? ranks_->step.report() : ""; }

  Step step =
      Step("train_step",
           [this](const Tensor &x, const Tensor &y) {
             GradientTape tape;
             Tensor value = loss(x, y);
             optimizer_->apply(tape.gradient(value, model_.trainable_variables()), model_.trainable_variables());
             return value;
           },
           {.argument_names = {"x", "y"}});
  Step accuracy = Step("accuracy", [this](const Tensor &x, const Tensor &y) { return nn::accuracy(model_(x), y); },
                       {.argument_names = {"x", "y"}});

  const nn::Sequential &model() const { return model_; }
  /// Its slots are there, under the names that the step gives them.
  const optim::Optimizer &optimizer() const {
    optimizer_->build(model_.trainable_variables());
    return *optimizer_;
  }
  /// Parameters and slots: everything that a step changes.
  std::vector<Variable> state() const {
    std::vector<Variable> all = model_.variables();
    all.insert(all.end(), optimizer_->slots().begin(), optimizer_->slots().end());
    return all;
  }

private:
  nn::DenseOptions dense(int64_t seed) const { return {.dtype = dtype_, .weight = nn::glorot_uniform(seed)}; }
  struct OverRanks {
    OverRanks(const Step &step, const Step &accuracy)
        : step(dist::data_parallel(step)), accuracy(dist::data_parallel(accuracy)) {}
    dist::DataParallel<Tensor(const Tensor &, const Tensor &)> step, accuracy;
  };
  DType dtype_;
  nn::Sequential model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<OverRanks> ranks_;
};

/// `12,345`
std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

/// Checkpoints of a training, which `sum`, that of the losses of an epoch, is a part of.
class Checkpoints {
public:
  Checkpoints(const Trainer &trainer, const data::Dataset &batches, const double &sum, const Options &options)
      : text_(fmt::format("{} --optimizer {} --lr {} --hidden {} --batch {} --seed {} --dtype {}", options.what,
                          options.optimizer, options.lr, options.hidden, options.batch, options.seed, options.dtype)),
        manager_(options.checkpoints,
                 [&] {
                   sum_.assign(sum);
                   return SaveItems{{"model", trainer.model()},
                                    {"optimizer", trainer.optimizer()},
                                    {"data", batches},
                                    {"loss_sum", sum_},
                                    {"training", text_}};
                 },
                 {.every_steps = options.checkpointEvery, .every_seconds = options.checkpointEvery ? 0.0 : 10.0}) {}

  /// The sum of the losses of the epoch that it goes on with.
  double resume(const data::Dataset &batches) {
    std::optional<int64_t> step = manager_.restore();
    if (!step)
      return 0;
    auto saved = load(manager_.path(*step)).get<std::string>("training");
    if (saved != text_)
      throw CLI::ValidationError("--checkpoints", fmt::format("the directory holds checkpoints of `train {}`, and this "
                                                              "is `train {}`; give them directories of their own",
                                                              saved, text_));
    data::Position position = batches.position();
    if (speaks())
      fmt::print("goes on at step {}: {} epochs and {} batches are done\n", *step, position.epoch, position.batch);
    return position.batch ? sum_.item<double>() : 0;
  }
  void step() { manager_.step(); }
  void finish() {
    manager_.save();
    manager_.wait();
  }

private:
  std::string text_;
  Variable sum_{0.0, "loss_sum"};
  CheckpointManager manager_;
};

/// The status of a process that SIGTERM has ended.
constexpr int kTerminated = 128 + SIGTERM;

int train(Trainer &trainer, const Options &options, const data::Split &split) {
  data::Dataset batches =
      data::Dataset(split.train).shuffle(static_cast<uint64_t>(options.seed)).batch(options.batch).ranks();
  double sum = 0;
  std::optional<Checkpoints> checkpoints;
  if (!options.checkpoints.empty()) {
    checkpoints.emplace(trainer, batches, sum, options);
    sum = checkpoints->resume(batches);
  }
  double start = seconds();
  for (int64_t first = batches.epoch(), epoch = first; epoch < options.epochs; sum = 0) {
    double begun = seconds();
    int64_t steps = 0;
    for (const auto &[x, y] : batches) {
      int64_t done = batches.position().batch ? batches.position().batch : batches.batches();
      double rows = static_cast<double>(std::min(options.batch, batches.size() - (done - 1) * options.batch));
      sum += trainer.train(x, y).item<double>() * rows;
      ++steps;
      if (!checkpoints)
        continue;
      checkpoints->step();
      if (dist::terminating()) {
        checkpoints->finish();
        if (speaks())
          fmt::print("ended in epoch {}, as it was asked to; the same command goes on\n", epoch + 1);
        return kTerminated;
      }
    }
    ++epoch;
    double rate = static_cast<double>(steps) / (seconds() - begun);
    double hits = trainer.test(split.test);
    double left =
        (seconds() - start) / static_cast<double>(epoch - first) * static_cast<double>(options.epochs - epoch);
    if (speaks())
      fmt::print("epoch {:2}/{}  loss {:.4f}  accuracy {:.2f} %  {:>7} steps/s  {:.1f} s left\n", epoch, options.epochs,
                 sum / static_cast<double>(batches.size()), 100 * hits, grouped(rate), left);
    flushOutput();
  }
  if (checkpoints)
    checkpoints->finish();
  if (speaks())
    fmt::print("trained {} parameters in {:.2f} s\n", trainer.model().num_parameters(), seconds() - start);
  return 0;
}

/// Steps a second on one batch; the state is put back afterwards.
double stepsPerSecond(Trainer &trainer, const data::Examples &batch, bool eager) {
  std::vector<Variable> state = trainer.state();
  std::vector<Tensor> before(state.begin(), state.end());
  set_run_functions_eagerly(eager);
  int steps = 0;
  trainer.step(batch.x, batch.y);
  double start = seconds();
  for (; steps < 10 || seconds() - start < 0.3; ++steps)
    trainer.step(batch.x, batch.y);
  double rate = steps / (seconds() - start);
  set_run_functions_eagerly(false);
  for (size_t i = 0; i < state.size(); ++i)
    state[i].assign(before[i]);
  return rate;
}

void report(Trainer &trainer, const data::Examples &batch) {
  fmt::print("\n---- the train step ----\n{}\n", trainer.step.report());
  fmt::print("\n---- its last trace ----\n{}\n", trainer.step.explain_last_trace());
  ConcreteFunction step = trainer.step.trace(batch.x, batch.y);
  std::vector<DroppedGradient> dropped = step.certificate();
  fmt::print("\n---- gradients that are not computed: {} ----\n", dropped.size());
  for (const DroppedGradient &each : dropped)
    fmt::print("  operand {} of {} at {}: {}\n", each.operand, each.op, each.where, each.reason);
  Profile profile = trainer.step.profile(batch.x, batch.y);
  fmt::print("\n---- kernels: {} ----\n{}", profile.kernels.size(), profile.to_string());
  fmt::print("\n---- compile time by stage ----\n  stage               time      ops\n");
  double total = 0;
  for (const StageTime &stage : step.timings()) {
    fmt::print("  {:<12} {:8.2f} ms {:>8}\n", stage.stage, stage.seconds * 1e3,
               stage.ops ? std::to_string(stage.ops) : "");
    total += stage.seconds;
  }
  fmt::print("  {:<12} {:8.2f} ms\n", "all", total * 1e3);
  double compiled = stepsPerSecond(trainer, batch, false), eager = stepsPerSecond(trainer, batch, true);
  fmt::print("\neager {} steps/s, compiled {} steps/s: {:.1f} times\n", grouped(eager), grouped(compiled),
             compiled / eager);
}

std::span<const std::byte> bytesOf(const Tensor &tensor) {
  switch (tensor.dtype()) {
  case DType::f64: return std::as_bytes(tensor.data<double>());
  case DType::f32: return std::as_bytes(tensor.data<float>());
  case DType::i64: return std::as_bytes(tensor.data<int64_t>());
  default: return std::as_bytes(tensor.data<int32_t>());
  }
}

/// The gradient function and the train step as object files with their headers, and the raw bytes of the inputs of
/// each: the batch, then the variables, in the order of the header's arguments.
void writeObjects(Trainer &trainer, const data::Examples &batch, const Options &options) {
  namespace fs = std::filesystem;
  auto both = function("gradient",
                       [&](const Tensor &x, const Tensor &y) {
                         GradientTape tape;
                         Tensor value = trainer.loss(x, y);
                         std::vector<Tensor> results = {value};
                         for (const Grad &grad : tape.gradient(value, trainer.model().trainable_variables()))
                           results.push_back(grad);
                         return results;
                       },
                       {.argument_names = {"x", "y"}});
  auto write = [&](const ConcreteFunction &concrete, const std::string &name) {
    concrete.write_object(options.objects, {.name = name, .cpu = options.cpu});
    std::vector<Tensor> inputs = {batch.x, batch.y};
    for (const Variable &variable : concrete.variables())
      inputs.push_back(variable.value());
    std::vector<std::span<const std::byte>> pieces;
    for (const Tensor &input : inputs)
      pieces.push_back(bytesOf(input));
    if (runtime::Status status = runtime::writeFile(fs::path(options.objects) / (name + ".bin"), pieces); !status.ok())
      detail::raise(status.take());
    fmt::print("wrote {}/{}.o ({} bytes), .h, .bin\n", options.objects, name,
               grouped(static_cast<double>(fs::file_size(fs::path(options.objects) / (name + ".o")))));
  };
  write(both.trace(batch.x, batch.y), options.what + "_gradient");
  write(trainer.step.trace(batch.x, batch.y), options.what + "_step");
  fmt::print("the same batch by JIT: loss {:.6f}\n", trainer.loss(batch.x, batch.y).item<double>());
}

int trainHere(const Options &options);

int run(Options options) {
  bool digits = options.what == "digits";
  if (!options.batch)
    options.batch = digits ? 32 : 64;
  if (!options.epochs)
    options.epochs = digits ? 30 : 5;
  if (!options.hidden)
    options.hidden = digits ? 32 : 128;
  if (options.lr == 0)
    options.lr = options.optimizer == "adam" ? 0.001 : options.optimizer == "momentum" ? 0.02 : 0.1;
  if (digits && !options.data.empty())
    throw CLI::ValidationError("--data", "train digits reads no data: the program carries them; --data is for mnist");
  if (!digits && options.data.empty())
    throw CLI::ValidationError("--data", "train mnist needs --data DIR, the directory with MNIST's four IDX files");

  set_num_threads(options.threads);
  if (!options.checkpoints.empty())
    dist::catch_termination();
  if (!options.ranks)
    dist::init(); // one of several ranks under mpirun
  if (!dist::started() && !options.ranks)
    return trainHere(options);
  for (auto [given, name] : {std::pair(options.eager, "--eager"), std::pair(!options.dumpIr.empty(), "--dump-ir"),
                             std::pair(!options.objects.empty(), "--write-object")})
    if (given)
      throw CLI::ValidationError(name, "it is for one process without ranks");
  if (!options.ranks)
    return trainHere(options);
  std::atomic<int> status = 0;
  dist::run(options.ranks, [&] {
    if (int own = trainHere(options))
      status = own;
  });
  return status;
}

int trainHere(const Options &options) {
  bool digits = options.what == "digits";
  data::Split split = digits ? data::digits() : data::load_mnist(options.data);
  if (options.dtype == "f64")
    for (data::Examples *part : {&split.train, &split.test})
      part->x = cast(part->x, f64);
  if (options.batch > split.train.size())
    throw CLI::ValidationError("--batch",
                               fmt::format("`{}` is not a whole number from 1 to {}, the number of training examples",
                                           options.batch, split.train.size()));
  Trainer trainer(options, split.train.x.shape()[1]);
  data::Examples batch = *data::Dataset(split.train).batch(options.batch).begin();

  if (!options.dumpIr.empty()) {
    for (Stage stage :
         {Stage::traced, Stage::dropped, Stage::simplified, Stage::fused, Stage::lowered, Stage::llvm, Stage::assembly})
      if (options.dumpIr == to_string(stage))
        std::cout << trainer.step.trace(batch.x, batch.y).text(stage);
    return 0;
  }
  bool overRanks = dist::started();
  if (speaks())
    fmt::print("{}: {} examples for training, {} for testing; {}-{}-10, {}, {} at {}, batches of {}{}\n", options.what,
               grouped(static_cast<double>(split.train.size())), grouped(static_cast<double>(split.test.size())),
               split.train.x.shape()[1], options.hidden, options.dtype, options.optimizer, options.lr, options.batch,
               overRanks ? fmt::format(", {} ranks", dist::size()) : "");
  if (overRanks) {
    trainer.overRanks();
    if (int status = train(trainer, options, split))
      return status;
    if (options.report && speaks())
      fmt::print("\n---- the train step over ranks ----\n{}", trainer.communication());
    if (speaks())
      fmt::print("weights {}\n", dist::digest(trainer.model().variables()));
    return 0;
  }
  set_run_functions_eagerly(options.eager);
  if (int status = train(trainer, options, split))
    return status;
  set_run_functions_eagerly(false);
  if (options.report)
    report(trainer, batch);
  if (!options.objects.empty())
    writeObjects(trainer, batch, options);
  return 0;
}

} // namespace

void addTrain(CLI::App &app, Action &action) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand("train", "train a classifier of handwritten digits");
  command->add_option("what", options->what, "digits (8x8, carried by the program) or mnist")
      ->required()
      ->check(CLI::IsMember({"digits", "mnist"}));
  command->add_option("--epochs", options->epochs, "passes over the training set [30, mnist: 5]")
      ->transform(whole(1, 1'000'000));
  command->add_option("--batch", options->batch, "examples in a step [32, mnist: 64]")
      ->transform(whole(1, std::numeric_limits<int64_t>::max(), "1 to the number of training examples"));
  command->add_option("--hidden", options->hidden, "hidden units [32, mnist: 128]")->transform(whole(1, 65536));
  command->add_option("--optimizer", options->optimizer, "sgd, momentum or adam")
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}))
      ->capture_default_str();
  command->add_option("--lr", options->lr, "learning rate, per step [adam 0.001, momentum 0.02, sgd 0.1]")
      ->check(number(1e-30, 1e30));
  command->add_option("--seed", options->seed, "of the weights and of the order of the examples")
      ->transform(whole(0, (int64_t(1) << 62) - 1))
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "f32 or f64")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "threads that a kernel may use")
      ->transform(whole(1, 256))
      ->capture_default_str();
  command
      ->add_option(
          "--ranks", options->ranks,
          "ranks, as threads of this process, that train together; under mpirun there are as many as it starts")
      ->transform(whole(1, 8));
  command->add_option("--data", options->data, "directory of MNIST's four IDX files")->check(given());
  CLI::Option *checkpoints =
      command
          ->add_option("--checkpoints", options->checkpoints,
                       "directory of checkpoints: the training goes on from the last, if there is one")
          ->check(given());
  command->add_option("--checkpoint-every", options->checkpointEvery, "steps between two [every 10 seconds]")
      ->transform(whole(1, std::numeric_limits<int64_t>::max()))
      ->needs(checkpoints);
  addFlag(*command, "--eager", options->eager, "run op by op instead of compiling");
  CLI::Option *dump =
      command->add_option("--dump-ir", options->dumpIr, "print the train step after a stage and stop")
          ->check(CLI::IsMember({"traced", "dropped", "simplified", "fused", "lowered", "llvm", "assembly"}))
          ->excludes(checkpoints);
  addFlag(*command, "--report", options->report, "print a report on the train step")->excludes(dump);
  CLI::Option *objects = command
                             ->add_option("--write-object", options->objects,
                                          "compile gradient and train step ahead of time into this directory")
                             ->check(given())
                             ->excludes(dump);
  command
      ->add_option("--cpu", options->cpu, "with --write-object: LLVM's name of the processor, or `native` [x86-64-v2]")
      ->check(given())
      ->needs(objects);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

} // namespace wg::tools
