#include "calibration/measurements.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace spillway::calibration {
namespace {

template <typename T>
void move_to_end(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void take_unless_known(std::string& known, std::string& more) {
  if (known.empty()) known = std::move(more);
}

template <typename T>
void take_unless_known(std::optional<T>& known, const std::optional<T>& more) {
  if (!known) known = more;
}

void append_facts(MachineFacts& to, MachineFacts& more) {
  take_unless_known(to.device, more.device);
  take_unless_known(to.compute_capability, more.compute_capability);
  take_unless_known(to.driver, more.driver);
  take_unless_known(to.cuda, more.cuda);
  take_unless_known(to.date, more.date);
  take_unless_known(to.gpus, more.gpus);
  take_unless_known(to.gpus_per_cpu, more.gpus_per_cpu);
  take_unless_known(to.cpus, more.cpus);
  take_unless_known(to.sm_count, more.sm_count);
  take_unless_known(to.hbm_capacity, more.hbm_capacity);
  take_unless_known(to.l2_capacity, more.l2_capacity);
  take_unless_known(to.mig, more.mig);
}

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

}  // namespace

bool is_device(std::string_view driver_name, std::string_view xla_name) {
  const auto [shorter, longer] =
      std::minmax(driver_name, xla_name, [](auto a, auto b) { return a.size() < b.size(); });
  // A model has a number, which a maker's name has not.
  if (!longer.starts_with(shorter) || std::ranges::none_of(shorter, [](char c) {
        return std::isdigit(static_cast<unsigned char>(c)) != 0;
      }))
    return false;
  return longer.size() == shorter.size() || !is_alnum(longer[shorter.size()]);
}

void append(Measurements& to, Measurements more) {
  if (!to.machine.device.empty() && !more.machine.device.empty() &&
      to.machine.device != more.machine.device)
    to.warnings.push_back({"other-machine",
                           "is of " + quoted(more.machine.device) + ", what was read before of " +
                               quoted(to.machine.device),
                           {more.sources.empty() ? "" : more.sources.front().path, {}, {}}});
  append_facts(to.machine, more.machine);
  move_to_end(to.sources, more.sources);
  move_to_end(to.copies, more.copies);
  move_to_end(to.gemms, more.gemms);
  move_to_end(to.traffic, more.traffic);
  move_to_end(to.launches, more.launches);
  move_to_end(to.interference, more.interference);
  move_to_end(to.collectives, more.collectives);
  move_to_end(to.link_caps, more.link_caps);
  move_to_end(to.warnings, more.warnings);
  move_to_end(to.skipped, more.skipped);
}

}  // namespace spillway::calibration
