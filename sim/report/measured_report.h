// A simulated step beside a measured one: what the model says of each instruction and each copy and
// what it took, where the difference costs most, and the step as a whole.
#pragma once

#include <string>
#include <vector>

#include "model/run/measured_run.h"
#include "sim/prepared_step.h"

namespace spillway {

/// An instruction that was measured and simulated. Times are of one execution, what ran beside it
/// included.
struct MeasuredAgainst {
  InstructionId id;
  StepOrigin::Kind kind = StepOrigin::kKernel;
  std::optional<TransferDirection> direction{};  ///< of copies across the host link
  KernelClass kernel = KernelClass::kFree;
  Bound bound = Bound::kNone;
  std::int64_t runs = 0;  ///< in a step
  Seconds predicted{}, measured{};
  Bytes bytes{};  ///< of a copy, in one execution

  /// Time of a step that the model does not see; negative where it sees too much.
  Seconds lost() const { return (measured - predicted) * static_cast<double>(runs); }
};

/// Instructions of one kind together, over a step.
struct MeasuredClass {
  std::string name;
  std::int64_t instructions = 0;
  Seconds predicted{}, measured{};
};

struct MeasuredReport {
  std::string path;
  RunFormat format = RunFormat::kXPlane;
  std::vector<std::string> read;
  std::vector<RunNote> notes;
  Seconds predicted_step{};
  std::optional<MeasuredModule> step{};       ///< where the run has one
  std::vector<MeasuredAgainst> instructions;  ///< most lost first, by size
  std::vector<MeasuredClass> classes;         ///< longest measured first
  std::int64_t unmeasured = 0;                ///< instructions that run and were not measured
  Seconds unmeasured_time{};                  ///< by the model, in a step
  std::int64_t unmatched = 0;                 ///< names that the program lacks
  std::vector<CopyGroup> copies;              ///< of the run, by direction and kind of memory
  std::vector<MeasuredStream> streams;        ///< of the run, with what overlapped
};

MeasuredReport make_measured_report(const Program& program, const PreparedStep& prepared,
                                    const engine::EngineResult& run, const MeasuredRun& measured);

/// For a person: a section behind the answer of `simulate`.
std::string measured_text(const Program& program, const MeasuredReport& report);
/// An object for the answer's key "measured".
std::string measured_json(const Program& program, const MeasuredReport& report);

}  // namespace spillway
