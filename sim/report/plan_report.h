// What `plan` answers, as text and as JSON.
#pragma once

#include <string>

#include "sim/planner/advice.h"
#include "sim/planner/planner.h"

namespace spillway {

struct PlanReport {
  std::string program_name, path, hardware;
  Budget budget;
  PlanResult plan;
  Advice advice;
  SimResult best_run;                   ///< the best policy in detail
  Program planned;                      ///< names of `best_run` refer to it
  std::vector<std::string> unnamed;     ///< residuals that no name reaches, and so stay
  std::vector<std::string> objections;  ///< of check_plan; empty when it agrees
  bool has_names = false;
};

/// Searches, checks the result with check_plan, and gathers what a person needs.
PlanReport make_plan_report(const Program& program, const Schedule& schedule,
                            const HardwareProfile& profile, const Topology& topology,
                            const NameList& names, const BudgetWishes& wishes,
                            const PlanOptions& options);

/// For a person; with `explain` only what concerns that name.
std::string render_text(const PlanReport& report);
std::string render_explanation(const PlanReport& report, const std::string& name);
/// Schema spillway.plan/1.
std::string render_json(const PlanReport& report);

}  // namespace spillway
