#include "sim/capacity/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/format.h"
#include "model/base/parallel.h"
#include "sim/capacity/capacity_policies.h"

namespace spillway {
namespace {

/// A model for a number of devices.
struct ReadModel {
  std::optional<Error> wrong;
  StepSpec step;
  std::vector<CapacityPolicy> policies;
};

/// A model on a machine with a number of devices: what its cells share.
struct Block {
  const ReadModel* model = nullptr;
  const HardwareProfile* machine = nullptr;
  std::int64_t devices = 0;
  std::string label;
  std::string impossible;
  std::optional<StepEstimator> estimator;
  Budget budget;
};

/// The grid's sizes, and where a cell lies in it.
struct Grid {
  std::size_t models, machines, devices, batches, sequences;
  explicit Grid(const CapacityRequest& request)
      : models(request.models.size()),
        machines(request.machines.size()),
        devices(request.devices.size()),
        batches(std::max<std::size_t>(1, request.batches.size())),
        sequences(std::max<std::size_t>(1, request.sequences.size())) {}

  std::size_t blocks() const { return models * machines * devices; }
  std::size_t cells_of_block() const { return batches * sequences; }
  std::size_t cells() const { return blocks() * cells_of_block(); }
};

/// An error as one line of a report.
std::string reason_of(const Error& error) {
  return error.text + (error.advice.empty() ? "" : "; " + error.advice);
}

/// Why a batch cannot be shared out; empty where it can.
std::string why_no_step(const StepSpec& step) {
  const double sequences = step.batch_per_device * static_cast<double>(step.mesh.devices()) /
                           static_cast<double>(step.mesh.batch_shares());
  constexpr double kRounding = 1e-6;
  if (sequences < 1 - kRounding || std::abs(sequences - std::round(sequences)) > kRounding)
    return fmt::format("the batch comes to {:g} sequences on a device, which is no whole number",
                       sequences);
  if (step.sequence % step.mesh[MeshAxis::kContext] != 0)
    return fmt::format("{} tokens cannot be split over a context axis of {}", step.sequence,
                       step.mesh[MeshAxis::kContext]);
  return "";
}

/// A step's memory against what there is.
Fit fit_of(const StepEstimate& step, const Budget& budget) {
  MemoryTotals totals;
  totals.total_device = step.device;
  totals.host_temp = step.host;
  return check_fit(totals, budget);
}

/// The best policy so far: of those that fit the fastest, else the one that misses least.
class Choice {
 public:
  void offer(std::size_t policy, const StepEstimate& step, const Fit& fit, Bytes missing) {
    if (!any_ || is_better(step, fit, missing)) {
      policy_ = policy;
      step_ = step;
      fit_ = fit;
      missing_ = missing;
    }
    with_room_ = any_ ? std::min(with_room_, step.step) : step.step;
    any_ = true;
  }

  std::size_t policy() const { return policy_; }
  const StepEstimate& step() const { return step_; }
  const Fit& fit() const { return fit_; }
  Seconds with_room() const { return with_room_; }

 private:
  bool is_better(const StepEstimate& step, const Fit& fit, Bytes missing) const {
    if (fit.fits != fit_.fits) return fit.fits;
    if (!fit.fits && missing != missing_) return missing < missing_;
    if (step.step != step_.step) return step.step < step_.step;
    return step.device < step_.device;
  }

  bool any_ = false;
  std::size_t policy_ = 0;
  StepEstimate step_;
  Fit fit_;
  Bytes missing_;
  Seconds with_room_;
};

/// Fills in the cells of one block; keeps the policies' steps, whose batch and sequence change from
/// cell to cell.
class CellMaker {
 public:
  CellMaker(const Block& block, const CapacityRequest& request)
      : block_(block), request_(request), policies_(block.model->policies) {
    const auto peak = find_figure(block.machine->device.matrix_peak, "bf16");
    check(peak != nullptr, "a profile has no matrix peak for bf16");
    peak_ = peak->value;
  }

  CapacityCell make(std::size_t in_block) {
    const std::size_t sequences = std::max<std::size_t>(1, request_.sequences.size());
    const StepSpec& configured = block_.model->step;
    CapacityCell cell;
    cell.key = {block_.label, block_.machine->id, block_.devices, configured.batch_per_device,
                configured.sequence};
    if (!request_.batches.empty()) cell.key.batch = request_.batches[in_block / sequences];
    if (!request_.sequences.empty()) cell.key.sequence = request_.sequences[in_block % sequences];
    cell.pool = block_.budget.room();
    cell.host = block_.budget.host_room();
    cell.impossible = block_.impossible;
    if (!cell.impossible.empty()) return cell;
    StepSpec& first = policies_.front().step;
    first.batch_per_device = cell.key.batch;
    first.sequence = cell.key.sequence;
    cell.impossible = why_no_step(first);
    if (cell.impossible.empty()) fill(cell);
    return cell;
  }

 private:
  void fill(CapacityCell& cell) {
    Choice choice;
    std::vector<bool> fits(policies_.size());
    for (std::size_t p = 0; p < policies_.size(); ++p) {
      // Copies of state only add to a step that fits without them.
      if (fits[policies_[p].with_least_moved]) continue;
      StepSpec& step = policies_[p].step;
      step.batch_per_device = cell.key.batch;
      step.sequence = cell.key.sequence;
      const StepEstimate estimate = block_.estimator->estimate(step);
      const Fit fit = fit_of(estimate, block_.budget);
      fits[p] = fit.fits;
      choice.offer(p, estimate, fit, missed(fit, block_.budget));
    }
    cell.fits = choice.fit().fits;
    cell.policy = policies_[choice.policy()].label;
    cell.step = choice.step();
    cell.step_with_room = choice.with_room();
    const StepSpec& step = policies_[choice.policy()].step;
    const double tokens = step.batch_per_device * static_cast<double>(block_.devices) *
                          static_cast<double>(step.sequence) *
                          static_cast<double>(step.accumulation);
    cell.tokens_per_second = tokens / cell.step.step.value();
    cell.mfu = ratio(cell.step.model_flops / peak_, cell.step.step);
    const Fit& fit = choice.fit();
    cell.binds =
        cell.fits ? std::string(name_of(cell.step.bound))
        : fit.over_hbm >= std::max(fit.over_host, fit.over_node / block_.budget.devices_per_node)
            ? "HBM capacity"
            : "host memory";
  }

  const Block& block_;
  const CapacityRequest& request_;
  std::vector<CapacityPolicy> policies_;
  FlopsPerSecond peak_;
};

std::optional<Error> check_request(const CapacityRequest& request) {
  if (request.models.empty()) return usage_error("there is no model to ask about");
  if (request.machines.empty()) return usage_error("there is no machine to ask about");
  if (request.devices.empty()) return usage_error("there is no number of devices to ask about");
  return check_capacity_policies(request.policies);
}

/// Every model for every number of devices, models outermost.
std::vector<ReadModel> read_models(const CapacityRequest& request, std::size_t threads) {
  std::vector<ReadModel> models(request.models.size() * request.devices.size());
  for_each_piece(models.size(), threads, [&](std::size_t k) {
    const std::int64_t devices = request.devices[k % request.devices.size()];
    Result<StepSpec> step = request.models[k / request.devices.size()].read(devices);
    if (!step.ok()) {
      models[k].wrong = step.error();
      return;
    }
    models[k].policies = list_capacity_policies(*step, request.policies, request.may_offload_state);
    models[k].step = std::move(step).value();
  });
  return models;
}

/// The first model that cannot be read for any number of devices.
std::optional<Error> find_unreadable(const std::vector<ReadModel>& models, std::size_t devices) {
  for (std::size_t m = 0; m < models.size(); m += devices) {
    const auto begin = models.begin() + static_cast<std::ptrdiff_t>(m);
    const auto end = begin + static_cast<std::ptrdiff_t>(devices);
    if (std::all_of(begin, end, [](const ReadModel& model) { return model.wrong.has_value(); }))
      return models[m].wrong;
  }
  return std::nullopt;
}

void prepare(const CapacityRequest& request, Block& block) {
  if (block.model->wrong) {
    block.impossible = reason_of(*block.model->wrong);
    return;
  }
  StepSpec step = block.model->step;
  if (!request.batches.empty()) step.batch_per_device = request.batches.front();
  if (!request.sequences.empty()) step.sequence = request.sequences.front();
  Result<StepEstimator> estimator =
      StepEstimator::make(step, *block.machine, make_topology(block.devices, *block.machine));
  if (estimator.ok())
    block.estimator = std::move(estimator).value();
  else
    block.impossible = reason_of(estimator.error());
}

Result<std::vector<Block>> prepare_blocks(const CapacityRequest& request,
                                          const std::vector<ReadModel>& models,
                                          std::size_t threads) {
  const Grid grid(request);
  std::vector<Block> blocks(grid.blocks());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::size_t device = b % grid.devices;
    const std::size_t machine = b / grid.devices % grid.machines;
    const std::size_t model = b / grid.devices / grid.machines;
    Block& block = blocks[b];
    block.model = &models[model * grid.devices + device];
    block.machine = &request.machines[machine];
    block.devices = request.devices[device];
    block.label = request.models[model].label;
    const Result<Budget> budget =
        make_budget(*block.machine, make_topology(block.devices, *block.machine), request.budget);
    if (!budget.ok()) return budget.error();
    block.budget = *budget;
  }
  for_each_piece(blocks.size(), threads, [&](std::size_t b) { prepare(request, blocks[b]); });
  return blocks;
}

CapacityMachine describe(const HardwareProfile& profile) {
  CapacityMachine machine;
  machine.id = profile.id;
  machine.name = profile.name;
  machine.hbm = profile.device.hbm_capacity.value;
  if (const auto peak = find_figure(profile.device.matrix_peak, "bf16"))
    machine.bf16_peak = peak->value;
  machine.link = name_of(profile.link.kind);
  machine.link_rate = profile.link.host_to_device.value;
  machine.domain_gpus = profile.scale_up.domain_gpus.value.value();
  return machine;
}

void add_once(std::string sentence, std::vector<std::string>& sentences) {
  if (std::ranges::find(sentences, sentence) == sentences.end())
    sentences.push_back(std::move(sentence));
}

std::vector<std::string> list_assumptions(const CapacityRequest& request,
                                          const std::vector<ReadModel>& models,
                                          const std::vector<Block>& blocks) {
  std::vector<std::string> said;
  for (std::size_t k = 0; k < models.size(); ++k)
    for (const std::string& sentence : models[k].step.assumptions)
      add_once(request.models[k / request.devices.size()].label + ": " + sentence, said);
  for (std::size_t machine = 0; machine < request.machines.size(); ++machine) {
    const Budget& budget = blocks[machine * request.devices.size()].budget;
    add_once(
        fmt::format("{}: a step may allocate {} of the {} of HBM", request.machines[machine].id,
                    format_bytes(budget.room()), format_bytes(budget.hbm)),
        said);
  }
  add_once("devices stand in the order of their ids; groups of them share NVLink domains evenly",
           said);
  add_once(
      "steps and memory are sums over the configuration, without an order of execution: whatif and "
      "plan on a model or a program say more of one cell",
      said);
  return said;
}

}  // namespace

std::size_t count_cells(const CapacityRequest& request) { return Grid(request).cells(); }

Result<CapacityReport> estimate_capacity(const CapacityRequest& request, const CapacityRun& run) {
  if (const auto wrong = check_request(request)) return *wrong;
  const std::size_t threads = run.threads > 0 ? run.threads : useful_threads();
  const std::vector<ReadModel> models = read_models(request, threads);
  if (const auto wrong = find_unreadable(models, request.devices.size())) return *wrong;
  const Result<std::vector<Block>> blocks = prepare_blocks(request, models, threads);
  if (!blocks.ok()) return blocks.error();

  const Grid grid(request);
  std::vector<std::size_t> ours;
  for (std::size_t k = 0; k < grid.cells(); ++k)
    if (!run.owns || run.owns(k)) ours.push_back(k);
  CapacityReport report;
  report.cells.resize(ours.size());
  // A piece is what lies in one block of some cells one after the other: policies are copied once.
  constexpr std::size_t kPiece = 64;
  for_each_piece((ours.size() + kPiece - 1) / kPiece, threads, [&](std::size_t piece) {
    std::optional<CellMaker> maker;
    std::size_t of_block = grid.blocks();
    const std::size_t end = std::min(ours.size(), (piece + 1) * kPiece);
    for (std::size_t k = piece * kPiece; k < end; ++k) {
      const std::size_t block = ours[k] / grid.cells_of_block();
      if (block != of_block) maker.emplace((*blocks)[block], request);
      of_block = block;
      report.cells[k] = maker->make(ours[k] % grid.cells_of_block());
      if (run.advance) run.advance();
    }
  });
  for (const HardwareProfile& machine : request.machines)
    report.machines.push_back(describe(machine));
  report.assumptions = list_assumptions(request, models, *blocks);
  return report;
}

}  // namespace spillway
