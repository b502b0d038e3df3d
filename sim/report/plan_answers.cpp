#include "sim/report/plan_answers.h"

#include "sim/planner/simulate_saving.h"

namespace spillway {

Result<PlanAnswers> make_plan_answers(const Evaluator& evaluator, const PlanResult& plan,
                                      const AnswerRequest& request, std::size_t threads) {
  PlanAnswers answers;
  if (request.moves) {
    Result<std::vector<MoveEffect>> moves =
        move_effects(evaluator, plan.best.policy, plan.order, threads);
    if (!moves.ok()) return moves.error();
    answers.moves = *std::move(moves);
    answers.host_update = estimate_host_update(evaluator);
    answers.host_memory_origin = evaluator.profile().host.memory_bandwidth.origin;
  }
  answers.unnamed = find_unnamed_values(evaluator, plan.best.policy);
  if (auto wrong = simulate_saving(evaluator, plan.best, plan.order, kUnnamedRows, answers.unnamed))
    return *wrong;
  if (plan.fits) {
    Result<std::vector<WorthSaving>> instead = find_saved_instead(evaluator, plan, threads);
    if (!instead.ok()) return instead.error();
    answers.instead = *std::move(instead);
  }
  if (request.sensitivity) {
    Result<Sensitivity> sensitivity = find_sensitivity(evaluator, plan, threads);
    if (!sensitivity.ok()) return sensitivity.error();
    answers.sensitivity = *std::move(sensitivity);
    Result<Confidence> confidence =
        find_confidence(evaluator, plan, default_doubts(evaluator.profile()), threads);
    if (!confidence.ok()) return confidence.error();
    answers.confidence = *std::move(confidence);
  }
  if (request.need) {
    Result<Requirements> requirements = find_requirements(evaluator, plan);
    if (!requirements.ok()) return requirements.error();
    answers.requirements = *std::move(requirements);
  }
  return answers;
}

}  // namespace spillway
