#include "model/run/chrome_trace.h"

#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/base/format.h"
#include "model/run/copy_details.h"
#include "model/run/gpu_events.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kDeviceProcess = "/device:GPU:";
/// What xprof caps a trace at.
constexpr std::size_t kCap = 1000000;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Takes events one by one as they are parsed: a trace has a million, and a tree of all of them
/// would take gigabytes.
class TraceReader {
 public:
  bool is_trace = false;
  std::size_t events = 0;

  void take(const Json& event) {
    ++events;
    const auto pid = number_of(event, "pid");
    if (!pid) return;
    const std::string phase = text_of(event, "ph");
    const auto args = event.find("args");
    const std::pair key(*pid, number_of(event, "tid").value_or(0));
    if (phase == "M" && args != event.end()) {
      if (text_of(event, "name") == "process_name") processes_[*pid] = text_of(*args, "name");
      if (text_of(event, "name") == "thread_name") threads_[key] = text_of(*args, "name");
    }
    static const Json kNone;
    if (phase == "X") take_slice(event, key, args == event.end() ? kNone : *args);
  }

  /// Names of processes and threads may come last.
  void finish(MeasuredRun& run) {
    GpuEvents on_devices;
    on_devices.names = std::move(all_.names);
    for (auto& [key, event] : found_) {
      const auto device = device_of(key.first);
      if (!device) continue;
      const std::string& thread = threads_[key];
      if (!thread.starts_with("Stream ")) continue;  // derived from those of streams
      event.device = *device;
      event.stream = on_devices.names.intern(thread);
      on_devices.events.push_back(event);
    }
    if (copies_without_size_ > 0)
      run.notes.push_back({format_count(copies_without_size_) + " copies do not say their size",
                           "they give no rate"});
    if (on_devices.events.empty()) return;
    summarize(std::move(on_devices), run);
  }

 private:
  void take_slice(const Json& slice, std::pair<double, double> key, const Json& args) {
    const auto start = number_of(slice, "ts"), duration = number_of(slice, "dur");
    if (!start || !duration || *duration < 0) return;
    const std::string name = text_of(slice, "name");
    GpuEvent event;
    event.start = to_sim_time(Seconds(*start * 1e-6));
    event.end = to_sim_time(Seconds((*start + *duration) * 1e-6));
    event.kernel = all_.names.intern(name);
    event.instruction = all_.names.intern(innermost_name(text_of(args, "hlo_op")));
    event.module = all_.names.intern(text_of(args, "hlo_module"));
    const std::string details = text_of(args, "memcpy_details");
    if (is_fill_name(name)) event.kind = GpuEvent::Kind::kFill;
    if (!details.empty() || is_copy_name(name))
      copies_without_size_ += read_copy_details(name, details, event) ? 0 : 1;
    found_.emplace_back(key, event);
  }

  std::optional<std::int64_t> device_of(double pid) const {
    const auto process = processes_.find(pid);
    if (process == processes_.end()) return std::nullopt;
    const std::size_t at = process->second.find(kDeviceProcess);
    if (at == std::string::npos) return std::nullopt;
    const std::string_view number =
        std::string_view(process->second).substr(at + kDeviceProcess.size());
    std::int64_t device = 0;
    const auto [stop, error] =
        std::from_chars(number.data(), number.data() + number.size(), device);
    return error == std::errc() ? std::optional(device) : std::nullopt;
  }

  GpuEvents all_;
  std::vector<std::pair<std::pair<double, double>, GpuEvent>> found_;
  std::map<double, std::string> processes_;
  std::map<std::pair<double, double>, std::string> threads_;
  std::int64_t copies_without_size_ = 0;
};

}  // namespace

Result<MeasuredRun> parse_chrome_trace(std::string_view text, const std::string& path) {
  TraceReader reader;
  // {"traceEvents": [ {event}, … ]} or the list alone.
  const int event_depth = text.starts_with('[') ? 1 : 2;
  const auto on_parsed = [&](int depth, Json::parse_event_t what, Json& parsed) {
    if (what == Json::parse_event_t::key && depth == 1 && parsed == "traceEvents")
      reader.is_trace = true;
    if (what != Json::parse_event_t::object_end || depth != event_depth) return true;
    if (!parsed.is_object() || !parsed.contains("ph")) return true;
    reader.is_trace = true;
    reader.take(parsed);
    return false;
  };
  MeasuredRun run;
  run.format = RunFormat::kChromeTrace;
  run.path = path;
  try {
    const Json rest = Json::parse(text.begin(), text.end(), on_parsed);
  } catch (const Json::parse_error& error) {
    if (reader.events == 0)
      return error_in_text(path, text, error.byte > 0 ? error.byte - 1 : 0, "no JSON of a trace");
    run.notes.push_back({"the text ends or breaks after " +
                             format_count(static_cast<std::int64_t>(reader.events)) + " events",
                         "what stands before is read"});
  } catch (const Json::out_of_range&) {
    return error_in_file(path, "holds a number that is out of range");
  }
  if (!reader.is_trace)
    return error_in_file(path, "is JSON, but has no traceEvents",
                         "give the .trace.json.gz or the .xplane.pb of jax.profiler");
  reader.finish(run);
  if (run.streams.empty())
    return error_in_file(path, "no GPU ran anything in this trace",
                         "give a trace of jax.profiler from a machine with a GPU");
  if (reader.events >= kCap)
    run.notes.push_back(
        {"the trace has the " + format_count(kCap) + " events that the profiler caps it at",
         "later steps are missing: prefer the .xplane.pb beside it"});
  return run;
}

}  // namespace spillway
