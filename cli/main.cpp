// spillway: finds the command, hands over, and turns what went wrong into one message and a code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <vector>

#include "cli/command.h"
#include "cli/hw_command.h"
#include "model/base/spelling.h"
#include "model/base/utf8.h"

namespace spillway {
namespace {

constexpr Command kCommands[] = {
    {"inspect", "what a compiled program holds, when, and what it moves", add_inspect},
    {"simulate", "how long a step takes on a machine, and which copies are exposed", add_simulate},
    {"plan", "what to keep and what to move to the host, and how", add_plan},
    {"whatif", "what the step becomes under other policies, flags and sizes", add_whatif},
    {"capacity", "models on machines: what fits, how fast, on how many devices", add_capacity},
    {"verify", "what XLA compiled under a plan, against what the plan predicted", add_verify},
    {"merge", "the answers of whatif or capacity --shard I/N, put together", add_merge},
    {"compare", "what a second program holds and moves that a first one does not", add_compare},
    {"log", "what the numbers of an out-of-memory log mean, and which one decides", add_log},
    {"flags", "XLA's flags by version, and what is wrong with a line of them", add_flags},
    {"calibrate", "a machine's figures from what was measured on it", add_calibrate},
    {"hw", "the machines known, each figure with its origin", add_hw},
};

/// An empty value is most often an unset variable of a script, and would pass for no wish.
std::string not_empty(const std::string& value) { return value.empty() ? "must not be empty" : ""; }

/// Of the text of XLA_FLAGS, that none is set is an answer.
bool may_be_empty(std::string_view option) {
  return option == "--check" || option == "--xla-flags";
}

/// A first word that is no command and no option; null when there is none.
const char* unknown_command(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-' || argv[1][0] == '\0') return nullptr;
  for (const Command& command : kCommands)
    if (std::string_view(argv[1]) == command.name) return nullptr;
  return argv[1];
}

std::string executable_path(const char* argv0) {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? std::string(argv0) : self.string();
}

int run(int argc, char** argv) {
  const Surroundings surroundings{
      hw_search_path(std::getenv("SPILLWAY_HW_PROFILES"), executable_path(argv[0]))};
  CLI::App app{"Plans host offloading for JAX/XLA training from the programs XLA compiled",
               "spillway"};
  app.set_version_flag("--version", SPILLWAY_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  std::vector<std::pair<CLI::App*, Runner>> runners;
  for (const Command& command : kCommands) {
    CLI::App* subcommand = app.add_subcommand(command.name, command.summary);
    runners.emplace_back(subcommand, command.add(*subcommand, surroundings));
    for (CLI::Option* option : subcommand->get_options())
      if (option->get_items_expected_max() > 0 && !may_be_empty(option->get_name()))
        option->check(not_empty);
  }
  if (const char* word = unknown_command(argc, argv)) {
    std::vector<std::string> names;
    for (const Command& command : kCommands) names.emplace_back(command.name);
    const std::string_view nearest = nearest_name(word, names);
    return report(
        {ErrorKind::kUsage,
         "there is no command " + quoted(word),
         {},
         "",
         nearest.empty() ? "see spillway --help" : "did you mean '" + std::string(nearest) + "'?"});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // CLI11 has exit codes of its own above 100; help and version are no errors.
    const bool asked = e.get_exit_code() == 0;
    app.exit(e);
    return asked ? kDone : kWrongUsage;
  }
  for (const auto& [subcommand, runner] : runners)
    if (subcommand->parsed()) return runner();
  return kWrongUsage;
}

}  // namespace

int report(const Error& error) {
  std::fprintf(stderr, "%s\n", to_text(error).c_str());
  return error.kind == ErrorKind::kUsage ? kWrongUsage : kWrongInput;
}

int answer(const std::string& raw, int exit_code) {
  // Names come from the input, and a terminal would obey what is in them. JSON is for scripts, has
  // escaped control characters and keeps the names.
  const bool is_json = raw.starts_with('{');
  const std::string shown = is_json ? "" : printable_lines(raw);
  const std::string& text = is_json ? raw : shown;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return exit_code;
  std::fprintf(stderr, "error: the answer could not be written\n");
  return kNotWritten;
}

}  // namespace spillway

int main(int argc, char** argv) {
  try {
    return spillway::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory: this machine has too little for the program\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "internal error: %s\n", e.what());
  }
  return spillway::kInternalError;
}
