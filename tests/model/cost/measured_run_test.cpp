// Bytes and times of one training step against what it took on A100: ops.csv of
// measured/pax_fsdp4_a100. Runs only where that folder lies beside the repository.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "model/cost/roofline.h"
#include "tests/support/a100_run.h"
#include "tests/support/kernel_fit.h"

namespace spillway {
namespace {

using testing::A100Run;
using testing::MeasuredKernel;
using testing::MeasuredOp;
using testing::median;

constexpr Seconds kShort(10e-6);
constexpr Seconds kLong(100e-6);

struct Score {
  std::vector<double> errors, long_errors;  ///< relative, absolute; above 10 us, above 100 us
  double measured = 0, predicted = 0;       ///< of all

  void add(Seconds time, Seconds prediction) {
    measured += time.value();
    predicted += prediction.value();
    const double error = std::abs(ratio(prediction, time) - 1);
    if (time > kShort) errors.push_back(error);
    if (time > kLong) long_errors.push_back(error);
  }
  double bias() const { return predicted / measured - 1; }
  double mean() const {
    double sum = 0;
    for (const double error : errors) sum += error;
    return sum / static_cast<double>(std::max<std::size_t>(errors.size(), 1));
  }
};

std::string percent(double share) { return std::to_string(100 * share).substr(0, 5) + " %"; }

void print(const std::string& name, const Score& score) {
  MESSAGE(name << ": " << score.errors.size() << " above 10 us, mean error "
               << percent(score.mean()) << ", median " << percent(median(score.errors)) << "; "
               << score.long_errors.size() << " above 100 us, median "
               << percent(median(score.long_errors)) << "; " << score.measured * 1e3 << " ms, bias "
               << percent(score.bias()));
}

Score score(const std::vector<MeasuredKernel>& kernels, const HardwareProfile& machine) {
  Score result;
  for (const MeasuredKernel& kernel : kernels)
    if (kernel.time > kShort) result.add(kernel.time, roofline(kernel.work, machine).time);
  return result;
}

void print_figures(const std::string& name, const HardwareProfile& machine) {
  const KernelCosts& k = machine.kernels;
  MESSAGE(name << ": floor " << k.launch_floor.value.value() * 1e6 << " us, stream "
               << k.elementwise.value.value() << ", column " << k.column_reduce.value.value()
               << ", transpose " << k.transpose.value.value() << ", vector "
               << k.vector.value.value());
}

/// Operations that are no collectives: how many, and of how many our bytes are the reference's.
std::pair<int, int> count_equal_bytes(const A100Run& run) {
  const auto by_name = testing::executed_by_name(run.program);
  int operations = 0, equal = 0;
  for (const MeasuredOp& op : run.ops) {
    const auto found = by_name.find(op.name);
    if (op.collective || found == by_name.end()) continue;
    const Work work = work_of(run.program, found->second);
    if (work.kernel == KernelClass::kFree) continue;
    ++operations;
    const Bytes bytes = work.traffic.hbm_read + work.traffic.hbm_written;
    equal += std::to_string(bytes.value()) == op.bytes ? 1 : 0;
  }
  return {operations, equal};
}

TEST_CASE("bytes of a measured step, and its times by a bare roofline") {
  const auto run = testing::read_a100_run();
  if (!run) return;
  CHECK(count_equal_bytes(*run) == std::pair(2490, 2490));

  HardwareProfile bare = testing::a100_of_40_gb();
  KernelCosts& kernels = bare.kernels;
  kernels.launch_floor.value = Seconds(1.9e-6);  // what the reference adds to every kernel
  kernels.gemm_overhead.value = Seconds(1.9e-6);
  for (auto& [type, factor] : kernels.gemm) factor.value = Factor(1);
  kernels.gemm_shape.clear();
  for (Figure<Factor>* factor : {&kernels.elementwise, &kernels.row_reduce, &kernels.column_reduce,
                                 &kernels.transpose, &kernels.copy, &kernels.vector})
    factor->value = Factor(1);
  const Score roof = score(testing::kernels_of(*run), bare);
  print("data sheet", roof);
  // facts/measured.md section 3: bias -24.2 %, median 24.0 % for the same roofline
  CHECK(roof.bias() == doctest::Approx(-0.24).epsilon(0.05));
  CHECK(median(roof.errors) == doctest::Approx(0.24).epsilon(0.05));
}

TEST_CASE("times of kernels whose signatures were not fitted") {
  const auto run = testing::read_a100_run();
  if (!run) return;
  const std::vector<MeasuredKernel> kernels = testing::kernels_of(*run);
  const HardwareProfile profile = testing::a100_of_40_gb();
  print("a100.yaml", score(kernels, profile));
  const HardwareProfile fitted = testing::fit_kernels(profile, kernels);
  print_figures("fitted on all", fitted);
  print("fitted on all", score(kernels, fitted));

  constexpr int kSeeds = 10;
  double mean = 0, long_median = 0, worst_bias = 0;
  std::map<std::string_view, Score> by_class;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const testing::HalfAndHalf fit(profile, kernels, seed);
    Score total;
    for (const MeasuredKernel& kernel : kernels) {
      if (kernel.time <= kShort) continue;
      const Seconds predicted = roofline(kernel.work, fit.unseen(kernel.signature)).time;
      total.add(kernel.time, predicted);
      by_class[name_of(kernel.work.kernel)].add(kernel.time, predicted);
    }
    print_figures("seed " + std::to_string(seed), fit.for_first);
    print("seed " + std::to_string(seed), total);
    mean += total.mean() / kSeeds;
    long_median += median(total.long_errors) / kSeeds;
    worst_bias = std::max(worst_bias, std::abs(total.bias()));
  }
  for (const auto& [name, of_class] : by_class) print(std::string(name), of_class);
  MESSAGE("over seeds: mean error " << percent(mean) << ", above 100 us median "
                                    << percent(long_median) << ", worst bias "
                                    << percent(worst_bias));
  CHECK(mean < 0.22);
  CHECK(long_median < 0.05);
  CHECK(worst_bias < 0.08);
}

}  // namespace
}  // namespace spillway
