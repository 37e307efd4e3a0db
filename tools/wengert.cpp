// `wengert`: trains the digit classifiers; runs and compiles programs in the dialect's text and saved functions, and
// says what is in them. An error of usage is one
// line and exit status 2; any other error is printed with its place and remedy, exit status 1.
#include "tools/Commands.h"
#include "tools/Streams.h"

#include <wengert/Error.h>
#include <wengert/Version.h>

#include <iostream>

static int run(int argc, char **argv) {
  CLI::App app("Wengert: tapes and traced functions, differentiated and compiled", "wengert");
  app.set_version_flag("--version", "wengert " WENGERT_VERSION_STRING);
  app.require_subcommand(1);
  wg::tools::Action action;
  wg::tools::addTrain(app, action);
  wg::tools::addRun(app, action);
  wg::tools::addCompile(app, action);
  wg::tools::addInspect(app, action);
  wg::tools::addExplain(app, action);
  wg::tools::addStages(app, action);

  auto usage = [](const std::string &message) {
    std::cerr << "wengert: " << message << " (see wengert --help)\n";
    return 2;
  };
  if (argc > 1 && argv[1][0] != '-') {
    std::string known;
    bool found = false;
    for (const CLI::App *command : app.get_subcommands({})) {
      known += (known.empty() ? "" : ", ") + command->get_name();
      found |= command->get_name() == argv[1];
    }
    if (!found)
      return usage("there is no command `" + std::string(argv[1]) + "`; there are " + known);
  }
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    return usage(error.what());
  } catch (const wg::Error &error) {
    std::cerr << error.what() << "\n";
  } catch (const std::bad_alloc &) {
    std::cerr << "error: out of memory\n";
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << "\n";
  }
  return 1;
}

int main(int argc, char **argv) {
  wg::tools::holdStandardStreams();
  return wg::tools::finish(run(argc, argv));
}
