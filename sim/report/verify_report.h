// What `verify` answers: a plan beside what XLA compiled for it, figure by figure, and why they
// differ. Computed once, and written down as text or JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/compare/compare.h"
#include "model/plan/not_done.h"
#include "sim/report/step_figures.h"

namespace spillway {

/// By how much a figure may differ, as a share of what was predicted.
struct VerifyTolerances {
  double device = 0.01;
  double host = 0;
  double moved = 0;  ///< over the link, each direction
  double flops = 0.005;
  double step = 0.05;
};

/// A figure on both sides. Bytes are exact in a double: a step has fewer than 2^53.
struct VerifiedFigure {
  enum class Unit { kBytes, kFlops, kSeconds };

  const char* name;  ///< for people; a part of another one is indented
  const char* json;
  Unit unit = Unit::kBytes;
  double predicted = 0, compiled = 0;
  std::optional<double> tolerance;  ///< none: shown, and not judged

  double difference() const { return compiled - predicted; }
  /// Infinite where nothing was predicted and something is there.
  double relative_difference() const;
  bool agrees() const;
};

/// Why something is not as planned.
struct Cause {
  std::string code;
  std::string what;
  std::string advice;  ///< may be empty
};

struct VerifyReport {
  std::string program_name, path, plan_path, hardware;
  bool is_other_machine = false;  ///< than the plan's: times are shown, and not judged
  std::vector<std::pair<std::string, Choice>> policy;
  std::vector<VerifiedFigure> figures;
  std::vector<NotDone> not_done;
  Bytes more_state_on_host;  ///< than planned
  /// How often a step goes through its layers: micro batches, where gradients are accumulated.
  std::int64_t passes = 1;
  /// Layers are not scanned: what each has on the host is there for a part of the step only.
  bool is_unrolled = false;
  std::vector<Cause> causes;
  /// What only the prediction has (first), or only the compiled program; each only where a figure
  /// that it bears on differs by more than names and state account for, and no smaller than a
  /// twentieth of that difference.
  Excess buffers, host_arrays, offloads, reloads;
  std::vector<std::string> assumptions;

  bool agrees() const;
};

/// What to compare with, and how.
struct VerifyContext {
  const NameList& names;  ///< of the compiled program; may be empty
  const HardwareProfile& profile;
  const Topology& topology;
  std::optional<CopyStreams> copy_streams = {};
  std::optional<JaxlibVersion> jaxlib = {};  ///< that compiled it, where known
  VerifyTolerances tolerances = {};
};

/// Runs the compiled program as it is. Refused, as the input's mistake: a program that cannot be
/// the plan's, since its module, number of devices or arguments are others.
Result<VerifyReport> make_verify_report(const PlanFile& plan, const std::string& plan_path,
                                        const Program& compiled, const VerifyContext& context);

/// For a person.
std::string render_text(const VerifyReport& report);
/// Schema spillway.verify/1.
std::string render_json(const VerifyReport& report);

}  // namespace spillway
