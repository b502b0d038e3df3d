#include "sim/report/measured_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "model/base/format.h"
#include "model/program/host_transfer.h"
#include "sim/report/diagnostic_text.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRows = 20;

/// What the engine did with one instruction, over all its executions of a step.
struct Simulated {
  StepOrigin origin;
  std::int64_t count = 0;
  SimTime busy;
};

std::map<InstructionId, Simulated> simulated_instructions(const LoweredProgram& lowered,
                                                          const engine::EngineResult& run) {
  std::map<InstructionId, Simulated> result;
  for (const engine::StepId step : ids(lowered.origins)) {
    const StepOrigin& origin = lowered.origins[step];
    if (origin.kind == StepOrigin::kWait || origin.kind == StepOrigin::kLoop) continue;
    const engine::StepStats& stats = run.steps[step];
    if (stats.count == 0) continue;
    Simulated& simulated = result[origin.instruction];
    simulated.origin = origin;
    simulated.count += stats.count;
    simulated.busy += stats.busy;
  }
  return result;
}

std::string class_of(const MeasuredAgainst& row) {
  if (row.kind == StepOrigin::kCollective) return "collectives";
  if (row.direction)
    return *row.direction == TransferDirection::kDeviceToHost ? "offloads" : "reloads";
  if (row.kind == StepOrigin::kCopy) return "copies within HBM";
  return std::string(name_of(row.kernel));
}

std::vector<MeasuredClass> classes_of(const std::vector<MeasuredAgainst>& rows) {
  std::map<std::string, MeasuredClass> by_name;
  for (const MeasuredAgainst& row : rows) {
    MeasuredClass& entry = by_name[class_of(row)];
    ++entry.instructions;
    entry.predicted += row.predicted * static_cast<double>(row.runs);
    entry.measured += row.measured * static_cast<double>(row.runs);
  }
  std::vector<MeasuredClass> classes;
  for (auto& [name, entry] : by_name) {
    entry.name = name;
    classes.push_back(std::move(entry));
  }
  std::ranges::stable_sort(classes, std::ranges::greater{}, &MeasuredClass::measured);
  return classes;
}

/// "-4.8 %" of a prediction against what was measured.
std::string off_by(Seconds predicted, Seconds measured) {
  if (measured <= Seconds(0)) return "";
  return fmt::format("{:+.1f} %", (ratio(predicted, measured) - 1) * 100);
}

std::string rate_of(Bytes bytes, Seconds time) {
  if (time <= Seconds(0)) return "";
  return fmt::format("{:.1f} GB/s", static_cast<double>(bytes.value()) / time.value() / 1e9);
}

std::string step_text(const MeasuredReport& r) {
  TextTable table({"", ">predicted", ">measured", ">off by", ""});
  if (r.step)
    table.add({"step", format_seconds(r.predicted_step), format_seconds(r.step->time),
               off_by(r.predicted_step, r.step->time),
               fmt::format("median of {} executions", format_count(r.step->executions))});
  for (const MeasuredClass& entry : r.classes)
    table.add({"  " + entry.name, format_seconds(entry.predicted), format_seconds(entry.measured),
               off_by(entry.predicted, entry.measured),
               format_count(entry.instructions) +
                   (entry.instructions == 1 ? " instruction" : " instructions")});
  std::string text = table.text(0);
  if (!r.step) text += "The run has no step to compare with.\n";
  if (r.unmeasured > 0)
    text += fmt::format("Not measured: {} instructions, {} by the model.\n",
                        format_count(r.unmeasured), format_seconds(r.unmeasured_time));
  return text;
}

std::string rows_text(const Program& program, const MeasuredReport& r) {
  TextTable table({"instruction", ">runs", ">predicted", ">measured", ">off by", ">lost", ""});
  const std::size_t shown = std::min(kRows, r.instructions.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const MeasuredAgainst& row = r.instructions[k];
    std::string what = class_of(row);
    if (row.bytes > Bytes(0))
      what += fmt::format(", {} at {}, {} predicted", format_bytes(row.bytes),
                          rate_of(row.bytes, row.measured), rate_of(row.bytes, row.predicted));
    table.add({std::string(program[row.id].name), format_count(row.runs),
               format_seconds(row.predicted), format_seconds(row.measured),
               off_by(row.predicted, row.measured), signed_text(row.lost(), format_seconds), what});
  }
  std::string text = table.text();
  if (shown < r.instructions.size())
    text += fmt::format("  and {} more\n",
                        format_count(static_cast<std::int64_t>(r.instructions.size() - shown)));
  return text;
}

std::string link_text(const MeasuredReport& r) {
  std::string text;
  for (const CopyGroup& group : r.copies)
    if (group.kind == CopyKind::kHostToDevice || group.kind == CopyKind::kDeviceToHost)
      text += fmt::format("  {} copies {}, {} to {}: {} at {}\n", format_count(group.count),
                          name_of(group.kind), name_of(group.from), name_of(group.to),
                          format_bytes(group.bytes), rate_of(group.bytes, group.time));
  for (const MeasuredStream& stream : r.streams)
    if (stream.copies > 0)
      text += fmt::format("  stream {} of device {}: {} of {} beside kernels\n", stream.name,
                          stream.device, format_seconds(stream.copies_beside_kernels),
                          format_seconds(stream.copy_time));
  return text.empty() ? "" : "\nAcross the link, in the whole run\n" + text;
}

Json row_json(const Program& program, const MeasuredAgainst& row) {
  Json json = {{"instruction", program[row.id].name},
               {"class", class_of(row)},
               {"runs", row.runs},
               {"predicted_seconds", row.predicted.value()},
               {"measured_seconds", row.measured.value()},
               {"lost_seconds", row.lost().value()},
               {"bound", name_of(row.bound)}};
  if (row.bytes > Bytes(0)) json["bytes"] = row.bytes.value();
  return json;
}

}  // namespace

MeasuredReport make_measured_report(const Program& program, const PreparedStep& prepared,
                                    const engine::EngineResult& run, const MeasuredRun& measured) {
  MeasuredReport report;
  report.path = measured.path;
  report.format = measured.format;
  report.read = measured.read;
  report.notes = measured.notes;
  report.predicted_step = to_seconds(run.makespan);
  report.copies = group_copies(measured);
  report.streams = measured.streams;
  const RunOfProgram of = match_run(program, measured);
  report.notes.insert(report.notes.end(), of.notes.begin(), of.notes.end());
  report.step = of.step;
  const MeasuredCosts costs = with_measured_times(program, prepared.costs, of.times);
  report.unmatched = static_cast<std::int64_t>(costs.unmatched.size());
  for (const auto& [id, simulated] : simulated_instructions(prepared.lowered, run)) {
    const Cost& cost = costs.table.cost(id);
    const Seconds busy = to_seconds(simulated.busy);
    if (cost.bound != Bound::kMeasured) {
      ++report.unmeasured;
      report.unmeasured_time += busy;
      continue;
    }
    MeasuredAgainst row;
    row.id = id;
    row.kind = simulated.origin.kind;
    row.direction = simulated.origin.direction;
    row.kernel = cost.kernel;
    row.bound = prepared.costs.cost(id).bound;
    row.runs = simulated.count;
    row.predicted = busy / static_cast<double>(simulated.count);
    row.measured = cost.time;
    if (row.direction)
      if (const auto transfer = host_transfer(program, id)) row.bytes = transfer->bytes;
    report.instructions.push_back(row);
  }
  std::ranges::stable_sort(report.instructions, std::ranges::greater{},
                           [](const MeasuredAgainst& row) { return std::abs(row.lost().value()); });
  report.classes = classes_of(report.instructions);
  return report;
}

std::string measured_text(const Program& program, const MeasuredReport& r) {
  std::string text = fmt::format("Against the run of {} ({})\n", r.path, name_of(r.format));
  for (const std::string& read : r.read) text += "  " + read + "\n";
  if (r.instructions.empty())
    return text +
           "\nNo instruction of the program is in that run: is it of another program, or of "
           "other flags?\n";
  text += "\n" + step_text(r);
  text += "\nWhere the model is off, most time lost in a step first\n" + rows_text(program, r);
  text += link_text(r);
  if (!r.notes.empty()) text += "\nNot in that run\n";
  for (const RunNote& note : r.notes)
    text += wrapped(note.missing + (note.consequence.empty() ? "" : ": " + note.consequence), "  ");
  return text;
}

std::string measured_json(const Program& program, const MeasuredReport& r) {
  Json json;
  json["path"] = r.path;
  json["format"] = name_of(r.format);
  json["read"] = r.read;
  json["predicted_step_seconds"] = r.predicted_step.value();
  if (r.step) {
    json["measured_step_seconds"] = r.step->time.value();
    json["measured_steps"] = r.step->executions;
    if (r.step->period) json["measured_period_seconds"] = r.step->period->value();
  }
  json["unmeasured_instructions"] = r.unmeasured;
  json["unmeasured_seconds"] = r.unmeasured_time.value();
  json["unmatched_names"] = r.unmatched;
  json["classes"] = Json::array();
  for (const MeasuredClass& entry : r.classes)
    json["classes"].push_back({{"class", entry.name},
                               {"instructions", entry.instructions},
                               {"predicted_seconds", entry.predicted.value()},
                               {"measured_seconds", entry.measured.value()}});
  json["instructions"] = Json::array();
  for (const MeasuredAgainst& row : r.instructions)
    json["instructions"].push_back(row_json(program, row));
  json["copies"] = Json::array();
  for (const CopyGroup& group : r.copies)
    json["copies"].push_back({{"kind", name_of(group.kind)},
                              {"from", name_of(group.from)},
                              {"to", name_of(group.to)},
                              {"count", group.count},
                              {"bytes", group.bytes.value()},
                              {"seconds", group.time.value()}});
  json["streams"] = Json::array();
  for (const MeasuredStream& stream : r.streams)
    json["streams"].push_back(
        {{"device", stream.device},
         {"stream", stream.name},
         {"kernel_seconds", stream.kernel_time.value()},
         {"copy_seconds", stream.copy_time.value()},
         {"copies_beside_kernels_seconds", stream.copies_beside_kernels.value()}});
  json["notes"] = Json::array();
  for (const RunNote& note : r.notes)
    json["notes"].push_back({{"missing", note.missing}, {"consequence", note.consequence}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace spillway
