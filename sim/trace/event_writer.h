// Trace events as JSON text, one call an event. Times are whole nanoseconds, rounded down, so that
// slices that touch still touch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/units.h"

namespace spillway {

/// A row of the trace: a thread of a process. Numbers of rows are unique over all processes.
struct Track {
  int process = 0;
  int row = 0;
};

/// Nanoseconds since the step began.
using TraceTime = std::int64_t;
TraceTime to_trace_time(SimTime time);

/// A JSON string with its quotes; what is no UTF-8 is replaced.
std::string json_text(std::string_view text);

class EventWriter {
 public:
  EventWriter();

  void name_process(int process, std::string_view name, int order);
  void name_track(Track track, std::string_view name, int order);
  /// `head` is `"name":…,"cat":…`, `args` the fields of an object, without braces; both as JSON.
  void add_slice(Track track, TraceTime from, TraceTime to, std::string_view head,
                 std::string_view args);
  /// A point of a flow, in the slice of `track` that is open at `at`. Points come in order of time.
  enum class FlowPoint : char { kFirst = 's', kMiddle = 't', kLast = 'f' };
  void add_flow_point(FlowPoint point, std::int64_t flow, Track track, TraceTime at,
                      std::string_view head);
  /// The counter `name`, in `unit`, is `value` from `at` on.
  void add_level(int process, std::string_view name, std::string_view unit, TraceTime at,
                 std::int64_t value);
  void add_level(int process, std::string_view name, std::string_view unit, TraceTime at,
                 double value);

  /// The whole trace; `metadata` is a JSON object about it.
  std::string finish(std::string_view metadata) &&;

 private:
  void begin(char phase, Track track);
  void add_counter(int process, std::string_view name, std::string_view unit, TraceTime at,
                   std::string_view value);

  std::string text_;
};

}  // namespace spillway
