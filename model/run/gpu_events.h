// What profilers of GPUs have in common: kernels, copies and fills, each with its start and end on
// a stream of a device. The readers of profiles fill this in; summarize() makes a MeasuredRun of
// it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/ids.h"
#include "model/run/measured_run.h"

namespace spillway {

/// A name that many events share. The first one is empty: what is not known.
using RunNameId = Id<struct RunNameTag>;

class RunNames {
 public:
  RunNames() { intern(""); }
  RunNameId intern(std::string_view name);
  const std::string& operator[](RunNameId id) const { return names_[id]; }

 private:
  IdVector<RunNameId, std::string> names_;
  std::map<std::string, RunNameId, std::less<>> ids_;
};

/// One kernel, copy or fill.
///
///   execution of an instruction   |-------------------)
///   its events                    [kernel)  [kernel)
struct GpuEvent {
  enum class Kind : std::uint8_t { kKernel, kCopy, kFill };
  Kind kind = Kind::kKernel;
  CopyKind copy = CopyKind::kOther;  ///< of copies, as the following three
  MemoryPlace from = MemoryPlace::kUnknown, to = MemoryPlace::kUnknown;
  Bytes bytes{};
  std::int64_t device = 0;
  SimTime start, end;  ///< since any moment that all events share
  RunNameId stream, kernel, instruction, module;
  /// Which execution of its instruction and of its module it belongs to, where the profiler says.
  std::optional<std::int64_t> execution{}, module_execution{};
};

struct GpuEvents {
  RunNames names;
  std::vector<GpuEvent> events;
};

/// Fills in all of `run` but its format, path and the notes of its reader: instructions, copies,
/// streams, modules, and what was read. Executions that the profiler does not tell apart are told
/// by their kernels: those of one instruction that follow one another on a stream are one execution
/// until the first kernel's name comes again; a module begins anew with its first instruction that
/// runs once a step.
void summarize(GpuEvents all, MeasuredRun& run);

}  // namespace spillway
