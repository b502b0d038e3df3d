// Reader of the profiles that steer XLA's latency-hiding scheduler (PGLE, FDO): what instructions
// took, by the names they had when XLA scheduled them. XLA's ProfiledInstructionsProto, as text
// (.pbtxt) or in its wire format.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/base/result.h"
#include "model/program/program.h"

namespace spillway {

/// Microseconds, as the file has them.
struct ProfiledInstructions {
  std::map<std::string, double, std::less<>> cost_us;
  /// From an async start to its done, by their names.
  std::map<std::pair<std::string, std::string>, double> latency_us;
};

/// As XLA takes a profile in: of costs named "fingerprint::name", only those of `fingerprint` (the
/// module's frontend attribute fingerprint_before_lhs); clones of rematerialisation ("x.remat2")
/// are averaged into what they were cloned from, and then the file's latencies count nothing. A
/// name ending in .pb is of the wire format, one in .pbtxt of text, as to XLA; else the bytes
/// decide. An error where they are no such profile.
Result<ProfiledInstructions> parse_pgle(std::string_view bytes, const std::string& path,
                                        std::string_view fingerprint = "");

/// A comment of every profile that write_pgle.h makes: its costs are the model's, and in a unit of
/// their own, and nobody measured them.
inline constexpr std::string_view kModelledProfileMark = ": a profile for XLA's scheduler.";
bool is_modelled_profile(std::string_view bytes);

/// The module's fingerprint, by which a profile of several modules says whose a cost is; empty
/// where the program was not read from text, or has none. A view into the program's text.
std::string_view fingerprint_before_lhs(const Program& program);

/// Reads a file, packed or not.
Result<ProfiledInstructions> read_pgle(const std::string& path, std::string_view fingerprint = "");

/// The name by which XLA scheduled an instruction, and looks up its cost: its metadata's
/// scheduling_name. Its own where there is none, or where that is of a get-tuple-element, whose
/// place a copy took after scheduling, metadata and all. A clone of rematerialisation, made later,
/// goes by the name of what it was cloned from. The view is of the program's text.
std::string_view scheduling_name(const Computation& computation, InstructionIndex i);

}  // namespace spillway
