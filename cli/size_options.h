// Options that ask for a step of another size than compiled: --second with --batch or --seq, and
// --accumulation.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "sim/scale/sized_steps.h"

namespace spillway {

struct SizeOptions {
  std::string second;                                ///< path of the other dump
  std::vector<double> batch_of_dumps, seq_of_dumps;  ///< of PROGRAM and of the second
  std::vector<double> batches, sequences;
  std::vector<std::int64_t> accumulations;

  bool any() const {
    return !second.empty() || !batch_of_dumps.empty() || !seq_of_dumps.empty() ||
           !batches.empty() || !sequences.empty() || !accumulations.empty();
  }
};

void add_size_options(CLI::App& subcommand, SizeOptions& options);

/// The steps that are asked for; reads the second dump.
Result<std::vector<SizedStep>> read_sized_steps(const SizeOptions& options, const Program& program,
                                                const NameList& names);

}  // namespace spillway
