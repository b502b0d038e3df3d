// What XLA's profiler writes about a copy into one text, which XPlane and trace.json share:
//   kind_src:pinned kind_dst:device size:4194304 dest:0 async:1
// and older versions: kind:pinned size:4194304 dest:0 async:1.
#pragma once

#include <string_view>

#include "model/run/gpu_events.h"

namespace spillway {

/// Fills in kind, places and bytes of a copy. `name` is the event's: "MemcpyD2H" says the
/// direction, where the text has only one kind of memory. False where the text has no size.
bool read_copy_details(std::string_view name, std::string_view details, GpuEvent& copy);

/// Whether an event is a copy by its name: "MemcpyH2D", "CopyDeviceToDevice".
bool is_copy_name(std::string_view name);
bool is_fill_name(std::string_view name);

/// The innermost of "while.3::fusion.1": nested executions join their names.
std::string_view innermost_name(std::string_view hlo_op);

}  // namespace spillway
