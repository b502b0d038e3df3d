#include "sim/report/case_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/base/format.h"

namespace spillway {

namespace {

/// The handles that a test accepts, in lists by their choice: "offload a b; recompute c; keep d".
template <typename Accepts>
std::string lists_by_choice(const std::vector<Handle>& handles, const Policy& policy,
                            const Accepts& accepts) {
  std::string text;
  for (const Choice choice : {Choice::kOffload, Choice::kRecompute, Choice::kKeep}) {
    std::string list;
    for (std::size_t k = 0; k < handles.size(); ++k)
      if (policy[k] == choice && accepts(k)) list += " " + handles[k].name;
    if (!list.empty()) text += (text.empty() ? "" : "; ") + std::string(name_of(choice)) + list;
  }
  return text;
}

}  // namespace

std::string policy_text(const std::vector<Handle>& handles, const Policy& policy) {
  const auto keeps = [](Choice choice) { return choice == Choice::kKeep; };
  if (std::ranges::all_of(policy, keeps)) return "keep everything";
  return lists_by_choice(handles, policy, [](std::size_t) { return true; });
}

std::string changes_text(const std::vector<Handle>& handles, const Policy& policy) {
  return lists_by_choice(handles, policy,
                         [&](std::size_t k) { return policy[k] != handles[k].as_compiled; });
}

std::string fit_text(const PolicyCase& outcome) {
  if (outcome.fit.fits) return "fits";
  return fmt::format("misses {}", fmt::join(misses_of(outcome.fit), ", "));
}

std::string budget_text(const Budget& budget) {
  std::string text =
      fmt::format("Budget: {} of HBM ({:.2f} of {}), {} of host memory a device ({})\n",
                  format_bytes(budget.pool), budget.fraction, format_bytes(budget.hbm),
                  format_bytes(budget.host), budget.host_origin);
  if (budget.margin > 0)
    text += fmt::format("  {} of the HBM, since {:g} % may be lost to holes\n",
                        format_bytes(budget.room()), 100 * budget.margin);
  if (budget.block)
    text += fmt::format("  no block above {} in one piece\n", format_bytes(*budget.block));
  if (budget.node_host && budget.host_room() < budget.host)
    text += fmt::format("  {} of host memory for the {} devices of a host ({}), so {} each\n",
                        format_bytes(*budget.node_host), budget.devices_per_node,
                        budget.node_host_is_stated ? "the limit given" : "its CPUs' memory",
                        format_bytes(budget.host_room()));
  return text;
}

std::vector<std::string> case_row(const std::string& name, const PolicyCase& c,
                                  const std::string& last) {
  return {name,
          format_seconds(c.step),
          format_bytes(c.peak_device),
          format_bytes(c.host),
          format_seconds(c.exposed_copies),
          fmt::format("{:.2f}", c.fit.smallest_fraction),
          fit_text(c),
          last};
}

std::vector<std::string> case_heads(const std::string& last) {
  return {"", ">step", ">HBM", ">host", ">copies exposed", ">pool needed", "", last};
}

}  // namespace spillway
