#include "sim/trace/event_writer.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace spillway {
namespace {

/// In microseconds, as the format wants it.
void append_time(std::string& text, TraceTime time) {
  fmt::format_to(std::back_inserter(text), "{}.{:03}", time / 1000, time % 1000);
}

}  // namespace

TraceTime to_trace_time(SimTime time) { return time.value() / 1000; }

std::string json_text(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

EventWriter::EventWriter() : text_("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[") {}

void EventWriter::begin(char phase, Track track) {
  text_ += text_.back() == '[' ? "\n" : ",\n";
  fmt::format_to(std::back_inserter(text_), "{{\"ph\":\"{}\",\"pid\":{}", phase, track.process);
  if (track.row != 0) fmt::format_to(std::back_inserter(text_), ",\"tid\":{}", track.row);
}

void EventWriter::name_process(int process, std::string_view name, int order) {
  begin('M', {process, 0});
  fmt::format_to(std::back_inserter(text_), ",\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
                 json_text(name));
  begin('M', {process, 0});
  fmt::format_to(std::back_inserter(text_),
                 ",\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{}}}}}", order);
}

void EventWriter::name_track(Track track, std::string_view name, int order) {
  begin('M', track);
  fmt::format_to(std::back_inserter(text_), ",\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}",
                 json_text(name));
  begin('M', track);
  fmt::format_to(std::back_inserter(text_),
                 ",\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{}}}}}", order);
}

void EventWriter::add_slice(Track track, TraceTime from, TraceTime to, std::string_view head,
                            std::string_view args) {
  begin('X', track);
  text_ += ",\"ts\":";
  append_time(text_, from);
  text_ += ",\"dur\":";
  append_time(text_, to - from);
  fmt::format_to(std::back_inserter(text_), ",{}", head);
  if (!args.empty()) fmt::format_to(std::back_inserter(text_), ",\"args\":{{{}}}", args);
  text_ += '}';
}

void EventWriter::add_flow_point(FlowPoint point, std::int64_t flow, Track track, TraceTime at,
                                 std::string_view head) {
  begin(static_cast<char>(point), track);
  text_ += ",\"ts\":";
  append_time(text_, at);
  // Without "bp" the last arrow ends at the slice behind the moment, not at the one around it.
  fmt::format_to(std::back_inserter(text_), ",\"id\":{}{},{}}}", flow,
                 point == FlowPoint::kLast ? ",\"bp\":\"e\"" : "", head);
}

void EventWriter::add_counter(int process, std::string_view name, std::string_view unit,
                              TraceTime at, std::string_view value) {
  begin('C', {process, 0});
  text_ += ",\"ts\":";
  append_time(text_, at);
  fmt::format_to(std::back_inserter(text_), ",\"name\":\"{}\",\"args\":{{\"{}\":{}}}}}", name, unit,
                 value);
}

void EventWriter::add_level(int process, std::string_view name, std::string_view unit, TraceTime at,
                            std::int64_t value) {
  add_counter(process, name, unit, at, std::to_string(value));
}

void EventWriter::add_level(int process, std::string_view name, std::string_view unit, TraceTime at,
                            double value) {
  add_counter(process, name, unit, at, fmt::format("{:.3f}", value));
}

std::string EventWriter::finish(std::string_view metadata) && {
  text_ += "\n],\n\"otherData\":";
  text_ += metadata;
  text_ += "}\n";
  return std::move(text_);
}

}  // namespace spillway
