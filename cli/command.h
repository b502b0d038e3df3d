// A command of the program: a row in the table of main.cpp and a file of its own. CLI11 is used in
// this folder only.
#pragma once

#include <functional>
#include <string>

#include "model/base/result.h"
#include "model/hardware/find_profile.h"

namespace CLI {
class App;
}

namespace spillway {

/// Exit codes of the program. The last two are those of sysexits.h, EX_SOFTWARE and EX_IOERR.
enum ExitCode : int {
  kDone = 0,
  kAnswerIsNo = 1,  ///< nothing fits, a check failed
  kWrongUsage = 2,
  kWrongInput = 3,
  kInternalError = 70,  ///< our bug, from model/base/check.h too; or memory ran out
  /// The answer could not be written: a full disk. Who closes the pipe it is written to ends the
  /// program by SIGPIPE, as others: 141 in a shell.
  kNotWritten = 74,
};

/// What a command needs to know about its surroundings.
struct Surroundings {
  ProfileSearchPath profiles;
};

/// Runs a command whose options have been parsed; returns the exit code.
using Runner = std::function<int()>;

/// A row of the table in main.cpp.
struct Command {
  const char* name;
  const char* summary;
  /// Adds the command's options to its subcommand. The runner refers to both arguments.
  Runner (*add)(CLI::App& subcommand, const Surroundings& surroundings);
};

Runner add_calibrate(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_capacity(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_compare(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_flags(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_hw(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_inspect(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_log(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_plan(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_simulate(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_merge(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_verify(CLI::App& subcommand, const Surroundings& surroundings);
Runner add_whatif(CLI::App& subcommand, const Surroundings& surroundings);

/// Prints an error to stderr and returns its exit code.
int report(const Error& error);
/// Prints the answer to stdout, whole or not at all.
int answer(const std::string& text, int exit_code = kDone);

}  // namespace spillway
