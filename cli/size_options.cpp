#include "cli/size_options.h"

#include <CLI/CLI.hpp>
#include <optional>

#include "model/hlo/read_program.h"

namespace spillway {
namespace {

/// What the options ask for, or what is wrong with them.
Result<SizeRequest> make_request(const SizeOptions& options) {
  SizeRequest request;
  request.accumulations = options.accumulations;
  const bool batch = !options.batches.empty() || !options.batch_of_dumps.empty();
  const bool sequence = !options.sequences.empty() || !options.seq_of_dumps.empty();
  if (batch && sequence)
    return usage_error("two dumps differ in batch or in sequence, not in both",
                       "first one, then the other");
  if (!batch && !sequence) {
    if (options.second.empty()) return request;
    return usage_error("--second is there for --batch or --seq",
                       "for example --second DUMP --batch-of-dumps 1,2 --batch 4");
  }
  const std::string what = batch ? "batch" : "seq";
  const std::vector<double>& of_dumps = batch ? options.batch_of_dumps : options.seq_of_dumps;
  request.axis = batch ? SizeAxis::kBatch : SizeAxis::kSequence;
  request.sizes = batch ? options.batches : options.sequences;
  if (options.second.empty())
    return usage_error("--" + what + " needs a second dump, of another " + what,
                       "for example --second DUMP --" + what + "-of-dumps 1,2");
  if (of_dumps.size() != 2)
    return usage_error(
        "--" + what + "-of-dumps must say how large it is in PROGRAM and in --second",
        "for example --" + what + "-of-dumps 1,2");
  if (request.sizes.empty())
    return usage_error("--second is there for a " + what + " to ask about",
                       "for example --" + what + " 4");
  request.first = of_dumps[0];
  request.second = of_dumps[1];
  return request;
}

}  // namespace

void add_size_options(CLI::App& subcommand, SizeOptions& options) {
  const auto list = [&subcommand](const char* name, auto& values, const char* help) {
    subcommand.add_option(name, values, help)->delimiter(',')->allow_extra_args(false);
  };
  subcommand.add_option("--second", options.second,
                        "a dump of the same step with another batch or sequence");
  list("--batch-of-dumps", options.batch_of_dumps, "batch of PROGRAM and of --second: 1,2");
  list("--batch", options.batches, "the batch to ask about; several with commas for a case each");
  list("--seq-of-dumps", options.seq_of_dumps, "sequence of PROGRAM and of --second: 2048,8192");
  list("--seq", options.sequences,
       "the sequence to ask about; several with commas for a case each");
  list("--accumulation", options.accumulations,
       "micro batches a step, of a program that accumulates gradients; several with commas");
}

Result<std::vector<SizedStep>> read_sized_steps(const SizeOptions& options, const Program& program,
                                                const NameList& names) {
  const Result<SizeRequest> request = make_request(options);
  if (!request.ok()) return request.error();
  if (options.second.empty()) return make_sized_steps(program, nullptr, names, *request);
  const Result<Program> second = read_program(options.second);
  if (!second.ok()) return second.error();
  return make_sized_steps(program, &*second, names, *request);
}

}  // namespace spillway
