// What somebody measured while a program ran: what each instruction took, which copies there were,
// how long a step was, and what of it the file could not say. One type for all formats of profiles;
// read_run.h reads them.
//
// Left out: what happened on the host, and where in the step each kernel stood.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"
#include "model/cost/measured_costs.h"
#include "model/program/program.h"

namespace spillway {

enum class RunFormat : std::uint8_t {
  kNsightSystems,  ///< SQLite, as `nsys export --type sqlite` writes it
  kXPlane,         ///< .xplane.pb of jax.profiler
  kChromeTrace,    ///< .trace.json.gz beside it
  kPgle,           ///< costs for XLA's scheduler, which somebody averaged from a run
};
std::string_view name_of(RunFormat format);

/// One instruction, over all its executions in the file.
struct MeasuredInstruction {
  std::string name;    ///< in the HLO; in a PGLE file that by which XLA scheduled it
  std::string module;  ///< empty where the file does not say
  /// Of one execution, from the start of its first kernel or copy to the end of its last: the
  /// median. Of a collective on several devices what the rank took that came last.
  Seconds time{};
  Seconds shortest{}, longest{};
  std::int64_t count = 0;     ///< executions on all devices; 0 where the file does not say
  std::int64_t launches = 0;  ///< kernels and copies in them
  std::string stream;         ///< of the first launch; empty where the file does not say
  bool collective = false;
};

/// Where the memory of one end of a copy lies.
enum class MemoryPlace : std::uint8_t { kUnknown, kPageable, kPinned, kDevice, kManaged };
std::string_view name_of(MemoryPlace place);

enum class CopyKind : std::uint8_t {
  kHostToDevice,
  kDeviceToHost,
  kWithinDevice,
  kBetweenDevices,
  kOther
};
std::string_view name_of(CopyKind kind);

/// One copy by a copy engine.
struct MeasuredCopy {
  CopyKind kind = CopyKind::kOther;
  MemoryPlace from = MemoryPlace::kUnknown, to = MemoryPlace::kUnknown;
  Bytes bytes{};
  Seconds time{};
  Seconds beside_kernels{};   ///< the part of `time` in which a kernel ran on the device
  Seconds beside_opposite{};  ///< likewise a copy of the other direction across the link
  std::int64_t device = 0;
};

/// Copies of one direction between the same kinds of memory, together: C05's table.
struct CopyGroup {
  CopyKind kind = CopyKind::kOther;
  MemoryPlace from = MemoryPlace::kUnknown, to = MemoryPlace::kUnknown;
  std::int64_t count = 0;
  Bytes bytes{};
  Seconds time{};

  BytesPerSecond rate() const {
    return BytesPerSecond(static_cast<double>(bytes.value()) / time.value());
  }
};

/// A stream of one device.
struct MeasuredStream {
  std::int64_t device = 0;
  std::string name;
  std::int64_t kernels = 0, copies = 0;
  Seconds kernel_time{};            ///< kernels ran on it
  Seconds copy_time{};              ///< copies across the host link ran on it
  Seconds copies_beside_kernels{};  ///< the part of `copy_time` in which a kernel ran on another
};

/// A compiled program that ran, most often the training step.
struct MeasuredModule {
  std::string name;
  std::int64_t executions = 0;  ///< on all devices
  /// From the start of its first kernel to the end of its last, median over executions.
  Seconds time{};
  std::optional<Seconds> period{};  ///< from one start to the next on a device, median
};

/// What of a file was not there or could not be read, and what that means for what it is used for.
struct RunNote {
  std::string missing;
  std::string consequence;
};

struct MeasuredRun {
  RunFormat format = RunFormat::kXPlane;
  std::string path;
  bool is_modelled = false;  ///< its costs are the cost model's (pgle.h), and nobody measured them
  std::string device;        ///< as the driver names the first: "NVIDIA H200"; empty where not said
  std::vector<MeasuredInstruction> instructions;  ///< longest in all first
  std::vector<MeasuredCopy> copies;               ///< by device and start
  std::vector<MeasuredStream> streams;
  std::vector<MeasuredModule> modules;  ///< longest in all first
  std::vector<std::string> read;        ///< what was: "412 kernels on 2 devices"
  std::vector<RunNote> notes;
};

/// By direction and kinds of memory, most bytes first.
std::vector<CopyGroup> group_copies(const MeasuredRun& run);

/// What of a run belongs to a program.
struct RunOfProgram {
  MeasuredTimes times;  ///< by the names of the program's instructions
  /// The step, where the file has one: of the module with the program's name, or of the only one
  /// whose instructions are those of the program.
  std::optional<MeasuredModule> step;
  std::string module;  ///< the name by which the file has the program; empty where it has none
  std::vector<RunNote> notes;
};

/// Finds the program's module in the run and its instructions by name; those of a PGLE file by
/// what XLA scheduled them as.
RunOfProgram match_run(const Program& program, const MeasuredRun& run);

}  // namespace spillway
