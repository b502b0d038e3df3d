// What `plan` says beside the plan: what moving comes to, which values would be worth a name, how
// sure the answer is, and what it needs of a machine.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/planner/confidence.h"
#include "sim/planner/move_effects.h"
#include "sim/planner/requirements.h"
#include "sim/planner/sensitivity.h"
#include "sim/planner/unnamed_values.h"

namespace spillway {

/// What is asked beyond what every plan answers: these simulate other policies, and the plan on
/// other machines.
struct AnswerRequest {
  bool moves = false;        ///< and updating state on the host
  bool sensitivity = false;  ///< and the band
  bool need = false;
};

struct PlanAnswers {
  std::vector<MoveEffect> moves;
  std::optional<HostUpdate> host_update;
  Origin host_memory_origin;         ///< of the rate in `host_update`
  std::vector<WorthSaving> unnamed;  ///< beside what the plan saves
  std::vector<WorthSaving> instead;  ///< of a name that it saves
  std::optional<Sensitivity> sensitivity;
  std::optional<Confidence> confidence;
  std::optional<Requirements> requirements;
  std::vector<SizedRequirements> sized;  ///< of the plan's policy at other sizes
};

/// Values worth a name that are simulated and told; JSON has all.
inline constexpr std::size_t kUnnamedRows = 3;

/// An error: a policy cannot be simulated.
Result<PlanAnswers> make_plan_answers(const Evaluator& evaluator, const PlanResult& plan,
                                      const AnswerRequest& request, std::size_t threads);

/// What offloading one handle comes to, in a sentence.
std::string move_text(const MoveEffect& effect);

/// For a person; the heading of each section starts a line.
std::string answers_text(const PlanResult& plan, const PlanAnswers& answers);

/// Keys of the answer in JSON, each with its value as JSON text: "moves", "host_update", "unnamed",
/// "sensitivity", "confidence", "need". What was not asked is null.
std::vector<std::pair<std::string, std::string>> answers_json(const PlanResult& plan,
                                                              const PlanAnswers& answers);

}  // namespace spillway
