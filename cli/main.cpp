// spillway: finds the command, hands over, and turns what went wrong into one message and a code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "cli/command.h"
#include "cli/hw_command.h"

namespace spillway {
namespace {

constexpr Command kCommands[] = {
    {"inspect", "what a compiled program holds, when, and what it moves", add_inspect},
    {"simulate", "how long a step takes on a machine, and which copies are exposed", add_simulate},
    {"plan", "what to keep and what to move to the host, and how", add_plan},
    {"log", "what the numbers of an out-of-memory log mean, and which one decides", add_log},
    {"hw", "the machines known, each figure with its origin", add_hw},
};

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

int answer(const std::string& text, int exit_code) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return exit_code;
  std::fprintf(stderr, "error: the answer could not be written\n");
  return kWrongInput;
}

}  // namespace spillway

int main(int argc, char** argv) { return spillway::run(argc, argv); }
