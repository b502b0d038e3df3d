#include "sim/planner/layer_split.h"

#include <algorithm>

namespace spillway {
namespace {

/// Of all residuals of a name; 0 where they have different numbers of layers, or there are none.
std::int64_t layers_of(const Evaluator& evaluator, const Handle& handle) {
  std::int64_t layers = 0;
  for (const ResidualId id : handle.residuals) {
    const std::int64_t of_this = evaluator.residuals().residuals[id].layers;
    if (layers != 0 && of_this != layers) return 0;
    layers = of_this;
  }
  return layers;
}

/// The share of what is needed more that there is room for.
double share_with_room(Bytes need, Bytes plan, Bytes limit) {
  return need <= limit ? 1 : ratio(limit - plan, need - plan);
}

Bytes scaled(Bytes size, double part) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(size.value()) * part));
}

}  // namespace

std::optional<LayerSplit> find_layer_split(const Evaluator& evaluator, const CaseBook& book) {
  const PolicyCase& plan = book.best();
  const Budget& budget = evaluator.budget();
  std::optional<LayerSplit> fastest;
  for (std::size_t k = 0; k < plan.policy.size(); ++k) {
    const Handle& handle = evaluator.handles()[k];
    const std::int64_t all = layers_of(evaluator, handle);
    for (const Choice choice : choices_of(handle)) {
      Policy policy = plan.policy;
      policy[k] = choice;
      const PolicyCase& other = book.at(policy);
      if (other.fit.fits || other.step >= plan.step) continue;
      const double share =
          std::min(share_with_room(other.peak_device, plan.peak_device, budget.room()),
                   share_with_room(other.host, plan.host, budget.host_room()));
      const auto layers = static_cast<std::int64_t>(share * static_cast<double>(all));
      if (layers < 1) continue;
      const double part = static_cast<double>(layers) / static_cast<double>(all);
      const LayerSplit split{handle.name,
                             choice,
                             layers,
                             all,
                             plan.step + (other.step - plan.step) * part,
                             plan.peak_device + scaled(other.peak_device - plan.peak_device, part),
                             plan.host + scaled(other.host - plan.host, part)};
      if (!fastest || split.step < fastest->step) fastest = split;
    }
  }
  return fastest;
}

}  // namespace spillway
