// spillway capacity MODEL… --hw A,B --devices N[,N…] [--batch X[,X…]] [--seq N[,N…]]
//                   [--policy NAME[,NAME…]] [--offload-state] [--settings F]
//                   [--hbm-limit B | --mem-fraction f] [--host-limit B] [--shard I/N]
//                   [--html F] [--csv F] [--sqlite F] [--markdown F] [--json]
#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "cli/budget_options.h"
#include "cli/capacity_models.h"
#include "cli/capacity_outputs.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/question_stamp.h"
#include "cli/shard_option.h"

namespace spillway {
namespace {

constexpr std::int64_t kMostDevices = 1'000'000;
constexpr std::int64_t kLongestSequence = std::int64_t{1} << 24;
constexpr double kLargestBatch = 1e6;
constexpr std::size_t kMostCells = 10'000'000;

struct CapacityOptions {
  std::vector<std::string> models, hardware, policies;
  std::vector<std::int64_t> devices, sequences;
  std::vector<double> batches;
  std::string settings, shard;
  bool offload_state = false, json = false;
  BudgetOptions budget;
  CapacityOutputs outputs;
};

/// An error where a value of a list stands there twice: its cells would, too.
template <typename Value>
std::optional<Error> check_once(const char* option, const std::vector<Value>& values) {
  if (std::set<Value>(values.begin(), values.end()).size() == values.size()) return std::nullopt;
  return usage_error(std::string(option) + " has a value twice", "each makes cells of its own");
}

std::optional<Error> check_lists(const CapacityOptions& options) {
  if (auto wrong = check_once("MODEL", options.models)) return wrong;
  if (auto wrong = check_once("--hw", options.hardware)) return wrong;
  if (auto wrong = check_once("--devices", options.devices)) return wrong;
  if (auto wrong = check_once("--batch", options.batches)) return wrong;
  for (const double batch : options.batches)
    if (!(batch > 0)) return usage_error("--batch must be above zero", "for example --batch 1,2,4");
  return check_once("--seq", options.sequences);
}

Result<CapacityRequest> make_request(const CapacityOptions& options,
                                     const Surroundings& surroundings) {
  if (const auto wrong = check_lists(options)) return *wrong;
  CapacityRequest request;
  for (const std::string& argument : options.models) {
    auto model = find_capacity_model(
        {argument, options.settings, !options.batches.empty(), !options.sequences.empty()});
    if (!model.ok()) return model.error();
    for (const CapacityRequest::Model& other : request.models)
      if (other.label == model->label)
        return usage_error("two models are called " + spillway::quoted(model->label),
                           "give one of the files another name");
    request.models.push_back(std::move(model).value());
  }
  for (const std::string& name : options.hardware) {
    auto profile = find_profile(name, surroundings.profiles);
    if (!profile.ok()) return profile.error();
    for (const HardwareProfile& other : request.machines)
      if (other.id == profile->id)
        return usage_error("two machines are called " + spillway::quoted(profile->id),
                           "give one of the profiles another id");
    request.machines.push_back(std::move(profile).value());
  }
  request.devices = options.devices;
  request.batches = options.batches;
  request.sequences = options.sequences;
  request.policies = options.policies;
  request.may_offload_state = options.offload_state;
  const Result<BudgetWishes> wishes = read_wishes(options.budget);
  if (!wishes.ok()) return wishes.error();
  if (wishes->block_limit)
    return usage_error("--largest-block needs a program", "a configuration has no order of arrays");
  request.budget = *wishes;
  if (count_cells(request) > kMostCells)
    return usage_error("these are more than ten million cells", "give fewer values");
  return request;
}

/// Which part of the answer this is, and of which question.
std::optional<ShardLabel> label_part(const CapacityOptions& options, const Shard& shard,
                                     const CapacityRequest& request) {
  if (options.shard.empty()) return std::nullopt;
  QuestionStamp stamp("capacity");
  for (const std::string& model : options.models) stamp.add_file(model);
  stamp.add_file(options.settings);
  for (const HardwareProfile& machine : request.machines) stamp.add(machine);
  stamp.add("--devices", options.devices);
  stamp.add("--batch", options.batches);
  stamp.add("--seq", options.sequences);
  stamp.add("--policy", options.policies);
  stamp.add("--offload-state", options.offload_state ? "true" : "");
  stamp.add(options.budget);
  return ShardLabel{shard, count_cells(request), stamp.text()};
}

int run_capacity(const CapacityOptions& options, const Surroundings& surroundings) {
  const Result<Shard> shard = options.shard.empty() ? Shard() : parse_shard(options.shard);
  if (!shard.ok()) return report(shard.error());
  if (!options.shard.empty() && (!options.json || options.outputs.any()))
    return report(usage_error("parts of an answer are for merge, which reads JSON",
                              "give --json alone; merge writes the other forms"));
  std::vector<std::string> inputs = options.models;
  inputs.insert(inputs.end(), options.hardware.begin(), options.hardware.end());
  inputs.push_back(options.settings);
  if (const ExitCode code = check_outputs(options.outputs, inputs); code != kDone) return code;
  const Result<CapacityRequest> request = make_request(options, surroundings);
  if (!request.ok()) return report(request.error());

  std::size_t ours = 0;
  for (std::size_t k = 0; k < count_cells(*request); ++k) ours += shard->owns(k);
  Progress progress(ours, "cells");
  Result<CapacityReport> found =
      estimate_capacity(*request, {.owns = [&](std::size_t k) { return shard->owns(k); },
                                   .advance = [&] { progress.advance(); }});
  if (!found.ok()) return report(found.error());
  CapacityReport result = std::move(found).value();
  result.shard = label_part(options, *shard, *request);
  if (const ExitCode code = write_capacity(result, options.outputs); code != kDone) return code;
  // Of a part nobody can say whether anything fits.
  const bool is_yes = !options.shard.empty() || fits_anywhere(result);
  return answer(options.json ? render_json(result) : render_text(result),
                is_yes ? kDone : kAnswerIsNo);
}

}  // namespace

Runner add_capacity(CLI::App& subcommand, const Surroundings& surroundings) {
  auto options = std::make_shared<CapacityOptions>();
  const auto list = [&](const char* option, auto& values, const char* help) {
    return subcommand.add_option(option, values, help)->delimiter(',')->allow_extra_args(false);
  };
  subcommand
      .add_option("MODEL", options->models,
                  "a MaxText YAML, a config.json, or a model that MaxText knows: llama3.1-8b")
      ->required();
  list("--hw", options->hardware, "machines, ids of 'spillway hw list' or YAML files: gb200,h200")
      ->required();
  list("--devices", options->devices, "how many devices train: 64,128")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, kMostDevices));
  list("--batch", options->batches, "sequences a device, of one microbatch: 1,2,4")
      ->check(CLI::Range(0.0, kLargestBatch));
  list("--seq", options->sequences, "tokens of a sequence: 4096,8192")
      ->check(CLI::Range(std::int64_t{1}, kLongestSequence));
  list("--policy", options->policies,
       "the remat policies to choose among, 'configured' for what the YAML says; all by default");
  subcommand.add_flag("--offload-state", options->offload_state,
                      "lets a policy keep optimizer and parameters on the host, too");
  subcommand.add_option("--settings", options->settings,
                        "the run's settings for models that say nothing of it, a YAML in MaxText's "
                        "keys");
  add_budget_options(subcommand, options->budget);
  subcommand.add_option("--shard", options->shard,
                        "I/N: only part I of N of the cells, for `merge` to put together");
  add_capacity_outputs(subcommand, options->outputs);
  subcommand.add_flag("--json", options->json, "for scripts: schema spillway.capacity/1");
  return [options, &surroundings] { return run_capacity(*options, surroundings); };
}

}  // namespace spillway
