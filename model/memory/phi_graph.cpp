#include "model/memory/phi_graph.h"

#include <algorithm>

namespace spillway {

void PhiGraph::simplify() {
  find_users();
  merge_closures();
  merge_trivial();
}

PhiGraph::Origin PhiGraph::settle(Origin origin) {
  Origin end = origin;
  while (end.is_phi && phis_[end.index].same_as) end = *phis_[end.index].same_as;
  // Later look-ups of the same chain take one step.
  while (origin.is_phi && origin != end) {
    const Origin next = *phis_[origin.index].same_as;
    phis_[origin.index].same_as = end;
    origin = next;
  }
  return end;
}

void PhiGraph::find_users() {
  users_.assign(phis_.size(), {});
  for (std::uint32_t phi = 0; phi < phis_.size(); ++phi)
    for (const Origin& input : phis_[phi].inputs)
      if (input.is_phi && input.index != phi) users_[input.index].push_back(phi);
}

/// What definitions can be reached spreads from phi to phi: none, one, many.
void PhiGraph::merge_closures() {
  struct Reached {
    std::optional<Origin> only;
    bool many = false;
  };
  std::vector<Reached> reached(phis_.size());
  std::vector<std::uint32_t> changed;
  const auto add = [&](std::uint32_t phi, const Reached& more) {
    Reached& known = reached[phi];
    if (known.many || (!more.many && (!more.only || known.only == more.only))) return;
    known.many = more.many || known.only;
    known.only = more.only;
    changed.push_back(phi);
  };
  for (std::uint32_t phi = 0; phi < phis_.size(); ++phi)
    for (const Origin& input : phis_[phi].inputs)
      if (!input.is_phi) add(phi, {input, false});
  while (!changed.empty()) {
    const std::uint32_t phi = changed.back();
    changed.pop_back();
    for (const std::uint32_t user : users_[phi]) add(user, reached[phi]);
  }
  for (std::uint32_t phi = 0; phi < phis_.size(); ++phi)
    if (!reached[phi].many) phis_[phi].same_as = reached[phi].only;
}

void PhiGraph::merge_trivial() {
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t phi = 0; phi < phis_.size(); ++phi)
    if (!phis_[phi].same_as) waiting.push_back(phi);
  std::ranges::reverse(waiting);  // taken from the back, so in order
  while (!waiting.empty()) {
    const std::uint32_t phi = waiting.back();
    waiting.pop_back();
    if (phis_[phi].same_as) continue;
    const Origin self{true, phi};
    std::optional<Origin> only;
    bool trivial = true;
    for (const Origin& input : phis_[phi].inputs) {
      const Origin origin = settle(input);
      if (origin == self || origin == only) continue;
      trivial = !only;
      if (!trivial) break;
      only = origin;
    }
    if (!trivial || !only) continue;
    phis_[phi].same_as = only;
    // Those that met this phi now meet `only`, and may have become trivial; so may it.
    if (only->is_phi) {
      auto& users = users_[only->index];
      users.insert(users.end(), users_[phi].begin(), users_[phi].end());
      waiting.push_back(only->index);
    }
    waiting.insert(waiting.end(), users_[phi].begin(), users_[phi].end());
  }
}

}  // namespace spillway
