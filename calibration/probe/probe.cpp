#include "calibration/probe/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "calibration/probe/describe.h"

namespace spillway::probe {
namespace {

constexpr double kTimed = 4e-3;   // seconds that a trial of many operations is to last
constexpr int kMostQueued = 256;  // operations: queues hold some thousand, and must not fill
constexpr double kCover = 3;      // times the measured load: both slow each other
constexpr double kLastingSeconds = 0.5;
constexpr std::int64_t kSpinCycles = 20000;  // some 10 us: longer than a launch

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

Load with_repeats(Load load, int repeats) {
  if (auto* copy = std::get_if<CopyLoad>(&load)) copy->copies = repeats;
  if (auto* kernel = std::get_if<KernelLoad>(&load)) kernel->launches = repeats;
  return load;
}
int gpu_of(const Load& load) {
  return std::visit([](const auto& some) { return some.gpu; }, load);
}

/// A trial that could not be run ends its point.
struct Failed {
  std::string why;
};

/// Runs trials; throws Failed.
class Runner {
 public:
  explicit Runner(Device& device) : device_(device) {}

  Device& device() { return device_; }

  TrialResult run(const Trial& trial) {
    TrialResult result = device_.run(trial);
    if (!result.failure.empty()) throw Failed{result.failure};
    return result;
  }
  /// Of one operation, from a few.
  double estimate(const Load& load, bool host_waits = false) {
    const int repeats = host_waits ? 1 : 3;
    run({{with_repeats(load, repeats)}, host_waits});  // the first touches memory and loads code
    return run({{with_repeats(load, repeats)}, host_waits}).seconds.front() / repeats;
  }
  /// As many as last `seconds`, with room in the queue.
  static int repeats_for(double one, double seconds) {
    return static_cast<int>(std::clamp(std::ceil(seconds / std::max(one, 1e-9)), 1.0,
                                       static_cast<double>(kMostQueued)));
  }

 private:
  Device& device_;
};

/// One point on its way to being stable.
class PointRun {
 public:
  PointRun(Point point, const ProbeOptions& options) : options_(options) {
    measured_.point = std::move(point);
    measured_.verified = "not looked at";
  }

  bool failed() const { return failure_.has_value(); }
  bool done() const {
    if (failed()) return true;
    const std::size_t n = measured_.main.seconds.size();
    return measured_.stable || n >= static_cast<std::size_t>(options_.most_samples) ||
           measured_.slow_clock >= options_.most_samples;
  }
  Measured& measured() { return measured_; }
  const std::string& why() const { return *failure_; }

  /// A few samples more.
  void round(Runner& runner) {
    try {
      if (!ready_) prepare(runner);
      ready_ = true;
      if (measured_.point.lasting) load_for_long(runner);
      for (int i = 0; i < options_.samples_a_round; ++i) sample(runner);
    } catch (const Failed& failed) {
      // Half a second of a machine that hiccups must not cost what was measured before.
      if (measured_.main.seconds.empty()) failure_ = failed.why;
      measured_.stable = false;
      ++trouble_;
      if (trouble_ > 2 && !failure_) failure_ = failed.why;
      return;
    }
    const std::size_t n = measured_.main.seconds.size();
    measured_.stable = n >= static_cast<std::size_t>(options_.least_samples) &&
                       relative_error(measured_.main.seconds) <= bound();
    measured_.sm_hertz = median_of(clocks_);
  }

 private:
  /// Launches are differences of longer times.
  double bound() const {
    return options_.stable * (measured_.point.kind == PointKind::kLaunch ? 4 : 1);
  }

  /// How often to repeat, and whether data arrives.
  void prepare(Runner& runner) {
    const Point& point = measured_.point;
    if (point.kind == PointKind::kLaunch) return;
    one_ = runner.estimate(point.measured, point.host_waits);
    if (point.host_waits) return;
    measured_.main.repeats = Runner::repeats_for(one_, kTimed);
    if (const auto* copy = std::get_if<CopyLoad>(&point.measured)) {
      measured_.verified = runner.device().verify(*copy);
      if (measured_.verified.empty()) measured_.verified = "yes";
    }
    for (const CopyLoad& copy : point.beside) beside_.push_back(runner.estimate(copy));
  }

  /// The measured load and what covers it; fewer repeats where the cover's queue is too short.
  Trial covered(const Load& load, double one, Samples& samples, const std::vector<Load>& covers,
                const std::vector<double>& each) const {
    for (const double cover : each) {
      const double most = cover * kMostQueued / kCover / one;
      samples.repeats = std::max(1, std::min(samples.repeats, static_cast<int>(most)));
    }
    Trial trial{{with_repeats(load, samples.repeats)}, false};
    for (std::size_t i = 0; i < covers.size(); ++i)
      trial.loads.push_back(
          with_repeats(covers[i], Runner::repeats_for(each[i], kCover * one * samples.repeats)));
    return trial;
  }
  static double per_operation(const TrialResult& result, const Samples& samples) {
    return result.seconds.front() / samples.repeats;
  }

  void sample(Runner& runner) {
    const Point& point = measured_.point;
    switch (point.kind) {
      case PointKind::kLaunch:
        return keep_unless_slow(runner, [&] { sample_launch(runner); });
      case PointKind::kInterference:
        return keep_unless_slow(runner, [&] { sample_interference(runner); });
      default:
        return keep_unless_slow(runner, [&] { sample_plain(runner); });
    }
  }

  /// Drops what was taken while the device ran slowly.
  template <typename Take>
  void keep_unless_slow(Runner& runner, Take take) {
    const Measured before = measured_;
    take();
    const GpuState state = runner.device().state(gpu_of(measured_.point.measured));
    const bool slow =
        state.throttled || (state.sm_hertz > 0 &&
                            state.sm_hertz < options_.slowest_clock * state.most_hertz && busy());
    if (slow) {
      const int count = measured_.slow_clock + 1;
      measured_ = before;
      measured_.slow_clock = count;
      return;
    }
    if (state.sm_hertz > 0) clocks_.push_back(state.sm_hertz);
    measured_.pcie_generation = std::max(measured_.pcie_generation, state.pcie_generation);
    measured_.pcie_width = std::max(measured_.pcie_width, state.pcie_width);
  }
  /// Copies leave the multiprocessors idle, whose clock may then fall.
  bool busy() const { return std::holds_alternative<KernelLoad>(measured_.point.measured); }

  /// Until power and clocks are those of lasting load.
  void load_for_long(Runner& runner) const {
    const Load load = with_repeats(measured_.point.measured, Runner::repeats_for(one_, 0.05));
    for (double spent = 0; spent < kLastingSeconds;)
      spent += std::max(runner.run({{load}, false}).seconds.front(), 1e-3);
  }

  void sample_plain(Runner& runner) {
    const Point& point = measured_.point;
    if (point.host_waits) {
      measured_.main.seconds.push_back(runner.run({{point.measured}, true}).seconds.front());
      return;
    }
    const std::vector<Load> covers(point.beside.begin(), point.beside.end());
    const Trial trial = covered(point.measured, one_, measured_.main, covers, beside_);
    measured_.main.seconds.push_back(per_operation(runner.run(trial), measured_.main));
  }

  /// T(cycles) = overhead + cycles / clock: two lengths give the overhead between kernels that are
  /// not short, and empty ones the rest of what the shortest cost.
  void sample_launch(Runner& runner) {
    KernelLoad load = std::get<KernelLoad>(measured_.point.measured);
    constexpr int kLaunches = 200;
    const auto one = [&](std::int64_t cycles) {
      load.cycles = cycles;
      load.launches = kLaunches;
      return runner.run({{load}, false});
    };
    const double single = one(kSpinCycles).seconds.front() / kLaunches;
    const double twice = one(2 * kSpinCycles).seconds.front() / kLaunches;
    const TrialResult empty = one(0);
    const double gap = std::max(2 * single - twice, 0.0);
    measured_.gap.seconds.push_back(gap);
    measured_.main.seconds.push_back(std::max(empty.seconds.front() / kLaunches - gap, 0.0));
    measured_.enqueue.seconds.push_back(empty.enqueue_seconds / kLaunches);
    measured_.main.repeats = measured_.gap.repeats = measured_.enqueue.repeats = kLaunches;
  }

  /// The kernel without the copies, the first copy without the kernel, the kernel covered by the
  /// copies, the copy covered by the kernel and the other copies.
  void sample_interference(Runner& runner) {
    Measured& m = measured_;
    const std::vector<Load> copies(m.point.beside.begin(), m.point.beside.end());
    m.kernel_alone.repeats = m.main.repeats;
    m.kernel_alone.seconds.push_back(
        per_operation(runner.run({{with_repeats(m.point.measured, m.kernel_alone.repeats)}, false}),
                      m.kernel_alone));
    m.copy_alone.repeats = Runner::repeats_for(beside_.front(), kTimed);
    const std::vector<Load> others(copies.begin() + 1, copies.end());
    const std::vector<double> each_other(beside_.begin() + 1, beside_.end());
    m.copy_alone.seconds.push_back(per_operation(
        runner.run(covered(copies.front(), beside_.front(), m.copy_alone, others, each_other)),
        m.copy_alone));
    m.main.seconds.push_back(per_operation(
        runner.run(covered(m.point.measured, one_, m.main, copies, beside_)), m.main));
    std::vector<Load> covers = others;
    std::vector<double> each = each_other;
    covers.push_back(m.point.measured);
    each.push_back(one_);
    m.copy_beside.repeats = m.copy_alone.repeats;
    m.copy_beside.seconds.push_back(per_operation(
        runner.run(covered(copies.front(), beside_.front(), m.copy_beside, covers, each)),
        m.copy_beside));
  }

  const ProbeOptions& options_;
  Measured measured_;
  bool ready_ = false;
  int trouble_ = 0;
  std::optional<std::string> failure_;
  double one_ = 0;              // seconds of one operation, alone
  std::vector<double> beside_;  // likewise, of what covers it
  std::vector<double> clocks_;
};

/// std::shuffle differs from library to library.
template <typename T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

}  // namespace

double relative_error(std::vector<double> seconds) {
  const std::size_t n = seconds.size();
  if (n < 4) return std::numeric_limits<double>::infinity();
  std::sort(seconds.begin(), seconds.end());
  // Of normal samples: sigma = quartile distance / 1.349, error of the median 1.2533 sigma / sqrt
  // n.
  const double quartiles = seconds[(3 * n) / 4] - seconds[n / 4];
  const double middle = median_of(seconds);
  return middle <= 0 ? 0 : 1.2533 * quartiles / 1.349 / std::sqrt(double(n)) / middle;
}

ProbeRun run_plan(Device& device, MeasurementPlan plan, const ProbeOptions& options,
                  const std::function<void(const std::string&)>& progress) {
  const double start = device.now();
  ProbeRun run;
  run.machine = device.machine();
  run.options = options;
  run.not_planned = std::move(plan.not_planned);
  Runner runner(device);
  std::vector<PointRun> points;
  for (Point& point : plan.points) points.emplace_back(std::move(point), options);
  std::vector<std::size_t> order(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937_64 random(options.seed);
  const auto time_is_up = [&] { return device.now() - start > options.seconds; };
  bool more = true;
  for (int round = 1; more && !time_is_up(); ++round) {
    shuffle(order, random);
    more = false;
    std::size_t done = 0;
    for (const std::size_t i : order) {
      // Every point gets its first round, however long the others take.
      if (points[i].done() || (round > 1 && time_is_up())) continue;
      points[i].round(runner);
      more = more || !points[i].done();
      if (progress && ++done % 20 == 0)
        progress("round " + std::to_string(round) + ": " + describe(points[i].measured().point));
    }
  }
  for (PointRun& point : points) {
    if (point.failed())
      run.failed.push_back({point.measured().point, point.why()});
    else
      run.measured.push_back(std::move(point.measured()));
  }
  run.seconds = device.now() - start;
  return run;
}

}  // namespace spillway::probe
