// The planner against every policy there is: each program with no more than 3^9 of them, in three
// budgets. Takes minutes a program, and so is run by hand or by `ctest -C slow -L slow`.
//
//   build/dev/tests/plan_brute_force [--hw PROFILE] [--most POLICIES] DUMP…
//
// A line a budget: what the plan found, what there is, and whether the plan was proven. Ends with 1
// where a plan misses the optimum, or calls one proven that is none.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "model/base/format.h"
#include "model/base/parallel.h"
#include "model/hardware/find_profile.h"
#include "model/hlo/read_program.h"
#include "sim/planner/planner.h"
#include "sim/report/case_text.h"
#include "tests/support/all_policies.h"

namespace spillway {
namespace {

struct Options {
  std::string hardware = "gb200";
  std::size_t most = 19683;  ///< 3^9
  std::vector<std::string> dumps;
};

template <typename T>
T value_or_exit(Result<T> result) {
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", to_text(result.error()));
    std::exit(3);
  }
  return std::move(result).value();
}

/// The fastest that fits a pool; null where none does. XLA's order does not follow the pool here,
/// since nobody states one.
const PolicyCase* fastest(const std::vector<PolicyCase>& cases, Bytes pool, Bytes host) {
  const PolicyCase* best = nullptr;
  for (const PolicyCase& c : cases)
    if (c.peak_device <= pool && c.host <= host && (best == nullptr || c.step < best->step))
      best = &c;
  return best;
}

/// What the least, a third and two thirds of all policies need.
std::vector<Bytes> pools_of(const std::vector<PolicyCase>& cases) {
  std::set<Bytes> distinct;
  for (const PolicyCase& c : cases) distinct.insert(c.peak_device);
  const std::vector<Bytes> peaks(distinct.begin(), distinct.end());
  std::set<Bytes> pools = {peaks.front(), peaks[peaks.size() / 3], peaks[2 * peaks.size() / 3]};
  return {pools.begin(), pools.end()};
}

/// Whether the plans of all budgets are the best there are.
bool compare(const std::string& dump, const Options& options, const ProfileSearchPath& profiles) {
  const Program program = value_or_exit(read_program(dump));
  const std::string sidecar = dump + "/names.json";
  const NameList names =
      std::filesystem::exists(sidecar) ? value_or_exit(read_names(sidecar)) : NameList();
  const HardwareProfile profile = value_or_exit(find_profile(options.hardware, profiles));
  const Topology topology = make_topology(program.device_count(), profile);
  const Schedule schedule = value_or_exit(text_schedule(program));
  Budget budget = value_or_exit(make_budget(profile, topology, {}));
  const Evaluator evaluator(program, schedule, profile, topology, names, budget);
  const double count = count_policies(evaluator.handles());
  if (count < 2 || count > static_cast<double>(options.most)) {
    fmt::print("{}: {:.3g} policies, left out\n", dump, count);
    return true;
  }
  CaseBook book(evaluator, evaluator.default_order(), useful_threads());
  if (const auto wrong = book.simulate(testing::all_policies(evaluator.handles())))
    value_or_exit(Result<int>(*wrong));
  const std::vector<PolicyCase> cases = book.allowed();
  bool all_found = true;
  for (const Bytes pool : pools_of(cases)) {
    budget.pool = pool;
    const Evaluator limited(program, schedule, profile, topology, names, budget);
    const PlanResult plan = value_or_exit(make_plan(limited, {.threads = useful_threads()}));
    const PolicyCase* const best = fastest(cases, pool, budget.host);
    const bool found = best == nullptr ? !plan.fits : plan.fits && plan.best.step == best->step;
    all_found &= found;
    fmt::print("{}: {:.0f} policies, {}: {} of {}, {}{}\n", dump, count, format_bytes(pool),
               plan.fits ? format_seconds(plan.best.step) : "none",
               best == nullptr ? "none" : format_seconds(best->step),
               plan.proven ? fmt::format("proven by {} simulated", plan.simulated)
                           : fmt::format("gap {:.1f} %", 100 * plan.gap),
               found             ? ""
               : best == nullptr ? ", WRONG"
                                 : fmt::format(", MISSED by {:.2f} %",
                                               100 * (ratio(plan.best.step, best->step) - 1)));
    if (!found && best != nullptr)
      fmt::print("  best {}\n  plan {}\n", policy_text(evaluator.handles(), best->policy),
                 policy_text(evaluator.handles(), plan.best.policy));
    std::fflush(stdout);
  }
  return all_found;
}

int run(int count, char** arguments) {
  Options options;
  for (int k = 1; k < count; ++k) {
    const std::string argument = arguments[k];
    if (argument == "--hw" && k + 1 < count)
      options.hardware = arguments[++k];
    else if (argument == "--most" && k + 1 < count)
      options.most = std::strtoull(arguments[++k], nullptr, 10);
    else
      options.dumps.push_back(argument);
  }
  ProfileSearchPath profiles;
  profiles.folders.push_back(std::string(SPILLWAY_SOURCE_DIR) + "/hw_profiles");
  bool all_found = true;
  for (const std::string& dump : options.dumps) all_found &= compare(dump, options, profiles);
  return all_found ? 0 : 1;
}

}  // namespace
}  // namespace spillway

int main(int count, char** arguments) { return spillway::run(count, arguments); }
