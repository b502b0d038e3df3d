// What a measured run says, in words that a table can hold.
#pragma once

#include <fmt/format.h>

#include <string>

#include "model/run/measured_run.h"

namespace spillway::testing {

/// "jit_step/gemm.2 2.000 us x2 (2 launches) on 13": one line an instruction.
inline std::string describe_instructions(const MeasuredRun& run) {
  std::string text;
  for (const MeasuredInstruction& in : run.instructions)
    text += fmt::format("{}/{} {:.3f} us x{} ({} launches) on {}\n", in.module, in.name,
                        in.time.value() * 1e6, in.count, in.launches, in.stream);
  return text;
}

inline std::string describe_copies(const MeasuredRun& run) {
  std::string text;
  for (const CopyGroup& group : group_copies(run))
    text += fmt::format("{}, {} to {}: {} of {} B at {:.2f} GB/s\n", name_of(group.kind),
                        name_of(group.from), name_of(group.to), group.count, group.bytes.value(),
                        group.rate().value() / 1e9);
  return text;
}

inline std::string describe_streams(const MeasuredRun& run) {
  std::string text;
  for (const MeasuredStream& stream : run.streams)
    text += fmt::format("{}:{} kernels {:.3f} us, copies {:.3f} us, beside kernels {:.3f} us\n",
                        stream.device, stream.name, stream.kernel_time.value() * 1e6,
                        stream.copy_time.value() * 1e6, stream.copies_beside_kernels.value() * 1e6);
  return text;
}

inline std::string describe_modules(const MeasuredRun& run) {
  std::string text;
  for (const MeasuredModule& module : run.modules)
    text +=
        fmt::format("{} x{} {:.3f} us, every {:.3f} us\n", module.name, module.executions,
                    module.time.value() * 1e6, module.period.value_or(Seconds(0)).value() * 1e6);
  return text;
}

/// "missing: consequence", one line a note.
inline std::string describe_notes(const std::vector<RunNote>& notes) {
  std::string text;
  for (const RunNote& note : notes) text += note.missing + ": " + note.consequence + "\n";
  return text;
}

}  // namespace spillway::testing
