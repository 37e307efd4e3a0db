// `wengert inspect PATH`: what is in a saved computation. Nothing of it is loaded: what calls functions of another
// program, or is of no use to this one, is listed as well.
#include "tools/Commands.h"
#include "tools/Program.h"
#include "tools/Saved.h"

#include <iostream>

namespace wg::tools {
namespace {

using detail::Manifest;
using detail::ManifestFunction;
using detail::ManifestInput;
using detail::ManifestItem;
using detail::ManifestPart;
using detail::ManifestVariable;

struct Options {
  std::string path;
  bool json = false;
};

std::string counted(size_t count, const char *thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

int64_t bytesOf(const runtime::TensorType &type) {
  return type.shape.numElements() * static_cast<int64_t>(runtime::sizeOf(type.dtype));
}

/// `; reads w, b` for those that `list` names.
std::string naming(const char *what, const std::vector<std::string> &list) {
  std::string text;
  for (const std::string &each : list)
    text += (text.empty() ? std::string("; ") + what + " " : ", ") + each;
  return text;
}

/// What the file of a trace holds beside its signature.
std::string contentsOf(const Manifest &manifest, const ManifestFunction &function) {
  std::vector<std::string> reads, assigns, captures;
  auto nameOf = [&](const ManifestInput &input) {
    return input.kind == ManifestInput::variable ? manifest.variables[input.index].name
                                                 : "argument " + std::to_string(input.index);
  };
  for (const ManifestInput &input : function.inputs)
    if (input.kind == ManifestInput::variable)
      reads.push_back(nameOf(input));
    else if (input.kind == ManifestInput::constant)
      captures.push_back(toString(manifest.constants[input.index]));
  for (uint32_t input : function.assigned)
    if (function.inputs[input].kind != ManifestInput::order)
      assigns.push_back(nameOf(function.inputs[input]));
  size_t dropped = function.certificate.size();
  return counted(static_cast<size_t>(function.numOps), "op") + naming("takes", reads) + naming("assigns", assigns) +
         naming("captures", captures) + (dropped ? "; " + counted(dropped, "gradient") + " not computed" : "") +
         (function.interpret ? "; interpreted" : "");
}

void printItem(const Manifest &manifest, const ManifestItem &item) {
  std::cout << "  " << item.name << ": ";
  switch (item.kind) {
  case ManifestItem::Kind::value: {
    std::string tensors;
    for (const detail::ManifestTensor &tensor : item.tensors)
      tensors += (tensors.empty() ? " of " : ", ") +
                 (tensor.onTape ? std::string("a tensor on a tape") : toString(manifest.constants[tensor.index]));
    for (uint32_t variable : item.ofValue)
      tensors += (tensors.empty() ? " of " : ", ") + ("variable " + manifest.variables[variable].name);
    std::cout << "a value" << tensors << "\n";
    break;
  }
  case ManifestItem::Kind::variables: {
    std::vector<std::string> names;
    for (const auto &[name, variable] : item.named)
      names.push_back(manifest.variables[variable].name);
    std::cout << counted(names.size(), "variable");
    for (const std::string &name : names)
      std::cout << (&name == names.data() ? ": " : ", ") << name;
    std::cout << "\n";
    break;
  }
  case ManifestItem::Kind::function: {
    std::cout << "a function, " << counted(item.functions.size(), "trace") << "\n";
    for (size_t i = 0; i < item.functions.size(); ++i) {
      const ManifestFunction &function = manifest.functions[item.functions[i]];
      std::cout << "    " << i + 1 << ": " << signatureOf(item, function) << "\n       "
                << contentsOf(manifest, function) << "\n";
    }
    break;
  }
  case ManifestItem::Kind::tape: {
    const detail::ManifestTapes::Tape &tape = manifest.tapes->tapes[item.tape];
    int64_t ops = 0;
    for (const std::vector<uint32_t> &members : manifest.tapes->members)
      ops += std::count(members.begin(), members.end(), item.tape);
    std::cout << "a tape of " << counted(static_cast<size_t>(ops), "op") << (tape.persistent ? ", persistent" : "")
              << (tape.recording ? ", recording" : "") << "; watches " << counted(tape.variables.size(), "variable")
              << "\n";
    break;
  }
  case ManifestItem::Kind::position:
    std::cout << "epoch " << item.position[0] << ", batch " << item.position[1] << " of a data set\n";
    break;
  }
}

void printVariables(const Manifest &manifest) {
  size_t width = 0;
  int64_t total = 0;
  for (const ManifestVariable &variable : manifest.variables) {
    width = std::max(width, variable.name.size());
    total += bytesOf(variable.type);
  }
  std::cout << "\nvariables, " << total << " bytes:\n";
  for (const ManifestVariable &variable : manifest.variables)
    std::cout << "  " << variable.name << std::string(width - variable.name.size() + 2, ' ') << toString(variable.type)
              << ", " << bytesOf(variable.type) << " bytes"
              << (variable.generator   ? ", a generator"
                  : variable.trainable ? ""
                                       : ", not trainable")
              << "\n";
}

/// What is wrong with a file of the package; empty if it is as it was saved.
std::string problemOf(const SavedFile &file, const ManifestPart &part) {
  runtime::Result<runtime::InputFile> opened = file.package.part(part.name);
  if (!opened.ok())
    return "missing";
  if (opened->size() != part.bytes)
    return "damaged: it has " + std::to_string(opened->size()) + " bytes";
  return file.package.verify(part.name).ok() ? "" : "damaged: its digest is another";
}

int inspect(const Options &options) {
  SavedFile file = openSaved(options.path);
  const Manifest &manifest = file.manifest;
  std::vector<const ManifestPart *> parts = partsOf(manifest), wrong;
  std::vector<std::string> problems;
  uint64_t bytes = file.package.manifest().size();
  for (const ManifestPart *part : parts) {
    bytes += part->bytes;
    problems.push_back(problemOf(file, *part));
    if (!problems.back().empty())
      wrong.push_back(part);
  }
  if (options.json) {
    std::cout << file.package.manifest();
  } else {
    std::cout << options.path << ": version " << manifest.version << ", saved by Wengert " << manifest.library << "; "
              << bytes << " bytes in " << counted(parts.size() + 1, "file") << "\n";
    for (const auto &[key, value] : manifest.metadata)
      std::cout << "  " << key << ": " << value << "\n";
    std::cout << "\nitems:\n";
    for (const ManifestItem &item : manifest.items)
      printItem(manifest, item);
    if (!manifest.variables.empty())
      printVariables(manifest);
    for (const auto &[what, names] :
         {std::pair("host functions", &manifest.hostFunctions), std::pair("C functions", &manifest.cFunctions)})
      if (!names->empty()) {
        std::cout << "\nrequires " << what << ":\n";
        for (const std::string &name : *names)
          std::cout << "  " << name << "\n";
      }
    std::cout << "\nfiles, by BLAKE3:\n";
    for (size_t i = 0; i < parts.size(); ++i)
      std::cout << "  " << parts[i]->digest << "  " << parts[i]->name.substr(0, parts[i]->name.find('-'))
                << parts[i]->name.substr(parts[i]->name.rfind('.')) << ", " << parts[i]->bytes << " bytes"
                << (problems[i].empty() ? "" : ", " + problems[i]) << "\n";
  }
  if (!wrong.empty())
    fail({.kind = ErrorKind::io,
          .message = options.path + ": " + std::to_string(wrong.size()) + " of " + counted(parts.size(), "file") + " " +
                     (wrong.size() == 1 ? "is" : "are") + " not as saved: " + wrong.front()->name +
                     (wrong.size() == 1 ? "" : ", ..."),
          .remedy = "take another copy"});
  return 0;
}

} // namespace

void addInspect(CLI::App &app, Action &action) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand("inspect", "list what is in a saved computation, and compare its files with "
                                                    "their digests");
  addSavedPath(*command, options->path);
  addFlag(*command, "--json", options->json, "print the manifest, which is JSON");
  command->callback([options, &action] { action = [options] { return inspect(*options); }; });
}

} // namespace wg::tools
