#include "model/residuals/match_names.h"

#include <algorithm>
#include <map>

namespace spillway {
namespace {

/// Names and residuals that fit each other by shape and layers, and the loop they are in.
struct Group {
  std::vector<std::size_t> names;  ///< into the sidecar
  std::vector<ResidualId> residuals;
};

/// Two names on one value, as MaxText gives MoE tensors: same shape and same source line.
bool same_value(const CheckpointName& a, const CheckpointName& b) {
  return !a.source.empty() && a.source == b.source && a.shape == b.shape && a.layers == b.layers &&
         a.name != b.name && (a.name.ends_with(b.name) || b.name.ends_with(a.name));
}

/// Gives name `k` to a residual, and the second names that follow it.
void assign(Residual& residual, const NameList& list, std::size_t k, NameEvidence evidence) {
  residual.names.push_back(list.names[k].name);
  residual.evidence = evidence;
  for (++k; k < list.names.size() && same_value(list.names[k], list.names[k - 1]); ++k)
    residual.names.push_back(list.names[k].name);
}

void match_group(const NameList& list, Group group, ResidualTable& table) {
  // The layer's input goes first; what is left is paired in order.
  const auto input = std::ranges::find_if(
      group.residuals, [&](ResidualId id) { return table.residuals[id].is_layer_input; });
  if (input != group.residuals.end() && group.names.size() > 1) {
    assign(table.residuals[*input], list, group.names.front(), NameEvidence::kCarry);
    group.residuals.erase(input);
    group.names.erase(group.names.begin());
  }
  NameEvidence evidence = NameEvidence::kOrder;
  if (group.names.size() == 1) evidence = NameEvidence::kShape;
  if (group.names.size() > group.residuals.size()) evidence = NameEvidence::kGuess;
  for (std::size_t k = 0; k < std::min(group.names.size(), group.residuals.size()); ++k)
    assign(table.residuals[group.residuals[k]], list, group.names[k], evidence);
}

/// Names that fit the same residuals, and these, loop by loop.
std::vector<Group> make_groups(const NameList& list, std::int64_t devices,
                               const std::vector<std::size_t>& first_names,
                               const ResidualTable& table) {
  std::map<std::pair<InstructionId, std::vector<std::size_t>>, Group> groups;
  for (const ResidualId id : ids(table.residuals)) {
    const Residual& residual = table.residuals[id];
    std::vector<std::size_t> fitting;
    for (const std::size_t k : first_names)
      if (may_be_shard(list.names[k], residual.slice, residual.layers, devices))
        fitting.push_back(k);
    if (fitting.empty()) continue;
    Group& group = groups[{residual.forward_loop, fitting}];
    group.names = fitting;
    group.residuals.push_back(id);
  }
  std::vector<Group> result;
  for (auto& [key, group] : groups) result.push_back(std::move(group));
  return result;
}

}  // namespace

void match_names(const NameList& list, std::int64_t devices, ResidualTable& table) {
  // Second names of a value follow the first, and go where it goes.
  std::vector<std::size_t> first_names;
  for (std::size_t k = 0; k < list.names.size(); ++k)
    if (k == 0 || !same_value(list.names[k], list.names[k - 1])) first_names.push_back(k);

  for (const Group& group : make_groups(list, std::max(list.devices, devices), first_names, table))
    match_group(list, group, table);

  for (std::size_t k = 0; k < list.names.size(); ++k) {
    const std::string& name = list.names[k].name;
    const auto carries = [&name](const Residual& r) {
      return std::ranges::find(r.names, name) != r.names.end();
    };
    if (std::ranges::any_of(table.residuals, carries)) continue;
    if (std::ranges::find(table.unmatched_names, name) == table.unmatched_names.end())
      table.unmatched_names.push_back(name);
  }
}

}  // namespace spillway
