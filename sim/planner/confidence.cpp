#include "sim/planner/confidence.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/parallel.h"

namespace spillway {
namespace {

struct Node {
  double deviations, weight;
};
/// Gauss-Hermite, for a standard normal: exact for polynomials up to degree nine.
constexpr Node kNodes[] = {{-2.856970013872806, 0.011257411327720691},
                           {-1.355626179974266, 0.22207592200561265},
                           {0, 0.5333333333333333},
                           {1.355626179974266, 0.22207592200561265},
                           {2.856970013872806, 0.011257411327720691}};

/// The share of a standard normal below `deviations`.
double normal_below(double deviations) { return 0.5 * std::erfc(-deviations / std::sqrt(2.0)); }

struct Point {
  double weight = 0;
  Seconds plan, rival;
};

/// Of a mixture of normals around the points.
Seconds quantile(const std::vector<Point>& points, double spread, double share) {
  double low = 0, high = 0;
  for (const Point& point : points) high = std::max(high, point.plan.value() * (1 + 10 * spread));
  for (int k = 0; k < 60; ++k) {
    const double middle = (low + high) / 2;
    double below = 0;
    for (const Point& point : points)
      below += point.weight *
               normal_below((middle - point.plan.value()) / (spread * point.plan.value()));
    (below < share ? low : high) = middle;
  }
  return Seconds((low + high) / 2);
}

}  // namespace

Doubts default_doubts(const HardwareProfile& profile) {
  Doubts doubts;
  const OriginKind kind = profile.link.host_to_device.origin.kind;
  doubts.link = kind == OriginKind::kMeasured ? 0.03 : 0.1;
  doubts.link_because = std::string(name_of(kind));
  return doubts;
}

Result<Confidence> find_confidence(const Evaluator& evaluator, const PlanResult& plan,
                                   const Doubts& doubts, std::size_t threads) {
  Confidence result;
  result.doubts = doubts;
  const PolicyCase& best = plan.best;
  std::optional<PolicyCase> rival;
  if (const auto policy = without_host(plan.handles, best.policy, Choice::kRecompute)) {
    CaseBook cases(evaluator, plan.order, threads);
    if (auto wrong = cases.simulate({*policy})) return *wrong;
    // What does not fit is no alternative.
    if (const PolicyCase& other = cases.at(*policy); other.fit.fits) rival = other;
    result.rival_recomputes = std::ranges::find(*policy, Choice::kRecompute) != policy->end();
  }
  if (!rival && !plan.alternatives.empty() && plan.alternatives.front().fit.fits) {
    rival = plan.alternatives.front();
    result.rival_recomputes = false;
  }
  if (rival) {
    result.rival = rival->policy;
    result.rival_step = rival->step;
  }
  const auto step = make_planned_step(evaluator, plan, best);
  if (!step.ok()) return step.error();
  const auto other = rival ? make_planned_step(evaluator, plan, *rival) : step;
  if (!other.ok()) return other.error();
  constexpr std::size_t kCount = std::size(kNodes);
  std::vector<Point> points(kCount * kCount);
  std::vector<std::optional<Error>> errors(points.size());
  for_each_piece(points.size(), threads, [&](std::size_t k) {
    const Node &kernels = kNodes[k / kCount], &link = kNodes[k % kCount];
    // Slower by so much; exp keeps rates above nothing, however large the doubt.
    const double slower = std::exp(kernels.deviations * doubts.kernels);
    HardwareProfile profile =
        with_link(evaluator.profile(), std::exp(link.deviations * doubts.link));
    profile = with_hbm(with_compute(std::move(profile), 1 / slower), 1 / slower);
    const OtherMachine machine(evaluator, std::move(profile));
    points[k].weight = kernels.weight * link.weight;
    const auto run = machine.run(*step);
    if (!run.ok()) {
      errors[k] = run.error();
      return;
    }
    points[k].plan = run->step;
    if (!rival) return;
    const auto run_rival = machine.run(*other);
    if (!run_rival.ok())
      errors[k] = run_rival.error();
    else
      points[k].rival = run_rival->step;
  });
  for (const auto& error : errors)
    if (error) return *error;
  result.simulated = points.size() * (rival ? 2 : 1);
  const bool is_compiled = best.policy == compiled_policy(plan.handles);
  const double rewrite = is_compiled ? 0 : doubts.rewrite;
  const double spread = std::max(1e-6, std::hypot(rewrite, doubts.jitter));
  result.low = quantile(points, spread, 0.1);
  result.middle = quantile(points, spread, 0.5);
  result.high = quantile(points, spread, 0.9);
  if (rival) {
    // Means over many steps: jitter is gone, each policy's own error stays.
    const bool rival_compiled = rival->policy == compiled_policy(plan.handles);
    for (const Point& point : points) {
      const double between =
          std::max(1e-9, std::hypot(rewrite * point.plan.value(),
                                    (rival_compiled ? 0 : doubts.rewrite) * point.rival.value()));
      result.loses += point.weight * normal_below((point.plan - point.rival).value() / between);
    }
  }
  const double room =
      static_cast<double>(evaluator.budget().pool.value()) * (1 - doubts.fragmentation) -
      static_cast<double>(best.peak_device.value());
  const double peak_spread = std::max(
      1.0, (is_compiled ? 0 : doubts.memory) * static_cast<double>(best.peak_device.value()));
  result.out_of_memory = normal_below(-room / peak_spread);
  return result;
}

}  // namespace spillway
