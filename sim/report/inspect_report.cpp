#include "sim/report/inspect_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/base/format.h"
#include "sim/report/diagnostic_text.h"
#include "sim/report/origin_text.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLiveRows = 12;

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(separator)) + part;
  return text;
}

/// What the order of execution costs, in words.
std::string price_of_order(const MemoryReport& memory, const MinimalOrder& order) {
  if (!order.scheduler) return "no scheduler for memory found an order that needs less";
  const Bytes given = memory.totals.total_device;
  const Bytes price = given - order.total_device;
  return fmt::format("the order costs {} ({:.1f} %), found by: {}", format_bytes(price),
                     100 * static_cast<double>(price.value()) / static_cast<double>(given.value()),
                     name_of(*order.scheduler));
}

/// The row of the table that says what the order of execution costs.
std::vector<std::string> order_row(const MemoryReport& memory,
                                   const std::optional<MinimalOrder>& order) {
  if (!order)
    return {"in a memory-minimal order", "-",
            fmt::format("not looked for above {} instructions",
                        format_count(static_cast<std::int64_t>(kMostReordered)))};
  return {"in a memory-minimal order", format_bytes(order->total_device),
          price_of_order(memory, *order)};
}

std::string memory_text(const MemoryReport& memory, const std::optional<MinimalOrder>& order) {
  const MemoryTotals& t = memory.totals;
  TextTable table({"HBM of one device", ">", ""});
  table.add({"total", format_bytes(t.total_device),
             "what the allocator must provide, " + format_count(t.total_device.value()) + " B"});
  table.add({"  arguments", format_bytes(t.argument),
             format_bytes(t.alias) + " of it reused for results"});
  table.add({"  results", format_bytes(t.output), ""});
  table.add({"  temporaries", format_bytes(t.temp),
             "one block; the largest block is " + format_bytes(t.largest_allocation)});
  table.add({"live at the peak", format_bytes(memory.live_peak),
             fmt::format("at position {}, {}", memory.live_peak_at.value(),
                         memory.live_peak_instruction)});
  table.add({"without fragmentation", format_bytes(t.no_fragmentation), ""});
  table.add(order_row(memory, order));
  table.add({"pinned host memory", format_bytes(host_bytes(t)),
             fmt::format("temporaries {}, arguments {}", format_bytes(t.host_temp),
                         format_bytes(t.host_argument))});
  table.add({"offloaded in a step", format_bytes(memory.traffic.device_to_host),
             format_count(memory.traffic.offloads) + " copies device to host"});
  table.add({"reloaded in a step", format_bytes(memory.traffic.host_to_device),
             format_count(memory.traffic.reloads) + " copies host to device"});
  return table.text(0);
}

/// The residual whose stack a buffer is; null when it is none.
const Residual* find_residual(const ResidualTable& table, BufferId buffer) {
  for (const Residual& residual : table.residuals)
    if (residual.stack == buffer) return &residual;
  return nullptr;
}

/// The first letters; none is cut in two.
std::string first(const std::string& text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (text[bytes] & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

std::string live_text(const MemoryReport& memory, const ResidualTable& residuals) {
  if (memory.live_at_peak.empty()) return "Nothing lies in HBM\n";
  TextTable table({">size", "class", "shape", "buffer", "JAX operation"});
  for (std::size_t i = 0; i < std::min(kLiveRows, memory.live_at_peak.size()); ++i) {
    const LiveBuffer& b = memory.live_at_peak[i];
    const Residual* residual = find_residual(residuals, b.buffer);
    table.add({format_bytes(b.bytes), std::string(name_of(b.kind)), b.shape.substr(0, 40),
               residual ? b.name + " = " + label_of(*residual) : b.name, first(b.op_name, 60)});
  }
  std::string text = "Live at the peak, largest first\n" + table.text();
  if (memory.live_at_peak.size() > kLiveRows)
    text += fmt::format("  … {} more\n", memory.live_at_peak.size() - kLiveRows);
  return text;
}

template <typename AnyResidual>
std::string name_text(const AnyResidual& r) {
  std::string text;
  for (const std::string& name : r.names) text += (text.empty() ? "" : "=") + name;
  if (r.names.empty()) return "-";
  return r.evidence == NameEvidence::kGuess ? text + " ?" : text;
}

std::string unrolled_text(const UnrolledTable& table) {
  TextTable rows({"id", "name", ">layers", ">a layer", ">total", "where", ">made", ">last fwd",
                  ">first bwd", ">last use", "producer"});
  for (const UnrolledResidual& r : table.residuals) {
    const UnrolledValue& last = r.layers.back();
    rows.add({r.id, name_text(r), std::to_string(r.layers.size()),
              format_bytes(r.bytes_per_layer()), format_bytes(r.total_bytes()),
              std::string(name_of(r.placement)), std::to_string(last.defined_at.value()),
              std::to_string(last.last_forward_use.value()),
              std::to_string(last.first_backward_use.value()),
              std::to_string(last.last_use.value()), r.source.substr(r.source.rfind('/') + 1)});
  }
  return "Residuals: saved by the forward part, read by the backward part of each layer (positions "
         "in the schedule, of the last layer)\n" +
         rows.text();
}

std::string residual_text(const ResidualTable& table) {
  if (table.residuals.empty())
    return "Residuals\n  none: no stacked array is written in one loop and read in a later one, "
           "and "
           "no value crosses layer by layer\n";
  TextTable rows({"id", "name", ">layers", ">a layer", ">total", "where", ">made", ">last fwd",
                  ">first bwd", ">last use", "producer"});
  for (const Residual& r : table.residuals) {
    rows.add({r.id, name_text(r), std::to_string(r.layers), format_bytes(r.bytes_per_layer),
              format_bytes(r.total_bytes), std::string(name_of(r.placement)),
              std::to_string(r.defined_at.value()), std::to_string(r.last_forward_use.value()),
              std::to_string(r.first_backward_use.value()), std::to_string(r.last_use.value()),
              r.source.substr(r.source.rfind('/') + 1)});
  }
  return "Residuals: saved by the forward loop, read by the backward loop (positions in the "
         "schedule, one iteration each)\n" +
         rows.text();
}

std::string diagnostics_text(const std::vector<Diagnostic>& diagnostics) {
  std::string text = "What to know\n";
  for (const Diagnostic& d : diagnostics) text += to_text(d);
  return text;
}

Json residual_json(const Residual& r) {
  return {{"id", r.id},
          {"names", r.names},
          {"name_evidence", name_of(r.evidence)},
          {"layers", r.layers},
          {"bytes_per_layer", r.bytes_per_layer.value()},
          {"total_bytes", r.total_bytes.value()},
          {"placement", name_of(r.placement)},
          {"slice", to_string(r.slice)},
          {"defined_at", r.defined_at.value()},
          {"last_forward_use", r.last_forward_use.value()},
          {"first_backward_use", r.first_backward_use.value()},
          {"last_use", r.last_use.value()},
          {"layer_input", r.is_layer_input},
          {"copied_between_loops", r.copied_between_loops},
          {"source", r.source},
          {"op_name", r.op_name}};
}

Json layer_json(const UnrolledValue& value) {
  return {{"defined_at", value.defined_at.value()},
          {"last_forward_use", value.last_forward_use.value()},
          {"first_backward_use", value.first_backward_use.value()},
          {"last_use", value.last_use.value()}};
}

/// Positions are those of the last layer, as an iteration stands for all in a loop; `by_layer` has
/// each.
Json residual_json(const UnrolledResidual& r) {
  Json json = {{"id", r.id},
               {"names", r.names},
               {"name_evidence", name_of(r.evidence)},
               {"layers", r.layers.size()},
               {"bytes_per_layer", r.bytes_per_layer().value()},
               {"total_bytes", r.total_bytes().value()},
               {"placement", name_of(r.placement)},
               {"slice", to_string(r.shape)}};
  json.update(layer_json(r.layers.back()));
  json["layer_input"] = r.is_layer_input;
  json["copied_between_loops"] = false;
  json["source"] = r.source;
  json["op_name"] = r.op_name;
  json["by_layer"] = Json::array();
  for (const UnrolledValue& value : r.layers) json["by_layer"].push_back(layer_json(value));
  return json;
}

Json memory_json(const MemoryReport& memory) {
  const MemoryTotals& t = memory.totals;
  return {{"argument_bytes", t.argument.value()},
          {"output_bytes", t.output.value()},
          {"alias_bytes", t.alias.value()},
          {"temp_bytes", t.temp.value()},
          {"total_device_bytes", t.total_device.value()},
          {"live_peak_bytes", memory.live_peak.value()},
          {"live_peak_position", memory.live_peak_at.value()},
          {"no_fragmentation_bytes", t.no_fragmentation.value()},
          {"largest_allocation_bytes", t.largest_allocation.value()},
          {"host_temp_bytes", t.host_temp.value()},
          {"host_argument_bytes", t.host_argument.value()},
          {"host_output_bytes", t.host_output.value()},
          {"host_alias_bytes", t.host_alias.value()}};
}

Json traffic_json(const HostTraffic& traffic) {
  return {{"d2h_bytes_per_step", traffic.device_to_host.value()},
          {"h2d_bytes_per_step", traffic.host_to_device.value()},
          {"d2h_copies_per_step", traffic.offloads},
          {"h2d_copies_per_step", traffic.reloads}};
}

Json live_json(const LiveBuffer& b, const ResidualTable& residuals) {
  Json row = {{"name", b.name}, {"bytes", b.bytes.value()}, {"class", name_of(b.kind)}};
  row["layer"] = b.layer ? Json(*b.layer) : Json(nullptr);
  row["shape"] = b.shape;
  row["op_name"] = b.op_name;
  const Residual* residual = find_residual(residuals, b.buffer);
  row["residual"] = residual ? Json(residual->id) : Json(nullptr);
  return row;
}

/// What a program says without an order of execution.
InspectReport without_memory(const Program& program) {
  InspectReport report;
  report.program_name = program.name;
  report.path = program.path;
  report.modules_in_folder = program.modules_in_folder;
  report.instructions = program.instruction_count();
  report.computations = program.computations.size();
  report.devices = program.device_count();
  report.scheduled = program.is_scheduled;
  report.flops = count_flops(program);
  return report;
}

InspectReport with_memory(const Program& program, const NameList& names,
                          const MemoryAssignment& assignment,
                          const std::optional<MinimalOrder>& order, const InspectContext& context) {
  InspectReport report = without_memory(program);
  report.memory = make_memory_report(program, assignment);
  report.minimal_order = order;
  report.residuals = find_residuals(program, assignment, names);
  if (report.residuals.residuals.empty()) {
    report.unrolled = find_unrolled_residuals(program, assignment, names);
    if (!report.unrolled.residuals.empty())
      report.residuals.unmatched_names = report.unrolled.unmatched_names;
  }
  std::optional<Bytes> cost;
  if (order) cost = report.memory->totals.total_device - order->total_device;
  report.diagnostics =
      diagnose({program, *report.memory, report.residuals, assignment, context.dump,
                context.hardware, context.budget, context.jaxlib, cost});
  return report;
}

}  // namespace

InspectReport make_inspect_report(const Program& program, const NameList& names,
                                  const InspectContext& context) {
  const Result<Schedule> schedule = text_schedule(program);
  if (schedule.ok()) {
    const MemoryAssignment assignment = assign_memory(program, *schedule);
    std::optional<MinimalOrder> order;
    if (program.instruction_count() <= kMostReordered)
      order = find_minimal_order(program, assignment);
    return with_memory(program, names, assignment, order, context);
  }
  InspectReport report = without_memory(program);
  report.diagnostics.push_back({"not-scheduled", Severity::kWarning, schedule.error().text + ".",
                                "", schedule.error().advice + "."});
  return report;
}

InspectReport make_inspect_report(const Program& program, const NameList& names,
                                  const MemoryAssignment& assignment,
                                  const InspectContext& context) {
  return with_memory(program, names, assignment, std::nullopt, context);
}

std::string render_text(const InspectReport& report) {
  std::vector<std::string> sections = {
      fmt::format("{}  {} instructions in {} computations, {} device(s)\n{}\n", report.program_name,
                  format_count(static_cast<std::int64_t>(report.instructions)),
                  format_count(static_cast<std::int64_t>(report.computations)), report.devices,
                  origin_text(report.path, report.modules_in_folder))};
  if (report.memory) sections.push_back(memory_text(*report.memory, report.minimal_order));
  sections.push_back(fmt::format("Matrix products of a step  {}   all operations  {}\n",
                                 format_flops(report.flops.dot_per_step),
                                 format_flops(report.flops.all_per_step)));
  if (report.memory) {
    sections.push_back(live_text(*report.memory, report.residuals));
    sections.push_back(report.unrolled.residuals.empty() ? residual_text(report.residuals)
                                                         : unrolled_text(report.unrolled));
  }
  if (!report.diagnostics.empty()) sections.push_back(diagnostics_text(report.diagnostics));
  return join(sections, "\n");
}

std::string render_json(const InspectReport& report) {
  Json json;
  json["schema"] = "spillway.inspect/1";
  json["program"] = {{"name", report.program_name},
                     {"path", report.path},
                     {"instructions", report.instructions},
                     {"computations", report.computations},
                     {"devices", report.devices},
                     {"scheduled", report.scheduled},
                     {"modules_in_folder", report.modules_in_folder}};
  json["memory"] = report.memory ? memory_json(*report.memory) : Json(nullptr);
  if (report.memory)
    json["memory"]["minimal_order_bytes"] =
        report.minimal_order ? Json(report.minimal_order->total_device.value()) : Json(nullptr);
  json["transfers"] = report.memory ? traffic_json(report.memory->traffic) : Json(nullptr);
  json["dot_flops_per_step"] = report.flops.dot_per_step.value();
  json["flops_per_step"] = report.flops.all_per_step.value();
  json["xla_cost_analysis_flops"] = report.flops.xla_cost_analysis.value();
  json["residuals"] = Json::array();
  for (const Residual& r : report.residuals.residuals)
    json["residuals"].push_back(residual_json(r));
  for (const UnrolledResidual& r : report.unrolled.residuals)
    json["residuals"].push_back(residual_json(r));
  json["live_at_peak"] = Json::array();
  json["hbm_curve"] = Json::array();
  if (report.memory) {
    for (const LiveBuffer& b : report.memory->live_at_peak)
      json["live_at_peak"].push_back(live_json(b, report.residuals));
    for (const CurvePoint& point : report.memory->curve)
      json["hbm_curve"].push_back({point.position.value(), point.bytes.value()});
  }
  json["diagnostics"] = Json::array();
  for (const Diagnostic& d : report.diagnostics)
    json["diagnostics"].push_back({{"code", d.code},
                                   {"severity", name_of(d.severity)},
                                   {"message", d.message()},
                                   {"what", d.what},
                                   {"why", d.why},
                                   {"advice", d.advice}});
  // Names and paths come from the input, and need not be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
