// What `plan` answers, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics/diagnostics.h"
#include "model/flags/check_flags.h"
#include "sim/planner/advice.h"
#include "sim/planner/anchor.h"
#include "sim/planner/flag_search.h"
#include "sim/planner/pgle_advice.h"
#include "sim/planner/planner.h"
#include "sim/report/plan_answers.h"

namespace spillway {

/// A profile for XLA's scheduler that was written beside the answer.
struct PgleReport {
  std::string path;
  std::size_t costs = 0, host_copies = 0;
  PgleAdvice advice;
};

/// What the user says of XLA's flags.
struct FlagRequest {
  /// The version that will run the plan; empty: the sidecar's, or the newest known.
  std::optional<JaxlibVersion> jaxlib = {};
  std::optional<FlagText> flags = {};  ///< the user's own
};

struct PlanReport {
  std::string program_name, path, hardware;
  std::size_t modules_in_folder = 1;  ///< of which this one was picked
  Budget budget;
  PlanResult plan;
  Advice advice;
  SimResult best_run;                   ///< the best policy in detail
  Program planned;                      ///< names of `best_run` refer to it
  bool has_names = false;               ///< a sidecar was given
  std::vector<Diagnostic> diagnostics;  ///< of the program as compiled, those that bear on a plan
  std::vector<std::string> unnamed;     ///< residuals that no name reaches, and so stay
  std::vector<std::string> unmatched;   ///< names that no residual carries
  std::vector<std::string> objections;  ///< of check_plan; empty when it agrees
  std::optional<Anchor> anchor;         ///< on what run all of this rests
  PlanAnswers answers;                  ///< to the questions that come next
  std::optional<PgleReport> pgle;
  JaxlibVersion jaxlib;            ///< whose flags are recommended
  bool jaxlib_is_assumed = false;  ///< nobody said which
  std::string no_flags_because;    ///< why none is recommended at all; empty when any may be
  FlagSearch flag_search;          ///< of the best policy; its flags lead those of `advice`
  FlagContext flag_context;        ///< where its flags apply
  FlagSettings user_settings;      ///< what the user sets
  std::optional<std::vector<Diagnostic>> user_flags;  ///< what is wrong with those, if given
};

/// Searches, unless it is anchored on a run that it does not come near enough to, checks the result
/// with check_plan, and gathers what a person needs. An error: a policy cannot be simulated, or a
/// version that was asked for has flags that are not known.
Result<PlanReport> make_plan_report(const Program& program, const Schedule& schedule,
                                    const HardwareProfile& profile, const Topology& topology,
                                    const NameList& names, const Budget& budget,
                                    const PlanOptions& options, const FlagRequest& flags = {},
                                    std::optional<CopyStreams> copy_streams = {},
                                    const AnswerRequest& asked = {},
                                    const std::optional<Anchor>& anchor = {});

/// What to say of a profile of the program as compiled, that is to be written to `path`.
PgleReport make_pgle_report(const PlanReport& report, const PgleProfile& profile,
                            const std::string& path);

/// For a person.
std::string render_text(const PlanReport& report);
/// Schema spillway.plan/1.
std::string render_json(const PlanReport& report);

/// Why one name went where it did.
struct Explanation {
  std::string name;  ///< as asked for
  /// Empty for a name of the sidecar that no residual carries.
  std::optional<Choice> choice;
  Bytes bytes;  ///< of all its residuals on one device
  std::size_t residuals = 0;
  std::string text;
};

/// Refused: a name that neither the program nor the sidecar knows.
Result<Explanation> explain(const PlanReport& report, const std::string& name);
std::string render_text(const Explanation& explanation);
/// Schema spillway.plan/1, reduced to what was asked: program, hardware, fits and `explain`.
std::string render_json(const PlanReport& report, const Explanation& explanation);

}  // namespace spillway
