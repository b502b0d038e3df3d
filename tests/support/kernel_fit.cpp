#include "tests/support/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/cost/roofline.h"

namespace spillway::testing {
namespace {

constexpr Seconds kSmall(10e-6);

/// Kernels of one signature.
struct Sample {
  Work work;
  Seconds time;   ///< their median
  int count = 1;  ///< how many there are
};

bool is_fitted(const Work& work) {
  switch (work.kernel) {
    case KernelClass::kAttentionBackward:
    case KernelClass::kAttentionForward:
    case KernelClass::kCollective:
    case KernelClass::kFree:
    case KernelClass::kGemm:
    case KernelClass::kUnknown:
      return false;
    default:
      return true;
  }
}

double loss(const HardwareProfile& machine, const std::vector<Sample>& large) {
  double sum = 0;
  for (const Sample& sample : large) {
    const double weight = std::sqrt(sample.time.value() * sample.count);
    sum += weight * std::abs(std::log(ratio(roofline(sample.work, machine).time, sample.time)));
  }
  return sum;
}

struct Parameter {
  std::vector<Figure<Factor> KernelCosts::*> figures;  ///< that share one value

  double get(const HardwareProfile& machine) const {
    return (machine.kernels.*figures.front()).value.value();
  }
  void set(HardwareProfile& machine, double value) const {
    for (const auto figure : figures) (machine.kernels.*figure).value = Factor(value);
  }
};

const std::vector<Parameter>& parameters() {
  static const std::vector<Parameter> all = {
      {{&KernelCosts::elementwise, &KernelCosts::row_reduce, &KernelCosts::copy}},
      {{&KernelCosts::column_reduce}},
      {{&KernelCosts::transpose}},
      {{&KernelCosts::vector}}};
  return all;
}

/// Whether another value of one figure is better; takes the best of a few.
bool improve(HardwareProfile& machine, const Parameter& parameter,
             const std::vector<Sample>& large) {
  const double start = parameter.get(machine);
  double best = start;
  double least = loss(machine, large);
  for (const double step : {0.3, 0.1, 0.03, 0.01, 0.003}) {
    for (const double factor : {1 - step, 1 + step}) {
      parameter.set(machine, start * factor);
      if (const double now = loss(machine, large); now < least * (1 - 1e-9)) {
        least = now;
        best = start * factor;
      }
    }
  }
  parameter.set(machine, best);
  return best != start;
}

std::vector<Sample> samples_of(const std::vector<MeasuredKernel>& kernels) {
  std::map<std::string, std::vector<const MeasuredKernel*>> by_signature;
  for (const MeasuredKernel& kernel : kernels)
    if (is_fitted(kernel.work)) by_signature[kernel.signature].push_back(&kernel);
  std::vector<Sample> samples;
  for (const auto& [signature, group] : by_signature) {
    std::vector<double> times;
    for (const MeasuredKernel* kernel : group) times.push_back(kernel->time.value());
    const int count = static_cast<int>(group.size());
    samples.push_back({group.front()->work, Seconds(median(std::move(times))), count});
  }
  return samples;
}

}  // namespace

std::vector<MeasuredKernel> kernels_of(const A100Run& run) {
  const auto by_name = executed_by_name(run.program);
  std::vector<MeasuredKernel> kernels;
  for (const MeasuredOp& op : run.ops) {
    const auto found = by_name.find(op.name);
    if (op.collective || op.overlapped >= 0.05 || found == by_name.end()) continue;
    const InstructionId id = found->second;
    const Work work = work_of(run.program, id);
    if (work.kernel == KernelClass::kFree) continue;
    kernels.push_back({id, work, op.time, signature_of(run.program, id)});
  }
  return kernels;
}

HardwareProfile fit_kernels(HardwareProfile machine, const std::vector<MeasuredKernel>& kernels) {
  std::vector<Sample> large;
  std::vector<double> small;
  for (const Sample& sample : samples_of(kernels)) {
    if (sample.time > kSmall)
      large.push_back(sample);
    else if (sample.work.launches == 1)
      small.insert(small.end(), static_cast<std::size_t>(sample.count), sample.time.value());
  }
  if (!small.empty()) machine.kernels.launch_floor.value = Seconds(median(std::move(small)));
  constexpr int kMaxRounds = 100;
  for (int round = 0; round < kMaxRounds; ++round) {
    bool changed = false;
    for (const Parameter& parameter : parameters()) changed |= improve(machine, parameter, large);
    if (!changed) break;
  }
  return machine;
}

bool is_in_first_half(const std::string& signature, int seed) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : std::to_string(seed) + signature) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  return (hash >> 32 & 1) != 0;
}

HalfAndHalf::HalfAndHalf(const HardwareProfile& machine, const std::vector<MeasuredKernel>& kernels,
                         int seed_of_split)
    : seed(seed_of_split) {
  std::vector<MeasuredKernel> first, second;
  for (const MeasuredKernel& kernel : kernels)
    (is_in_first_half(kernel.signature, seed) ? first : second).push_back(kernel);
  for_first = fit_kernels(machine, second);
  for_second = fit_kernels(machine, first);
}

}  // namespace spillway::testing
