#include "sim/report/compare_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/base/format.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRows = 12;

/// One line of totals: a name, how to print it, its value on both sides.
struct Total {
  const char* name;
  const char* json;
  std::int64_t first = 0, second = 0;
  bool is_bytes = true;
};

std::vector<Total> totals_of(const CompareReport& report) {
  const MemoryReport& a = *report.first.memory;
  const MemoryReport& b = *report.second.memory;
  return {
      {"HBM total", "total_device_bytes", a.totals.total_device.value(),
       b.totals.total_device.value()},
      {"  arguments", "argument_bytes", a.totals.argument.value(), b.totals.argument.value()},
      {"  temporaries", "temp_bytes", a.totals.temp.value(), b.totals.temp.value()},
      {"live at the peak", "live_peak_bytes", a.live_peak.value(), b.live_peak.value()},
      {"without fragmentation", "no_fragmentation_bytes", a.totals.no_fragmentation.value(),
       b.totals.no_fragmentation.value()},
      {"pinned host memory", "host_bytes", host_bytes(a.totals).value(),
       host_bytes(b.totals).value()},
      {"offloaded in a step", "d2h_bytes_per_step", a.traffic.device_to_host.value(),
       b.traffic.device_to_host.value()},
      {"reloaded in a step", "h2d_bytes_per_step", a.traffic.host_to_device.value(),
       b.traffic.host_to_device.value()},
      {"instructions", "instructions", static_cast<std::int64_t>(report.first.instructions),
       static_cast<std::int64_t>(report.second.instructions), false},
  };
}

std::string format(std::int64_t value, bool is_bytes) {
  return is_bytes ? format_bytes(Bytes(value)) : format_count(value);
}

std::string change_text(const Total& total) {
  const std::int64_t change = total.second - total.first;
  if (change == 0) return "";
  std::string text = (change > 0 ? "+" : "") + format(change, total.is_bytes);
  if (total.first != 0)
    text += fmt::format(" ({:+.1f} %)",
                        100.0 * static_cast<double>(change) / static_cast<double>(total.first));
  return text;
}

std::string totals_text(const CompareReport& report) {
  TextTable table({"", ">A", ">B", ">B - A"});
  for (const Total& total : totals_of(report))
    table.add({total.name, format(total.first, total.is_bytes),
               format(total.second, total.is_bytes), change_text(total)});
  table.add({"matrix products", format_flops(report.first.flops.dot_per_step),
             format_flops(report.second.flops.dot_per_step), ""});
  return table.text(0);
}

std::string place_text(const std::optional<Placement>& placement) {
  return placement ? std::string(name_of(*placement)) : "not saved";
}

std::string residuals_text(const std::vector<ResidualChange>& changes) {
  TextTable table({"name", ">layers", ">total", "A", "B"});
  for (const ResidualChange& change : changes)
    table.add({change.label, std::to_string(change.layers), format_bytes(change.bytes),
               place_text(change.first), place_text(change.second)});
  return "Saved for the backward pass: what differs\n" + table.text();
}

std::string items_text(const std::string& title, const std::vector<Item>& items) {
  TextTable table({">bytes", ">times", "shape", "name", "JAX operation"});
  for (std::size_t i = 0; i < std::min(kRows, items.size()); ++i)
    table.add({format_bytes(items[i].bytes), format_count(items[i].count),
               items[i].shape.substr(0, 40), items[i].name, items[i].origin.substr(0, 60)});
  std::string text = title + ", largest first\n" + table.text();
  if (items.size() > kRows) text += fmt::format("  … {} more\n", items.size() - kRows);
  return text;
}

/// What a section of the answer shows: a kind of thing, and its name in JSON.
struct Section {
  const char* title;
  const char* json;
  const Excess& excess;
};

std::vector<Section> sections_of(const Comparison& difference) {
  return {{"in HBM at the peak", "buffers", difference.buffers},
          {"in pinned host memory", "host_arrays", difference.host_arrays},
          {"offloads of a step", "offloads", difference.offloads},
          {"reloads of a step", "reloads", difference.reloads},
          {"clones by XLA's rematerialisation", "clones", difference.clones}};
}

std::string program_line(char side, const InspectReport& report) {
  return fmt::format("{}  {}  {}\n", side, report.program_name, report.path);
}

std::string verdict(const CompareReport& report) {
  std::string text;
  if (report.difference.same_placement())
    text +=
        "Nothing is kept elsewhere, and the same crosses the link: a policy that differs only "
        "in names that match nothing looks like this.\n";
  if (report.allowed_growth)
    text += fmt::format("HBM grows by {:+.2f} %, allowed are {:g} %: {}\n", report.growth(),
                        *report.allowed_growth, report.grows_too_much() ? "too much" : "fine");
  return text;
}

Json item_json(const Item& item) {
  return {{"name", item.name},
          {"shape", item.shape},
          {"op_name", item.origin},
          {"bytes", item.bytes.value()},
          {"count", item.count}};
}

Json items_json(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(item_json(item));
  return list;
}

Json place_json(const std::optional<Placement>& placement) {
  return placement ? Json(name_of(*placement)) : Json(nullptr);
}

/// One of the two programs.
struct Side {
  InspectReport report;
  Inventory inventory;
};

Result<Side> look_at(const Program& program, const NameList& names) {
  const Result<Schedule> schedule = text_schedule(program);
  if (!schedule.ok()) return schedule.error();
  const MemoryAssignment assignment = assign_memory(program, *schedule);
  Side side{make_inspect_report(program, names, assignment), {}};
  side.inventory = take_inventory(program, assignment, *side.report.memory);
  return side;
}

}  // namespace

double CompareReport::growth() const {
  const auto a = static_cast<double>(first.memory->totals.total_device.value());
  const auto b = static_cast<double>(second.memory->totals.total_device.value());
  if (a == 0) return b > 0 ? 100 : 0;
  return 100 * (b - a) / a;
}

Result<CompareReport> make_compare_report(const Program& first, const NameList& first_names,
                                          const Program& second, const NameList& second_names) {
  Result<Side> a = look_at(first, first_names);
  if (!a.ok()) return a.error();
  Result<Side> b = look_at(second, second_names);
  if (!b.ok()) return b.error();
  CompareReport report;
  report.difference = compare(a->inventory, a->report.residuals, b->inventory, b->report.residuals);
  report.first = std::move(a).value().report;
  report.second = std::move(b).value().report;
  return report;
}

std::string render_text(const CompareReport& report) {
  std::string text = program_line('A', report.first) + program_line('B', report.second) + "\n" +
                     totals_text(report);
  if (!report.difference.residuals.empty())
    text += "\n" + residuals_text(report.difference.residuals);
  for (const Section& section : sections_of(report.difference)) {
    if (!section.excess.second.empty())
      text += "\n" + items_text(std::string("Only B: ") + section.title, section.excess.second);
    if (!section.excess.first.empty())
      text += "\n" + items_text(std::string("Only A: ") + section.title, section.excess.first);
  }
  if (const std::string last = verdict(report); !last.empty()) text += "\n" + last;
  return text;
}

std::string render_json(const CompareReport& report) {
  Json json;
  json["schema"] = "spillway.compare/1";
  json["programs"] = {{{"name", report.first.program_name}, {"path", report.first.path}},
                      {{"name", report.second.program_name}, {"path", report.second.path}}};
  for (const Total& total : totals_of(report)) json[total.json] = {total.first, total.second};
  json["dot_flops_per_step"] = {report.first.flops.dot_per_step.value(),
                                report.second.flops.dot_per_step.value()};
  json["growth_percent"] = report.growth();
  json["grows_too_much"] = report.grows_too_much();
  json["same_placement"] = report.difference.same_placement();
  json["residuals"] = Json::array();
  for (const ResidualChange& change : report.difference.residuals)
    json["residuals"].push_back({{"name", change.label},
                                 {"layers", change.layers},
                                 {"total_bytes", change.bytes.value()},
                                 {"first", place_json(change.first)},
                                 {"second", place_json(change.second)}});
  for (const Section& section : sections_of(report.difference))
    json[section.json] = {{"only_first", items_json(section.excess.first)},
                          {"only_second", items_json(section.excess.second)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
