#include "sim/capacity/answers.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace spillway {
namespace {

/// Groups of cells, by what `key` says of them, in the order of their first cells.
template <typename KeyOf>
std::vector<std::vector<std::size_t>> group_cells(const CapacityReport& report,
                                                  const KeyOf& key_of) {
  std::map<decltype(key_of(CapacityKey())), std::size_t> places;
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t c = 0; c < report.cells.size(); ++c) {
    const auto [place, is_new] = places.try_emplace(key_of(report.cells[c].key), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(c);
  }
  return groups;
}

/// How far a cell is from fitting.
Bytes missing(const CapacityCell& cell) {
  const Bytes none(0);
  return std::max(none - cell.hbm_headroom(), none) + std::max(none - cell.host_headroom(), none);
}

CapacityNeed need_of(const CapacityReport& report, const std::vector<std::size_t>& group) {
  CapacityNeed need;
  need.any = group.front();
  const auto faster = [&](std::size_t a, std::size_t b) {
    return report.cells[a].tokens_per_second > report.cells[b].tokens_per_second;
  };
  const auto devices = [&](std::size_t c) { return report.cells[c].key.devices; };
  for (const std::size_t c : group) {
    const CapacityCell& cell = report.cells[c];
    if (!cell.is_possible()) continue;
    if (!cell.fits) {
      if (!need.nearest || missing(cell) < missing(report.cells[*need.nearest])) need.nearest = c;
      continue;
    }
    const auto better = [&](const std::optional<std::size_t>& than, bool fewer) {
      if (!than) return true;
      if (devices(c) == devices(*than)) return faster(c, *than);
      return (devices(c) < devices(*than)) == fewer;
    };
    if (better(need.fewest, true)) need.fewest = c;
    if (better(need.most, false)) need.most = c;
  }
  if (need.fewest) need.nearest.reset();
  return need;
}

std::optional<BatchGain> gain_of(const CapacityReport& report,
                                 const std::vector<std::size_t>& group) {
  std::vector<std::size_t> possible;
  for (const std::size_t c : group)
    if (report.cells[c].is_possible()) possible.push_back(c);
  std::ranges::stable_sort(possible, {}, [&](std::size_t c) { return report.cells[c].key.batch; });
  const auto fits = [&](std::size_t c) { return report.cells[c].fits; };
  const auto smallest = std::ranges::find_if(possible, fits);
  if (possible.size() < 2 || smallest == possible.end()) return std::nullopt;
  BatchGain gain{*smallest, *smallest, {}};
  for (auto c = smallest; c != possible.end(); ++c) {
    if (!fits(*c)) {
      if (!gain.too_large) gain.too_large = *c;
    } else if (report.cells[*c].tokens_per_second > report.cells[gain.best].tokens_per_second) {
      gain.best = *c;
    }
  }
  return gain;
}

using Size = std::tuple<std::int64_t, double, std::int64_t>;
Size size_of(const CapacityKey& key) { return {key.devices, key.batch, key.sequence}; }

MachineComparison compare(const CapacityReport& report, const std::vector<std::size_t>& group,
                          const std::vector<std::size_t>& of_first) {
  MachineComparison result;
  result.cell = group.front();
  result.first = of_first.front();
  std::map<Size, std::size_t> first;
  for (const std::size_t c : of_first) first[size_of(report.cells[c].key)] = c;
  std::vector<double> ratios;
  for (const std::size_t c : group) {
    const CapacityCell& cell = report.cells[c];
    const auto found = first.find(size_of(cell.key));
    if (found == first.end()) continue;
    const CapacityCell& other = report.cells[found->second];
    if (!cell.is_possible() || !other.is_possible()) continue;
    ++result.cells;
    result.fit += cell.fits;
    result.fit_on_first += other.fits;
    result.on_host += cell.fits && cell.step.host > Bytes(0);
    result.on_host_on_first += other.fits && other.step.host > Bytes(0);
    if (cell.fits && other.fits) ratios.push_back(cell.tokens_per_second / other.tokens_per_second);
  }
  result.both_fit = ratios.size();
  if (ratios.empty()) return result;
  std::ranges::sort(ratios);
  result.least = ratios.front();
  result.most = ratios.back();
  result.median = (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2;
  return result;
}

}  // namespace

std::vector<CapacityNeed> find_needs(const CapacityReport& report) {
  std::vector<CapacityNeed> needs;
  for (const auto& group : group_cells(report, [](const CapacityKey& key) {
         return std::tuple(key.model, key.machine, key.sequence);
       }))
    needs.push_back(need_of(report, group));
  return needs;
}

std::vector<BatchGain> find_batch_gains(const CapacityReport& report) {
  std::vector<BatchGain> gains;
  for (const auto& group : group_cells(report, [](const CapacityKey& key) {
         return std::tuple(key.model, key.machine, key.devices, key.sequence);
       }))
    if (const auto gain = gain_of(report, group)) gains.push_back(*gain);
  return gains;
}

std::vector<MachineComparison> compare_machines(const CapacityReport& report) {
  std::vector<MachineComparison> comparisons;
  const auto groups = group_cells(
      report, [](const CapacityKey& key) { return std::tuple(key.model, key.machine); });
  const std::vector<std::size_t>* first = nullptr;
  for (const auto& group : groups) {
    const auto model = [&](const std::vector<std::size_t>& of) {
      return report.cells[of.front()].key.model;
    };
    if (first == nullptr || model(*first) != model(group))
      first = &group;
    else
      comparisons.push_back(compare(report, group, *first));
  }
  return comparisons;
}

}  // namespace spillway
