#include "sim/planner/recomputed_bases.h"

#include <string_view>

namespace spillway {
namespace {

std::shared_ptr<const RecomputedBase> make(const Program& program, const ResidualTable& residuals,
                                           const RecomputeRewrite& recompute,
                                           const std::vector<ResidualId>& recomputed) {
  auto base = std::make_shared<RecomputedBase>();
  base->program = recompute.run(recomputed);
  base->memory = find_lifetimes(base->program, text_schedule(base->program).value());
  base->residuals = find_residuals(base->program, base->memory, {});
  // What is still saved keeps the names of the instructions that write it.
  std::map<std::string_view, ResidualId> by_writer;
  for (const ResidualId id : ids(base->residuals.residuals))
    by_writer.emplace(base->program[base->residuals.residuals[id].write.instruction].name, id);
  base->now.resize(residuals.residuals.size());
  for (const ResidualId id : ids(residuals.residuals)) {
    const std::string_view writer = program[residuals.residuals[id].write.instruction].name;
    // A writer that was taken apart has its name with something behind it.
    const auto found = by_writer.lower_bound(writer);
    if (found != by_writer.end() && found->first.starts_with(writer) &&
        (found->first == writer || found->first[writer.size()] == '.'))
      base->now[id] = found->second;
  }
  return base;
}

}  // namespace

std::shared_ptr<const RecomputedBase> RecomputedBases::with(
    const Program& program, const ResidualTable& residuals, const RecomputeRewrite& recompute,
    const std::vector<ResidualId>& recomputed) const {
  Key key{&recompute, recomputed};
  {
    const std::lock_guard lock(mutex_);
    const auto known = made_.find(key);
    if (known != made_.end()) return known->second;
  }
  // Two threads may make the same one at the same time: better than to wait for each other.
  auto base = make(program, residuals, recompute, recomputed);
  const std::lock_guard lock(mutex_);
  const auto [placed, is_new] = made_.try_emplace(key, std::move(base));
  std::shared_ptr<const RecomputedBase> result = placed->second;
  if (is_new) oldest_first_.push_back(std::move(key));
  for (; oldest_first_.size() > most_; oldest_first_.pop_front())
    made_.erase(oldest_first_.front());
  return result;
}

}  // namespace spillway
