#include "calibration/fit/gemm_surface.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "model/base/check.h"
#include "model/cost/gemm_time.h"

namespace spillway::calibration {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kHuber = 1.345;
constexpr double kMadOfNormal = 0.6745;
constexpr double kTwoSided95 = 1.96;
constexpr double kWidest = 0.5;  // of a logarithm, one standard error
constexpr double kStep = 1e-5;   // of a logarithm, for derivatives

double bytes_of(std::string_view type) {
  if (type == "f64") return 8;
  if (type == "tf32" || type == "f32") return 4;
  if (type == "f4") return 0.5;
  return type == "f8" || type == "s8" ? 1 : 2;
}
/// Eight- and four-bit products write bf16, integers s32.
double result_bytes_of(std::string_view type) {
  if (type == "f64") return 8;
  return type == "tf32" || type == "f32" || type == "s8" ? 4 : 2;
}

Bytes whole(double bytes) { return Bytes(std::llround(bytes)); }

Work work_of(const GemmSample& sample) {
  const auto m = static_cast<double>(sample.m.value()), n = static_cast<double>(sample.n.value()),
             k = static_cast<double>(sample.k.value()),
             batch = static_cast<double>(sample.batch.value());
  Work work;
  work.kernel = KernelClass::kGemm;
  work.ops.matrix_type = sample.type;
  work.ops.depth = k;
  work.traffic.hbm_read = whole(batch * (m * k + k * n) * bytes_of(sample.type));
  work.traffic.hbm_written = whole(batch * m * n * result_bytes_of(sample.type));
  return work;
}

/// The profile with the parameters put in.
struct Evaluator {
  HardwareProfile machine;
  FlopsPerSecond peak;

  explicit Evaluator(const HardwareProfile& from, const std::string& type) : machine(from) {
    const auto* figure = find_figure(machine.device.matrix_peak, type);
    check(figure != nullptr, "a product of a type without a peak");
    peak = figure->value;
  }
  Seconds time(const GemmSample& sample, const Work& work, const Surface& s) {
    machine.kernels.gemm[sample.type].value = Factor(s[0]);
    const GemmShape shape{Seconds(s[1]), Seconds(s[2]), Factor(s[3]), Factor(s[4]), {}};
    return gemm_time(work, flops_of(sample) / peak, shape, machine).time;
  }
};

class Problem {
 public:
  Problem(const std::vector<const GemmSample*>& samples, const HardwareProfile& machine)
      : samples_(samples), evaluator_(machine, samples.front()->type) {
    for (const GemmSample* sample : samples) works_.push_back(work_of(*sample));
  }

  VectorXd residuals(const Surface& surface) {
    VectorXd r(static_cast<Eigen::Index>(samples_.size()));
    for (std::size_t i = 0; i < samples_.size(); ++i)
      r(static_cast<Eigen::Index>(i)) =
          ratio(evaluator_.time(*samples_[i], works_[i], surface), samples_[i]->time) - 1;
    return r;
  }
  /// By the logarithms of the free parameters.
  MatrixXd jacobian(const Surface& surface, const std::vector<std::size_t>& open) {
    MatrixXd j(static_cast<Eigen::Index>(samples_.size()), static_cast<Eigen::Index>(open.size()));
    for (std::size_t c = 0; c < open.size(); ++c) {
      Surface up = surface, down = surface;
      up[open[c]] *= std::exp(kStep);
      down[open[c]] *= std::exp(-kStep);
      j.col(static_cast<Eigen::Index>(c)) = (residuals(up) - residuals(down)) / (2 * kStep);
    }
    return j;
  }

 private:
  const std::vector<const GemmSample*>& samples_;
  std::vector<Work> works_;
  Evaluator evaluator_;
};

double scale_of(const VectorXd& r) {
  std::vector<double> sizes;
  for (Eigen::Index i = 0; i < r.size(); ++i) sizes.push_back(std::abs(r(i)));
  return std::max(median(std::move(sizes)) / kMadOfNormal, 1e-9);
}
VectorXd huber_weights(const VectorXd& r, double scale) {
  return r.unaryExpr(
      [&](double x) { return std::abs(x) <= kHuber * scale ? 1.0 : kHuber * scale / std::abs(x); });
}
double loss(const VectorXd& r, const VectorXd& weight) { return weight.cwiseProduct(r).dot(r); }

Surface stepped(Surface surface, const std::vector<std::size_t>& open, const VectorXd& step) {
  constexpr double kFarthest = 1.0;  // of a logarithm, in one step
  constexpr double kLeast = 1e-12;   // a duration in seconds or a factor that is as good as nothing
  for (std::size_t c = 0; c < open.size(); ++c)
    surface[open[c]] =
        std::max(kLeast, surface[open[c]] * std::exp(std::clamp(step(static_cast<Eigen::Index>(c)),
                                                                -kFarthest, kFarthest)));
  return surface;
}

/// Levenberg-Marquardt within iteratively reweighted rounds.
Surface descend(Problem& problem, Surface surface, const std::vector<std::size_t>& open) {
  double damping = 1e-3;
  VectorXd r = problem.residuals(surface);
  constexpr int kMostSteps = 200;
  for (int i = 0; i < kMostSteps; ++i) {
    const VectorXd weight = huber_weights(r, scale_of(r));
    const MatrixXd j = problem.jacobian(surface, open);
    const MatrixXd normal = j.transpose() * weight.asDiagonal() * j;
    const VectorXd gradient = j.transpose() * weight.asDiagonal() * r;
    bool better = false;
    VectorXd step;
    while (!better && damping < 1e9) {
      const MatrixXd damped = normal + MatrixXd(normal.diagonal().asDiagonal()) * damping +
                              MatrixXd::Identity(normal.rows(), normal.cols()) * 1e-14;
      step = -damped.ldlt().solve(gradient);
      const Surface next = stepped(surface, open, step);
      const VectorXd next_r = problem.residuals(next);
      better = loss(next_r, weight) <= loss(r, weight);
      if (better) {
        surface = next;
        r = next_r;
        damping = std::max(damping / 10, 1e-12);
      } else {
        damping *= 10;
      }
    }
    if (!better || step.norm() < 1e-9) break;
  }
  return surface;
}

/// Standard errors of the logarithms (the sandwich of a robust estimate); infinite where the
/// samples say nothing.
VectorXd standard_errors(Problem& problem, const Surface& surface,
                         const std::vector<std::size_t>& open) {
  const VectorXd r = problem.residuals(surface);
  const double scale = scale_of(r);
  const VectorXd weight = huber_weights(r, scale);
  const MatrixXd j = problem.jacobian(surface, open);
  const VectorXd inlier =
      r.unaryExpr([&](double x) { return std::abs(x) <= kHuber * scale ? 1.0 : 0.0; });
  const MatrixXd bread = j.transpose() * inlier.asDiagonal() * j;
  const VectorXd score = weight.cwiseProduct(r).cwiseAbs2();
  const MatrixXd meat = j.transpose() * score.asDiagonal() * j;
  const auto n = static_cast<double>(r.size()), p = static_cast<double>(open.size());
  const double few = n > p ? n / (n - p) : 1e6;
  Eigen::FullPivLU<MatrixXd> lu(bread);
  lu.setThreshold(1e-10);
  VectorXd errors = VectorXd::Constant(bread.rows(), 1e9);
  if (!lu.isInvertible()) {
    // Who is to blame is the one with the least influence of its own.
    for (Eigen::Index c = 0; c < errors.size(); ++c) errors(c) = 1e3 / (1e-9 + bread(c, c));
    return errors;
  }
  const MatrixXd inverse = lu.inverse();
  const MatrixXd covariance = inverse * meat * inverse * few;
  return covariance.diagonal().cwiseMax(0).cwiseSqrt();
}

}  // namespace

Seconds surface_time(const GemmSample& sample, const Surface& surface,
                     const HardwareProfile& machine) {
  return Evaluator(machine, sample.type).time(sample, work_of(sample), surface);
}

SurfaceFit fit_surface(const std::vector<const GemmSample*>& samples, const Surface& start,
                       const HardwareProfile& machine, bool factor_alone) {
  Problem problem(samples, machine);
  SurfaceFit fit;
  std::vector<std::size_t> open = {0, 1, 2, 3, 4};
  if (factor_alone) open.resize(1);
  while (true) {
    fit.value = start;
    fit.value = descend(problem, fit.value, open);
    const VectorXd errors = standard_errors(problem, fit.value, open);
    Eigen::Index worst = 0;
    if (!open.empty()) errors.maxCoeff(&worst);
    if (open.empty() || errors(worst) <= kWidest) {
      for (std::size_t c = 0; c < open.size(); ++c) {
        const double e = errors(static_cast<Eigen::Index>(c)) * kTwoSided95;
        fit.determined[open[c]] = true;
        if (samples.size() <= open.size()) continue;
        fit.range[open[c]] =
            Range{fit.value[open[c]] * std::exp(-e), fit.value[open[c]] * std::exp(e)};
      }
      break;
    }
    open.erase(open.begin() + worst);
    if (open.empty()) {
      fit.value = start;
      break;
    }
  }
  const VectorXd r = problem.residuals(fit.value);
  const VectorXd weight = huber_weights(r, scale_of(r));
  fit.residual.assign(r.data(), r.data() + r.size());
  fit.weight.assign(weight.data(), weight.data() + weight.size());
  return fit;
}

}  // namespace spillway::calibration
