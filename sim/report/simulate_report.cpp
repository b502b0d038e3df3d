#include "sim/report/simulate_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/base/format.h"
#include "model/plan/budget.h"
#include "sim/report/explain_report.h"
#include "sim/report/exposed_text.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRows = 12;

/// What the allocator must provide, against what the device has.
std::string hbm_text(Bytes need, const HardwareProfile& profile) {
  const Bytes hbm = profile.device.hbm_capacity.value, reserve = profile.device.reserve.value;
  const std::string of = "of " + format_bytes(hbm);
  if (need + reserve > hbm)
    return of + ": DOES NOT FIT beside the " + format_bytes(reserve) + " that others need";
  const double pool = smallest_fraction(need, hbm);
  return of + (pool <= kDefaultMemoryFraction
                   ? fmt::format(": fits JAX's default pool of {:.2f}", kDefaultMemoryFraction)
                   : fmt::format(": fits a pool of {:.2f} only, JAX's default is {:.2f}", pool,
                                 kDefaultMemoryFraction));
}

}  // namespace

std::string render_text(const Program& program, const HardwareProfile& profile,
                        const SimResult& r) {
  std::string text = fmt::format("{} on {}\n{}\n\n", program.name, profile.id, program.path);
  std::string work = format_flops(r.flops.dot_per_step) + " of matrix products";
  if (r.step > Seconds(0))
    work += fmt::format(", {:.0f} TFLOP/s", r.flops.dot_per_step.value() / r.step.value() / 1e12);
  TextTable table({"Step", ">" + format_seconds(r.step), work});
  table.add({"kernels", format_seconds(r.compute_busy), ""});
  table.add({"  gaps between them", format_seconds(r.idle), ""});
  table.add({"exposed collectives", format_seconds(r.exposed_collective),
             "of " + format_seconds(r.collective_busy)});
  table.add({"exposed offloads", format_seconds(r.exposed_device_to_host),
             "of " + format_seconds(r.device_to_host_busy)});
  table.add({"exposed reloads", format_seconds(r.exposed_host_to_device),
             "of " + format_seconds(r.host_to_device_busy)});
  table.add({"exposed slices", format_seconds(r.exposed_slices), "copies within HBM"});
  table.add({"HBM", format_bytes(r.memory.total_device), hbm_text(r.memory.total_device, profile)});
  text += table.text(0) + "\n" + exposed_text(program, r, kRows);
  text += unknown_text(r) + "\n";
  for (const std::string& assumption : r.assumptions) text += "Assumed: " + assumption + "\n";
  return text;
}

std::string render_json(const Program& program, const HardwareProfile& profile, const SimResult& r,
                        const Explained* explained, const MeasuredReport* measured) {
  Json json;
  json["schema"] = "spillway.simulate/1";
  json["program"] = {{"name", program.name}, {"path", program.path}};
  json["hardware"] = profile.id;
  json["step_seconds"] = r.step.value();
  json["compute_busy_seconds"] = r.compute_busy.value();
  json["collective_busy_seconds"] = r.collective_busy.value();
  json["d2h_busy_seconds"] = r.device_to_host_busy.value();
  json["h2d_busy_seconds"] = r.host_to_device_busy.value();
  json["exposed_d2h_seconds"] = r.exposed_device_to_host.value();
  json["exposed_h2d_seconds"] = r.exposed_host_to_device.value();
  json["exposed_collective_seconds"] = r.exposed_collective.value();
  json["exposed_slice_seconds"] = r.exposed_slices.value();
  json["idle_seconds"] = r.idle.value();
  json["peak_device_bytes"] = r.memory.total_device.value();
  json["dot_flops_per_step"] = r.flops.dot_per_step.value();
  json["d2h_bytes_per_step"] = r.traffic.device_to_host.value();
  json["h2d_bytes_per_step"] = r.traffic.host_to_device.value();
  json["streams"] = Json::array();
  for (const StreamUse& use : r.streams)
    json["streams"].push_back(
        {{"instruction", program[use.start].name}, {"stream", to_string(use.stream)}});
  json["exposed"] = Json::array();
  for (const ExposedWait& wait : r.exposed)
    json["exposed"].push_back({{"instruction", program[wait.start].name},
                               {"seconds", wait.exposed.value()},
                               {"cause", cause_of(wait)},
                               {"kind", kind_of(wait)},
                               {"busy_seconds", wait.duration.value()},
                               {"explanation", wait.explanation}});
  if (explained != nullptr)
    json["explain"] =
        nlohmann::ordered_json::parse(explain_json(explained->name, explained->copies));
  if (measured != nullptr)
    json["measured"] = nlohmann::ordered_json::parse(measured_json(program, *measured));
  json["unknown"] = r.unknown;
  json["assumptions"] = r.assumptions;
  // Names and paths come from the input, and need not be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
