#include "sim/report/explain_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/base/format.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using engine::StallCause;
using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr std::size_t kDelaysShown = 4;
/// Rates are found to one percent.
constexpr double kNoSlower = 0.99;

std::string_view kind_of(const CopyExplanation& e) {
  if (e.direction == TransferDirection::kDeviceToHost) return "offload";
  if (e.direction == TransferDirection::kHostToDevice) return "reload";
  return e.collective ? "collective" : "copy within HBM";
}

std::string times(std::int64_t n) { return n == 1 ? "once" : format_count(n) + " times"; }

std::string head_text(const CopyExplanation& e) {
  std::string text = e.instruction;
  for (const std::string& start : e.starts)
    if (start != e.instruction) text += " and " + start;
  text += fmt::format(": {} of {}", kind_of(e), format_bytes(e.bytes));
  if (!e.residual.empty()) text += " (" + e.residual + ")";
  text += fmt::format(", {} a step, on {}\n", times(e.runs), e.stream);
  if (e.runs == 0) return text + "  it never runs: the loop around it makes no iteration\n";
  text += fmt::format("  takes {} alone", format_seconds(e.alone));
  if (e.busy > e.alone * 1.001) text += fmt::format(", {} here", format_seconds(e.busy));
  if (e.exposed == Seconds(0)) return text + "; nothing of it is exposed\n";
  text += fmt::format("; exposed {}", format_seconds(e.exposed));
  if (e.runs > 1)
    text += fmt::format(" of a step, {} each time on average",
                        format_seconds(e.exposed / static_cast<double>(e.runs)));
  if (e.step > Seconds(0))
    text += fmt::format(": {:.1f} % of {}", 100 * ratio(e.exposed, e.step), format_seconds(e.step));
  return text + "\n";
}

std::string wait_text(const CopyExplanation::Wait& w) {
  std::string text = "  the main stream waits at " + w.done;
  if (w.blocked > 1)
    text += fmt::format(", blocked {} of {} times, {} at most", format_count(w.blocked),
                        format_count(w.times), format_seconds(w.longest));
  if (!w.next.empty()) text += "; " + w.next + " runs next";
  if (w.first_reader == w.next && !w.next.empty())
    text += " and reads it";
  else if (!w.first_reader.empty())
    text += "; " + w.first_reader + " is the first to read it";
  text += "\n";
  if (!w.cause.empty()) text += fmt::format("  why: {}: {}\n", w.cause, w.explanation);
  return text;
}

std::string part_text(const StallPart& part) {
  switch (part.cause) {
    case StallCause::kQueued:
      return "it stands behind " + part.culprit + " in its stream";
    case StallCause::kLatency:
      return "it starts up";
    case StallCause::kContended:
      return "it is slowed: " + part.culprit + " is shared" +
             (part.beside.empty() ? "" : " with " + part.beside);
    case StallCause::kFullSpeed:
      return "it runs as fast as it can";
  }
  return "";
}

/// What is left of the exposed time then, and whether that is gained.
std::string outcome_text(const CopyExplanation& e, const Remedy& r) {
  if (!r.ends_waits) return fmt::format("{} stay exposed", format_seconds(r.exposed));
  std::string text = r.hides ? "hidden" : "its own waits are gone";
  if (r.kind == RemedyKind::kNextIteration && r.exposed > Seconds(0))
    text += fmt::format(" but for {}, {}",
                        e.direction == TransferDirection::kDeviceToHost ? "the last" : "the first",
                        format_seconds(r.exposed));
  if (r.hides) return text;
  const std::string of = " of " + format_seconds(e.exposed - r.exposed);
  return text + "; the step gains " +
         (r.gain > Seconds(0) ? "only " + format_seconds(r.gain) + of : "nothing" + of) +
         ": others wait instead";
}

/// What a remedy changes, how far, and what that brings.
std::string remedy_text(const CopyExplanation& e, const Remedy& r) {
  if (!r.possible) {
    if (r.kind == RemedyKind::kEarlierStart) return "cannot move: " + r.limit;
    if (r.kind == RemedyKind::kLaterDone) return "cannot move: " + r.limit;
    return "cannot: " + r.limit;
  }
  std::string text;
  switch (r.kind) {
    case RemedyKind::kEarlierStart:
      text = fmt::format("{} of kernels earlier, in front of {}", format_seconds(r.moved), r.at);
      if (!r.ends_waits) text += fmt::format(" at most ({})", r.limit);
      break;
    case RemedyKind::kLaterDone:
      text = fmt::format("{} of kernels later, behind {}", format_seconds(r.moved), r.at);
      if (!r.ends_waits) text += fmt::format(" at most ({})", r.limit);
      break;
    case RemedyKind::kBoth:
      text = "both as far as they go";
      break;
    case RemedyKind::kNextIteration:
      text = fmt::format("pipelined across iterations, {} of HBM more", format_bytes(e.bytes));
      break;
    case RemedyKind::kFasterLink:
      text = fmt::format("{:.2f} times today's rate", r.factor);
      if (r.rate > BytesPerSecond(0)) text += fmt::format(", {:.1f} GB/s", r.rate.value() / kGiga);
      break;
    case RemedyKind::kMoreCompute:
      text = fmt::format("{:.2f} times the kernels beside it, {} instead of {}", r.factor,
                         format_seconds(r.kernels_then), format_seconds(r.kernels_now));
      break;
  }
  text += ": " + outcome_text(e, r);
  if (r.kind != RemedyKind::kMoreCompute) {
    const double change = 100 * (ratio(r.step, e.step) - 1);
    text += fmt::format(", step {} ({:+.2f} %)", format_seconds(r.step), change);
  }
  return text;
}

std::string_view label_of(RemedyKind kind) {
  switch (kind) {
    case RemedyKind::kEarlierStart:
      return "earlier start";
    case RemedyKind::kLaterDone:
      return "later done";
    case RemedyKind::kBoth:
      return "both";
    case RemedyKind::kNextIteration:
      return "next iteration";
    case RemedyKind::kFasterLink:
      return "faster link";
    case RemedyKind::kMoreCompute:
      return "more compute";
  }
  return "";
}

std::string batch_text(const CopyExplanation& e, const Remedy& r) {
  if (!e.direction || !r.possible) return "";
  if (e.grows_with_batch)
    return "it grows with the batch as the kernels do, so a larger batch alone does not hide it: "
           "more compute per byte would";
  if (!r.hides) return "it does not grow with the batch, but no batch that was tried hides it";
  return fmt::format(
      "it does not grow with the batch: {:.2f} times the batch would do where the "
      "kernels grow with it",
      r.factor);
}

std::string remedies_text(const CopyExplanation& e) {
  if (e.remedies.empty())
    return e.waits.empty() ? "  it runs on the main stream, where nothing runs beside it: only an "
                             "asynchronous one can be hidden\n"
                           : "";
  std::string text = "  what would hide it, each simulated:\n";
  TextTable table({"", ""});
  for (const Remedy& r : e.remedies) {
    std::string label(label_of(r.kind));
    if (r.kind == RemedyKind::kFasterLink && e.collective) label = "faster fabric";
    table.add({label, remedy_text(e, r)});
    if (r.kind != RemedyKind::kMoreCompute) continue;
    if (const std::string batch = batch_text(e, r); !batch.empty()) table.add({"batch", batch});
  }
  const std::string rows = table.text(4);
  return text + rows.substr(rows.find('\n') + 1);  // a table without a head
}

std::string hidden_text(const CopyExplanation& e) {
  std::string text;
  if (e.slack && *e.slack == Seconds(0))
    text += "  it is done just when the main stream gets to the wait\n";
  else if (e.slack)
    text += fmt::format("  it is done at least {} before the main stream gets to the wait\n",
                        format_seconds(*e.slack));
  if (e.slowest_rate && *e.slowest_rate > kNoSlower)
    text += "  were it any slower, the main stream would wait\n";
  else if (e.slowest_rate)
    text += fmt::format("  at {:.2f} times its rate, all else as it is, nobody would wait longer\n",
                        *e.slowest_rate);
  return text;
}

std::string delays_text(const CopyExplanation& e) {
  std::string text;
  for (std::size_t k = 0; k < std::min(kDelaysShown, e.delays.size()); ++k)
    text += fmt::format("  {} stands behind it for {} of a step\n", e.delays[k].instruction,
                        format_seconds(e.delays[k].time));
  if (e.delays.size() > kDelaysShown)
    text += fmt::format("  … and {} more\n", e.delays.size() - kDelaysShown);
  return text;
}

Json remedy_json(const CopyExplanation& e, const Remedy& r) {
  Json json;
  json["remedy"] = name_of(r.kind);
  json["possible"] = r.possible;
  if (!r.limit.empty()) json["limit"] = r.limit;
  if (!r.possible) return json;
  json["hides"] = r.hides;
  json["ends_waits"] = r.ends_waits;
  json["gain_seconds"] = r.gain.value();
  json["exposed_seconds"] = r.exposed.value();
  json["step_seconds"] = r.step.value();
  if (!r.at.empty()) json["at"] = r.at;
  if (r.moved > Seconds(0)) json["moved_seconds"] = r.moved.value();
  if (r.kind == RemedyKind::kNextIteration) json["hbm_bytes"] = e.bytes.value();
  if (r.kind == RemedyKind::kFasterLink || r.kind == RemedyKind::kMoreCompute)
    json["factor"] = r.factor;
  if (r.rate > BytesPerSecond(0)) json["bytes_per_second"] = r.rate.value();
  if (r.kind == RemedyKind::kMoreCompute) {
    json["kernel_seconds"] = r.kernels_now.value();
    json["needed_kernel_seconds"] = r.kernels_then.value();
  }
  return json;
}

std::string_view name_of(StallCause cause) {
  switch (cause) {
    case StallCause::kQueued:
      return "queue";
    case StallCause::kLatency:
      return "latency";
    case StallCause::kContended:
      return "contention";
    case StallCause::kFullSpeed:
      return "full-speed";
  }
  return "";
}

Json wait_json(const CopyExplanation::Wait& w) {
  Json json = {{"done", w.done},
               {"times", w.times},
               {"blocked", w.blocked},
               {"exposed_seconds", w.exposed.value()},
               {"longest_seconds", w.longest.value()}};
  if (!w.next.empty()) json["next"] = w.next;
  if (!w.first_reader.empty()) json["first_reader"] = w.first_reader;
  if (!w.cause.empty()) json["cause"] = w.cause, json["explanation"] = w.explanation;
  return json;
}

Json copy_json(const CopyExplanation& e) {
  Json json;
  json["instruction"] = e.instruction;
  if (e.starts.size() > 1) json["starts"] = e.starts;
  json["kind"] = kind_of(e);
  if (!e.residual.empty()) json["residual"] = e.residual;
  json["stream"] = e.stream;
  json["bytes"] = e.bytes.value();
  json["runs"] = e.runs;
  json["alone_seconds"] = e.alone.value();
  json["busy_seconds"] = e.busy.value();
  json["exposed_seconds"] = e.exposed.value();
  json["exposed_seconds_each"] =
      e.exposed.value() / static_cast<double>(std::max<std::int64_t>(e.runs, 1));
  if (e.direction) json["grows_with_batch"] = e.grows_with_batch;
  json["waits"] = Json::array();
  for (const CopyExplanation::Wait& wait : e.waits) json["waits"].push_back(wait_json(wait));
  json["while_waiting"] = Json::array();
  for (const StallPart& part : e.while_waiting) {
    Json it = {{"cause", name_of(part.cause)}, {"seconds", part.time.value()}};
    if (part.cause == StallCause::kQueued) it["behind"] = part.culprit;
    if (part.cause == StallCause::kContended) it["resource"] = part.culprit;
    if (!part.beside.empty()) it["beside"] = part.beside;
    json["while_waiting"].push_back(std::move(it));
  }
  json["remedies"] = Json::array();
  for (const Remedy& remedy : e.remedies) json["remedies"].push_back(remedy_json(e, remedy));
  if (e.slack) json["slack_seconds"] = e.slack->value();
  if (e.slowest_rate) json["slowest_rate_factor"] = *e.slowest_rate;
  json["delays"] = Json::array();
  for (const auto& [instruction, time] : e.delays)
    json["delays"].push_back({{"instruction", instruction}, {"seconds", time.value()}});
  return json;
}

}  // namespace

std::string explain_text(const std::vector<CopyExplanation>& copies) {
  std::string text;
  for (const CopyExplanation& e : copies) {
    if (!text.empty()) text += "\n";
    text += head_text(e);
    if (e.exposed > Seconds(0))
      for (const CopyExplanation::Wait& wait : e.waits)
        if (wait.exposed > Seconds(0)) text += wait_text(wait);
    for (const StallPart& part : e.while_waiting)
      text += fmt::format("  for {} of the wait {}\n", format_seconds(part.time), part_text(part));
    text += e.exposed > Seconds(0) ? remedies_text(e) : hidden_text(e);
    text += delays_text(e);
  }
  return text;
}

std::string explain_json(const std::string& name, const std::vector<CopyExplanation>& copies) {
  Json json = {{"asked", name}, {"copies", Json::array()}};
  for (const CopyExplanation& e : copies) json["copies"].push_back(copy_json(e));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace spillway
