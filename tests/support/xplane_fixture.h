// Profiles as jax.profiler writes them, of a few events, written with the proto's own writer.
#pragma once

#include <map>
#include <string>

#include "model/run/proto/xplane.pb.h"

namespace spillway::testing {

/// A plane of a device; names get their ids as they come.
class PlaneFixture {
 public:
  PlaneFixture(pb::XSpace& space, const std::string& name) : plane_(*space.add_planes()) {
    plane_.set_name(name);
  }

  pb::XLine& line(const std::string& name, std::int64_t timestamp_ns) {
    pb::XLine& line = *plane_.add_lines();
    line.set_name(name);
    line.set_timestamp_ns(timestamp_ns);
    return line;
  }

  /// Times in ns after the line's start.
  pb::XEvent& event(pb::XLine& line, const std::string& name, std::int64_t start,
                    std::int64_t length) {
    pb::XEvent& event = *line.add_events();
    const auto [known, is_new] = events_.try_emplace(name, events_.size() + 1);
    if (is_new) (*plane_.mutable_event_metadata())[known->second].set_name(name);
    event.set_metadata_id(known->second);
    event.set_offset_ps(start * 1000);
    event.set_duration_ps(length * 1000);
    return event;
  }

  /// Text is in the stat or, as XLA prefers, by the id of a name.
  void stat(pb::XEvent& event, const std::string& name, const std::string& value,
            bool by_reference = true) {
    pb::XStat& stat = *event.add_stats();
    stat.set_metadata_id(id_of(name));
    if (by_reference)
      stat.set_ref_value(static_cast<std::uint64_t>(id_of(value)));
    else
      stat.set_str_value(value);
  }

  void kernel(pb::XLine& line, const std::string& name, const std::string& op, std::int64_t start,
              std::int64_t length, const std::string& module = "jit_step") {
    pb::XEvent& added = event(line, name, start, length);
    if (!op.empty()) stat(added, "hlo_op", op);
    if (!module.empty()) stat(added, "hlo_module", module);
  }

  void copy(pb::XLine& line, const std::string& name, const std::string& op,
            const std::string& details, std::int64_t start, std::int64_t length) {
    pb::XEvent& added = event(line, name, start, length);
    if (!op.empty()) stat(added, "hlo_op", op);
    stat(added, "hlo_module", "jit_step");
    stat(added, "memcpy_details", details, false);
  }

 private:
  std::int64_t id_of(const std::string& name) {
    const auto [known, is_new] = stats_.try_emplace(name, stats_.size() + 1);
    if (is_new) (*plane_.mutable_stat_metadata())[known->second].set_name(name);
    return known->second;
  }

  pb::XPlane& plane_;
  std::map<std::string, std::int64_t> events_, stats_;
};

/// The steps of nsys_fixture.h as a device plane sees them, on `device`, `late` ns after the
/// others.
inline void add_two_steps(pb::XSpace& space, int device, std::int64_t late = 0) {
  PlaneFixture plane(space, "/device:GPU:" + std::to_string(device));
  // The epoch's nanoseconds, of which picoseconds would not fit.
  const std::int64_t epoch = 1700000000000000000;
  pb::XLine& compute = plane.line("Stream #13(Compute)", epoch + late);
  pb::XLine& copies = plane.line("Stream #14(MemcpyD2H)", epoch + late + 500);
  for (std::int64_t at : {0, 10000}) {
    plane.kernel(compute, "loop_fusion", "fusion.1", at + 1000, 300);
    plane.kernel(compute, "reduce_kernel", "fusion.1", at + 1400, 400);
    plane.kernel(compute, "sm90_gemm", "gemm.2", at + 2000, 2000);
    plane.copy(copies, "MemcpyD2H", "copy-start.3",
               "kind_src:device kind_dst:pinned size:100000 dest:0 async:1", at + 2000, 2000);
  }
}

}  // namespace spillway::testing
