// A policy and what came of it, as tables and JSON show it.
#pragma once

#include <string>
#include <vector>

#include "sim/planner/evaluate.h"

namespace spillway {

/// "offload a b; recompute c; keep d".
std::string policy_text(const std::vector<Handle>& handles, const Policy& policy);
/// "offload a b; recompute c": what a policy changes of how the program was compiled; empty for
/// nothing.
std::string changes_text(const std::vector<Handle>& handles, const Policy& policy);
/// "fits", or by how much it misses what.
std::string fit_text(const PolicyCase& outcome);

/// What there is to be used, in a line; limits that were stated or that a node has beside it.
std::string budget_text(const Budget& budget);

/// What XLA's order aims at where no pool was stated, for people.
inline constexpr std::string_view kAimsAheadOfTime =
    "XLA compiles ahead of time and aims at 0.8 of the HBM; with --mem-fraction or --hbm-limit at "
    "that pool, as on a live device";

/// Heads of a table of cases, and a row of it: what comes first and last is the caller's.
std::vector<std::string> case_heads(const std::string& last);
std::vector<std::string> case_row(const std::string& name, const PolicyCase& c,
                                  const std::string& last);

/// Every handle and alias with its choice, in their order: add(name, choice).
template <typename Add>
void visit_policy(const std::vector<Handle>& handles, const Policy& policy, const Add& add) {
  for (std::size_t k = 0; k < handles.size(); ++k) {
    add(handles[k].name, name_of(policy[k]));
    for (const std::string& alias : handles[k].aliases) add(alias, name_of(policy[k]));
  }
}

/// The figures of a case under their names in JSON: add(name, number).
template <typename Add>
void visit_figures(const PolicyCase& c, const Add& add) {
  add("step_seconds", c.step.value());
  add("peak_device_bytes", c.peak_device.value());
  add("largest_block_bytes", c.largest_block.value());
  add("host_bytes", c.host.value());
  add("node_host_bytes", c.fit.node_host.value());
  add("fits", c.fit.fits);
  add("over_hbm_bytes", c.fit.over_hbm.value());
  add("over_block_bytes", c.fit.over_block.value());
  add("over_host_bytes", c.fit.over_host.value());
  add("over_node_host_bytes", c.fit.over_node.value());
  add("smallest_fraction", c.fit.smallest_fraction);
  add("dot_flops_per_step", c.dot_flops);
  add("d2h_bytes_per_step", c.device_to_host.value());
  add("h2d_bytes_per_step", c.host_to_device.value());
  add("exposed_copy_seconds", c.exposed_copies.value());
}

}  // namespace spillway
