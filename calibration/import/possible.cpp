#include "calibration/import/possible.h"

#include <fmt/format.h>

#include "model/base/utf8.h"

namespace spillway::calibration {
namespace {

// Far beyond what there is, and within what profiles can hold.
constexpr double kSlowest = 1e3, kFastest = 1e15;     // B/s
constexpr double kShortest = 1e-10, kLongest = 3600;  // s
constexpr double kLeastSlowdown = 1e-3, kMostSlowdown = 1e6;

/// False for what is no number, too.
bool between(double value, double least, double most) { return value >= least && value <= most; }
bool is_rate(BytesPerSecond rate) { return between(rate.value(), kSlowest, kFastest); }
bool is_rate(Bytes bytes, Seconds time) {
  return is_rate(BytesPerSecond(static_cast<double>(bytes.value()) / time.value()));
}
bool is_time(Seconds time) { return between(time.value(), kShortest, kLongest); }
bool is_slowdown(Factor factor) { return between(factor.value(), kLeastSlowdown, kMostSlowdown); }

bool is_possible(const CopySample& sample) { return is_rate(sample.rate); }
bool is_possible(const GemmSample& sample) { return is_time(sample.time); }
bool is_possible(const TrafficSample& sample) {
  return is_time(sample.time) && is_rate(sample.traffic, sample.time);
}
bool is_possible(const LaunchSample& sample) { return is_time(sample.time); }
bool is_possible(const InterferenceSample& sample) {
  return is_slowdown(sample.kernel_slowdown) && is_slowdown(sample.copy_slowdown);
}
bool is_possible(const CollectiveSample& sample) {
  return is_time(sample.time) && is_rate(sample.bytes, sample.time);
}
bool is_possible(const LinkCapSample& sample) { return is_rate(sample.cap); }

class Sieve {
 public:
  Sieve(Measurements& measurements, const std::string& path)
      : measurements_(measurements), path_(path) {}

  template <typename Sample>
  void sift(std::vector<Sample>& samples, const char* what) {
    const std::size_t gone =
        std::erase_if(samples, [](const Sample& sample) { return !is_possible(sample); });
    left_ += samples.size();
    gone_ += gone;
    if (gone > 0)
      measurements_.skipped.push_back({fmt::format("{} {}", gone, what),
                                       "faster or slower than anything is: no measurement",
                                       {path_, {}, {}}});
  }
  bool nothing_left() const { return gone_ > 0 && left_ == 0; }

 private:
  Measurements& measurements_;
  const std::string& path_;
  std::size_t gone_ = 0, left_ = 0;
};

void make_printable(Measurements& measurements) {
  MachineFacts& machine = measurements.machine;
  for (std::string* text : {&machine.device, &machine.compute_capability, &machine.driver,
                            &machine.cuda, &machine.date})
    *text = printable_line(*text);
  for (SourceSummary& source : measurements.sources) {
    source.format = printable_line(source.format);
    source.read = printable_line(source.read);
  }
  for (LinkCapSample& cap : measurements.link_caps) cap.text = printable_line(cap.text);
}

}  // namespace

Result<Measurements> only_possible(Measurements measurements, const std::string& path) {
  Sieve sieve(measurements, path);
  sieve.sift(measurements.copies, "copies");
  sieve.sift(measurements.gemms, "matrix products");
  sieve.sift(measurements.traffic, "memory-bound kernels");
  sieve.sift(measurements.launches, "launches");
  sieve.sift(measurements.interference, "pairs of kernels and copies");
  sieve.sift(measurements.collectives, "collectives");
  sieve.sift(measurements.link_caps, "rates of links");
  if (sieve.nothing_left())
    return error_in_file(path, "all its figures are faster or slower than anything is",
                         "give the file as the tool wrote it");
  make_printable(measurements);
  return measurements;
}

}  // namespace spillway::calibration
