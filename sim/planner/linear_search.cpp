#include "sim/planner/linear_search.h"

#include <algorithm>

#include "sim/planner/choose_options.h"

namespace spillway {
namespace {

/// So many models at most, and solutions of each: most of what there is to gain comes first.
constexpr int kModels = 6;
constexpr int kSolutions = 3;

constexpr double kGibibyte = 1 << 30;
double gibibytes(Bytes size) { return static_cast<double>(size.value()) / kGibibyte; }

/// What is worth any time: the model decides as is_better() does, fitting first.
constexpr double kSecondsPerGibibyteAbove = 1e4;

class Model {
 public:
  Model(const Evaluator& evaluator, Bytes room, CaseBook& book)
      : budget_(evaluator.budget()), room_(room), book_(book), at_(book.best(room).policy) {
    for (const Handle& handle : evaluator.handles()) choices_.push_back(choices_of(handle));
  }

  std::optional<Error> simulate_shares() {
    std::vector<Policy> policies;
    for (std::size_t k = 0; k < choices_.size(); ++k)
      for (const Choice choice : choices_[k]) policies.push_back(with_choice(at_, k, choice));
    return book_.simulate(std::move(policies));
  }

  void fill() {
    const PolicyCase& at = book_.at(at_);
    for (std::size_t k = 0; k < choices_.size(); ++k) {
      std::vector<Option>& group = problem_.groups.emplace_back();
      for (const Choice choice : choices_[k]) {
        const PolicyCase& with = book_.at(with_choice(at_, k, choice));
        group.push_back(
            {(with.step - at.step).value(),
             {gibibytes(with.peak_device - at.peak_device), gibibytes(with.host - at.host),
              gibibytes(with.largest_block - at.largest_block)}});
      }
    }
    problem_.limits = {gibibytes(room_ - at.peak_device), gibibytes(budget_.host_room() - at.host),
                       gibibytes(budget_.block.value_or(budget_.hbm) - at.largest_block)};
    problem_.penalty = kSecondsPerGibibyteAbove;
  }

  /// The next best policy of the model; empty where there is none.
  Policy solve() {
    const std::vector<std::size_t> chosen = choose_options(problem_);
    if (chosen.empty()) return {};
    problem_.excluded.push_back(chosen);
    Policy policy;
    for (std::size_t k = 0; k < choices_.size(); ++k) policy.push_back(choices_[k][chosen[k]]);
    return policy;
  }

  /// Where a solution needs more than the model thought, the limits are that much tighter.
  void learn(const Policy& policy) {
    const PolicyCase& at = book_.at(at_);
    const PolicyCase& outcome = book_.at(policy);
    double device = gibibytes(outcome.peak_device - at.peak_device);
    double host = gibibytes(outcome.host - at.host);
    double block = gibibytes(outcome.largest_block - at.largest_block);
    for (std::size_t k = 0; k < choices_.size(); ++k) {
      const std::size_t option = problem_.excluded.back()[k];
      device -= problem_.groups[k][option].uses[0];
      host -= problem_.groups[k][option].uses[1];
      block -= problem_.groups[k][option].uses[2];
    }
    if (outcome.peak_device > room_) problem_.limits[0] -= std::max(device, 0.0);
    if (outcome.host > budget_.host_room()) problem_.limits[1] -= std::max(host, 0.0);
    if (outcome.fit.over_block > Bytes(0)) problem_.limits[2] -= std::max(block, 0.0);
  }

 private:
  const Budget& budget_;
  Bytes room_;
  CaseBook& book_;
  Policy at_;
  std::vector<std::vector<Choice>> choices_;
  OptionProblem problem_;
};

}  // namespace

std::optional<Error> search_linearly(const Evaluator& evaluator, Bytes room, CaseBook& book) {
  for (int models = 0; models < kModels; ++models) {
    const Policy before = book.best(room).policy;
    Model model(evaluator, room, book);
    if (auto wrong = model.simulate_shares()) return wrong;
    model.fill();
    for (int solutions = 0; solutions < kSolutions; ++solutions) {
      const Policy policy = model.solve();
      if (policy.empty()) break;
      if (auto wrong = book.simulate({policy})) return wrong;
      model.learn(policy);
    }
    if (book.best(room).policy == before) break;
  }
  return std::nullopt;
}

}  // namespace spillway
