#include "sim/planner/recomputed_bases.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace spillway {
namespace {

/// Of each residual, the one that is left of it. What is still saved keeps the name of the
/// instruction that writes it, with something behind it where the writer was taken apart.
IdVector<ResidualId, std::optional<ResidualId>> find_again(const Program& before,
                                                           const ResidualTable& residuals,
                                                           const Program& after,
                                                           const ResidualTable& left) {
  const auto writer = [](const Program& program, const Residual& residual) {
    return std::pair(program[residual.write.instruction].name, residual.write.operand);
  };
  std::map<std::pair<std::string_view, std::uint32_t>, ResidualId> by_writer;
  for (const ResidualId id : ids(left.residuals))
    by_writer.emplace(writer(after, left.residuals[id]), id);
  std::set<std::string_view> writers_before;
  for (const Residual& residual : residuals.residuals)
    writers_before.insert(writer(before, residual).first);

  IdVector<ResidualId, std::optional<ResidualId>> now(residuals.residuals.size());
  for (const ResidualId id : ids(residuals.residuals)) {
    const auto own = writer(before, residuals.residuals[id]);
    if (const auto same = by_writer.find(own); same != by_writer.end()) {
      now[id] = same->second;
      continue;
    }
    const std::string part_of = std::string(own.first) + ".";
    for (const auto& [other, left_id] : by_writer)
      if (other.first.starts_with(part_of) && !writers_before.contains(other.first) && !now[id])
        now[id] = left_id;
  }
  return now;
}

std::shared_ptr<const RecomputedBase> make(const Program& program, const ResidualTable& residuals,
                                           const RecomputeRewrite& recompute,
                                           const std::vector<ResidualId>& recomputed) {
  auto base = std::make_shared<RecomputedBase>();
  base->program = recompute.run(recomputed);
  base->memory = find_lifetimes(base->program, text_schedule(base->program).value());
  base->residuals = find_residuals(base->program, base->memory, {});
  base->now = find_again(program, residuals, base->program, base->residuals);
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
