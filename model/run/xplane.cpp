#include "model/run/xplane.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "model/base/format.h"
#include "model/base/utf8.h"
#include "model/run/copy_details.h"
#include "model/run/gpu_events.h"
#include "model/run/proto/xplane.pb.h"

namespace spillway {
namespace {

constexpr std::string_view kDevicePlane = "/device:GPU:";

bool parse(std::string_view bytes, pb::XSpace& space) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  // What parses up to where a cut file ends stays in `space`.
  return space.MergeFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

bool has_named_plane(const pb::XSpace& space) {
  return std::ranges::any_of(space.planes(), [](const pb::XPlane& p) { return !p.name().empty(); });
}

/// Times in picoseconds from the start of the profile; a damaged file's stay in the range.
SimTime sum(SimTime a, std::int64_t ps) {
  std::int64_t total = 0;
  if (__builtin_add_overflow(a.value(), ps, &total))
    total = std::numeric_limits<std::int64_t>::max();
  return SimTime(total);
}

class PlaneReader {
 public:
  PlaneReader(const pb::XPlane& plane, std::int64_t device, std::int64_t origin_ns,
              GpuEvents& result)
      : plane_(plane), device_(device), origin_ns_(origin_ns), result_(result) {
    for (const auto& [id, stat] : plane.stat_metadata()) {
      if (stat.name() == "hlo_op") hlo_op_ = id;
      if (stat.name() == "hlo_module") hlo_module_ = id;
      if (stat.name() == "memcpy_details") memcpy_ = id;
    }
  }

  void run() {
    const auto is_stream = [](const pb::XLine& line) { return line.name().starts_with("Stream "); };
    const bool has_streams = std::ranges::any_of(plane_.lines(), is_stream);
    const auto is_derived = [](const pb::XLine& line) { return line.name() == "XLA Ops"; };
    derived_only = !has_streams && std::ranges::any_of(plane_.lines(), is_derived);
    for (const pb::XLine& line : plane_.lines())
      if (derived_only ? is_derived(line) : is_stream(line)) read_line(line);
  }

  bool derived_only = false;
  std::int64_t copies_without_size = 0;

 private:
  void read_line(const pb::XLine& line) {
    const RunNameId stream = result_.names.intern(line.name());
    const auto base = static_cast<double>(line.timestamp_ns() - origin_ns_) * 1000;
    const SimTime line_start = to_sim_time(Seconds(base * 1e-12));
    for (const pb::XEvent& event : line.events()) {
      const auto found = plane_.event_metadata().find(event.metadata_id());
      static const pb::XEventMetadata kNone;
      const pb::XEventMetadata& metadata =
          found == plane_.event_metadata().end() ? kNone : found->second;
      read_event(event, metadata, stream, line_start);
    }
  }

  void read_event(const pb::XEvent& event, const pb::XEventMetadata& metadata, RunNameId stream,
                  SimTime line_start) {
    if (event.duration_ps() < 0) return;
    GpuEvent read;
    read.device = device_;
    read.stream = stream;
    read.start = sum(line_start, event.offset_ps());
    read.end = sum(read.start, event.duration_ps());
    read.kernel = result_.names.intern(metadata.name());
    std::string_view op, module, details;
    for (const auto* stats : {&metadata.stats(), &event.stats()})
      for (const pb::XStat& stat : *stats) {
        if (stat.metadata_id() == hlo_op_) op = text_of(stat);
        if (stat.metadata_id() == hlo_module_) module = text_of(stat);
        if (stat.metadata_id() == memcpy_) details = text_of(stat);
      }
    if (derived_only && op.empty()) op = metadata.name();
    read.instruction = result_.names.intern(innermost_name(op));
    read.module = result_.names.intern(module);
    if (is_fill_name(metadata.name())) read.kind = GpuEvent::Kind::kFill;
    if (!details.empty() || is_copy_name(metadata.name()))
      copies_without_size += read_copy_details(metadata.name(), details, read) ? 0 : 1;
    result_.events.push_back(read);
  }

  std::string_view text_of(const pb::XStat& stat) const {
    if (stat.value_case() == pb::XStat::kStrValue) return stat.str_value();
    if (stat.value_case() == pb::XStat::kBytesValue) return stat.bytes_value();
    if (stat.value_case() != pb::XStat::kRefValue) return {};
    const auto found = plane_.stat_metadata().find(static_cast<std::int64_t>(stat.ref_value()));
    return found == plane_.stat_metadata().end() ? std::string_view() : found->second.name();
  }

  const pb::XPlane& plane_;
  std::int64_t device_;
  std::int64_t origin_ns_;
  GpuEvents& result_;
  std::int64_t hlo_op_ = -1, hlo_module_ = -1, memcpy_ = -1;
};

std::optional<std::int64_t> device_of(const pb::XPlane& plane) {
  const std::string_view name = plane.name();
  if (!name.starts_with(kDevicePlane)) return std::nullopt;
  std::int64_t device = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kDevicePlane.size(), end, device);
  return error == std::errc() ? std::optional(device) : std::nullopt;
}

/// The earliest line: lines begin at nanoseconds of the epoch, of which picoseconds are too many.
std::int64_t earliest_line(const pb::XSpace& space) {
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (const pb::XPlane& plane : space.planes())
    if (device_of(plane))
      for (const pb::XLine& line : plane.lines())
        if (!line.events().empty()) earliest = std::min(earliest, line.timestamp_ns());
  return earliest == std::numeric_limits<std::int64_t>::max() ? 0 : earliest;
}

Error no_device(const pb::XSpace& space, const std::string& path) {
  std::string planes;
  for (const pb::XPlane& plane : space.planes())
    planes += (planes.empty() ? "" : ", ") + printable_line(plane.name());
  return error_in_file(path, "no GPU ran anything in this profile",
                       "its planes are " + planes +
                           "; CUPTI serves one profiler at a time: was another one attached?");
}

}  // namespace

bool is_xplane(std::string_view bytes) {
  google::protobuf::Arena arena;
  auto& space = *google::protobuf::Arena::CreateMessage<pb::XSpace>(&arena);
  parse(bytes, space);
  return has_named_plane(space);
}

Result<MeasuredRun> parse_xplane(std::string_view bytes, const std::string& path) {
  google::protobuf::Arena arena;
  auto& space = *google::protobuf::Arena::CreateMessage<pb::XSpace>(&arena);
  const bool whole = parse(bytes, space);
  if (!has_named_plane(space))
    return error_in_file(path, "is no XSpace of a profiler", "the file is called .xplane.pb");
  MeasuredRun run;
  run.format = RunFormat::kXPlane;
  run.path = path;
  GpuEvents all;
  const std::int64_t origin_ns = earliest_line(space);
  std::int64_t copies_without_size = 0;
  bool derived = false;
  for (const pb::XPlane& plane : space.planes()) {
    const auto device = device_of(plane);
    if (!device) continue;
    PlaneReader reader(plane, *device, origin_ns, all);
    reader.run();
    copies_without_size += reader.copies_without_size;
    derived = derived || reader.derived_only;
  }
  if (all.events.empty()) return no_device(space, path);
  if (!whole)
    run.notes.push_back({"the file ends before its proto does", "what stands before is read"});
  if (derived)
    run.notes.push_back({"a device has no lines of streams, only those derived from them",
                         "which stream an instruction ran on is not known"});
  if (copies_without_size > 0)
    run.notes.push_back(
        {format_count(copies_without_size) + " copies do not say their size", "they give no rate"});
  for (const std::string& error : space.errors())
    run.notes.push_back({"the profiler reports: " + printable_line(error), ""});
  summarize(std::move(all), run);
  return run;
}

}  // namespace spillway
