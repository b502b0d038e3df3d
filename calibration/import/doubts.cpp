#include "calibration/import/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace spillway::calibration {
namespace {

/// Links reach 0.8 to 0.9 of what their wires carry; below this something is in the way.
constexpr double kPoor = 0.7;
/// GPUs of one host are within some percent; the far socket gives a half to a third.
constexpr double kApart = 0.75;
constexpr Bytes kLarge{std::int64_t{16} << 20};

constexpr CopyDirection kDirections[] = {CopyDirection::kHostToDevice,
                                         CopyDirection::kDeviceToHost};

std::string in_words(CopyDirection direction) {
  return direction == CopyDirection::kHostToDevice ? "host to device" : "device to host";
}

double gigabytes(BytesPerSecond rate) { return rate.value() / 1e9; }

/// Large copies of one direction with nothing else on the link.
bool is_alone(const CopySample& sample, CopyDirection direction) {
  return sample.direction == direction && !sample.both_ways && sample.gpus_at_once == 1 &&
         !sample.rows && (!sample.bytes || *sample.bytes >= kLarge) &&
         (sample.beside == Beside::kNothing || sample.beside == Beside::kUnknownWork);
}

class Doubts {
 public:
  Doubts(Measurements& measurements, const HardwareProfile& base)
      : measurements_(measurements), base_(base) {}

  std::vector<Warning> run() {
    for (const CopyDirection direction : kDirections) {
      find_kernels_only(direction);
      find_poor_rate(direction);
      find_gpus_apart(direction);
    }
    find_both_ways_alone();
    find_zeros();
    return std::move(result_);
  }

 private:
  void warn(std::string code, std::string text, SourceRef where) {
    result_.push_back({std::move(code), std::move(text), std::move(where)});
  }

  /// C19: copy engines and kernels do not reach the same.
  void find_kernels_only(CopyDirection direction) {
    const CopySample* kernel = nullptr;
    for (const CopySample& sample : measurements_.copies) {
      if (sample.direction != direction) continue;
      if (sample.by == CopiedBy::kCopyEngine) return;
      if (kernel == nullptr) kernel = &sample;
    }
    if (kernel != nullptr)
      warn("sm",
           in_words(direction) +
               ": only copies by kernels were measured, XLA copies with "
               "copy engines: run the _ce tests",
           kernel->where);
  }

  /// The best rate of pinned copies by a copy engine; of pageable ones where there are no others.
  const CopySample* best(CopyDirection direction) const {
    const CopySample* found = nullptr;
    for (const CopySample& sample : measurements_.copies) {
      if (!is_alone(sample, direction) || sample.by != CopiedBy::kCopyEngine) continue;
      if (sample.memory == HostMemory::kFar) continue;
      if (found == nullptr || sample.rate > found->rate) found = &sample;
    }
    return found;
  }

  std::pair<BytesPerSecond, std::string> cap() const {
    const LinkCapSample* most = nullptr;
    for (const LinkCapSample& cap : measurements_.link_caps)
      if (most == nullptr || cap.cap > most->cap) most = &cap;
    if (most != nullptr) return {most->cap, most->text};
    return {base_.link.cap_per_direction.value, "of " + base_.id};
  }

  /// C43: what to look for when a link gives less than it should.
  void find_poor_rate(CopyDirection direction) {
    const CopySample* sample = best(direction);
    if (sample == nullptr) return;
    const auto [wires, name] = cap();
    const double share = ratio(sample->rate, wires);
    if (share > 1.02)
      warn("above-link",
           fmt::format("{}: {:.1f} GB/s is more than the {:.1f} GB/s of the link ({}): is --base "
                       "another machine, or were both directions added?",
                       in_words(direction), gigabytes(sample->rate), gigabytes(wires), name),
           sample->where);
    if (share >= kPoor) return;
    warn("poor-rate",
         fmt::format("{}: {:.1f} GB/s are {:.0f} % of the {:.1f} GB/s of the link ({}), where 80 "
                     "to 90 % are usual: pageable memory, lanes below the card's, the far NUMA "
                     "node, or a virtual machine{}",
                     in_words(direction), gigabytes(sample->rate), share * 100, gigabytes(wires),
                     name, sample->pages == HostPages::kPageable ? " (this one is pageable)" : ""),
         sample->where);
  }

  /// C18: half of the GPUs at a third of the rate stand at the other socket.
  void find_gpus_apart(CopyDirection direction) {
    std::map<std::pair<int, int>, BytesPerSecond> rates;  // by GPU and row
    const auto place_of = [](const CopySample& sample) {
      return std::pair(*sample.gpu, sample.numa_node.value_or(-1));
    };
    SourceRef where;
    for (const CopySample& sample : measurements_.copies) {
      if (!is_alone(sample, direction) || sample.by != CopiedBy::kCopyEngine || !sample.gpu)
        continue;
      if (sample.pages == HostPages::kPageable) continue;
      BytesPerSecond& rate = rates[place_of(sample)];
      rate = std::max(rate, sample.rate);
      where = sample.where;
    }
    if (rates.size() < 2) return;
    const auto rate = [](const auto& entry) { return entry.second; };
    const auto low = std::ranges::min_element(rates, {}, rate);
    const auto high = std::ranges::max_element(rates, {}, rate);
    if (ratio(low->second, high->second) >= kApart) return;
    warn("far-numa",
         fmt::format("{}: from {:.1f} GB/s (GPU {}{}) to {:.1f} (GPU {}{}): the slow ones are "
                     "probably bound to memory of the other socket; bind with numactl "
                     "--cpunodebind --membind; until then only the fast ones count",
                     in_words(direction), gigabytes(low->second), low->first.first,
                     row_text(low->first.second), gigabytes(high->second), high->first.first,
                     row_text(high->first.second)),
         where);
    for (CopySample& sample : measurements_.copies) {
      if (sample.direction != direction || !sample.gpu || sample.gpus_at_once != 1) continue;
      const auto own = rates.find(place_of(sample));
      if (own != rates.end() && ratio(own->second, high->second) < kApart)
        sample.memory = HostMemory::kFar;
    }
  }
  static std::string row_text(int row) { return row < 0 ? "" : fmt::format(", node {}", row); }

  /// C09: the counterpart of a test both ways is needed, and never added to.
  void find_both_ways_alone() {
    const CopySample* found[2] = {nullptr, nullptr};
    for (const CopySample& sample : measurements_.copies)
      if (sample.both_ways && sample.gpus_at_once == 1 && sample.by == CopiedBy::kCopyEngine)
        found[sample.direction == CopyDirection::kHostToDevice ? 0 : 1] = &sample;
    if ((found[0] == nullptr) == (found[1] == nullptr)) return;
    const CopySample& one = *(found[0] != nullptr ? found[0] : found[1]);
    warn("one-of-both",
         "both ways at once: only " + in_words(one.direction) +
             " was measured beside the other; each test gives its own direction, no sum",
         one.where);
  }

  void find_zeros() {
    std::size_t zeros = 0;
    for (const GemmSample& gemm : measurements_.gemms)
      zeros += gemm.operands == Operands::kZeros ? 1u : 0u;
    for (const Warning& warning : measurements_.warnings)
      if (warning.code == "zeros") return;
    if (zeros > 0)
      warn("zeros",
           fmt::format("{} matrix products had zeros as operands: they run some 13 % faster than "
                       "with real numbers, and do not count",
                       zeros),
           measurements_.gemms.front().where);
  }

  Measurements& measurements_;
  const HardwareProfile& base_;
  std::vector<Warning> result_;
};

}  // namespace

std::vector<Warning> find_doubts(Measurements& measurements, const HardwareProfile& base) {
  return Doubts(measurements, base).run();
}

}  // namespace spillway::calibration
