#include "sim/report/plan_answers.h"

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
