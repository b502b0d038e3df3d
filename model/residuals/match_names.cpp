#include "model/residuals/match_names.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

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

/// "path:line" in two parts; line 0 where there is none.
std::pair<std::string_view, std::int64_t> split_source(std::string_view source) {
  const std::size_t colon = source.rfind(':');
  if (colon == std::string_view::npos) return {source, 0};
  std::int64_t line = 0;
  std::from_chars(source.data() + colon + 1, source.data() + source.size(), line);
  return {source.substr(0, colon), line};
}

/// How many lines behind what produces a residual a name is given; empty when in another file, in
/// front of it, or too far behind. The one names a path in its package, the other one on a machine.
std::optional<std::int64_t> lines_behind(const Residual& residual, const CheckpointName& name) {
  // A screenful: a name is given where a value is made, or behind the statement that makes it.
  // Chosen, not fitted to anything; it decides only where names and residuals differ in number.
  constexpr std::int64_t kFew = 40;
  const auto [producer, line] = split_source(residual.source);
  const auto [file, name_line] = split_source(name.source);
  const bool same_file =
      !file.empty() && producer.ends_with(file) &&
      (producer.size() == file.size() || producer[producer.size() - file.size() - 1] == '/');
  const std::int64_t distance = name_line - line;
  if (!same_file || line < 1 || distance < 0 || distance > kFew) return std::nullopt;
  return distance;
}

/// Names of a group by the residual they belong to, as far as sources tell; `in_order` where a
/// later residual carries a later name.
std::vector<std::optional<std::size_t>> match_by_source(const NameList& list, const Group& group,
                                                        const ResidualTable& table, bool in_order) {
  std::vector<std::optional<std::size_t>> place(group.residuals.size());  // into group.names
  std::size_t from = 0;
  for (std::size_t r = 0; r < group.residuals.size(); ++r) {
    std::optional<std::int64_t> nearest;
    for (std::size_t n = from; n < group.names.size(); ++n) {
      const auto distance =
          lines_behind(table.residuals[group.residuals[r]], list.names[group.names[n]]);
      if (!distance || (nearest && *distance >= *nearest)) continue;
      if (std::ranges::find(place, n) != place.end()) continue;
      nearest = distance;
      place[r] = n;
    }
    if (place[r] && in_order) from = *place[r] + 1;
  }
  return place;
}

bool have_lines_of_their_own(const NameList& list, const std::vector<std::size_t>& names) {
  std::set<std::string_view> lines;
  for (const std::size_t k : names) lines.insert(list.names[k].source);
  return lines.size() == names.size();
}

void match_group(const NameList& list, Group group, ResidualTable& table) {
  // The layer's input goes first.
  const auto input = std::ranges::find_if(
      group.residuals, [&](ResidualId id) { return table.residuals[id].is_layer_input; });
  if (input != group.residuals.end() && group.names.size() > 1) {
    assign(table.residuals[*input], list, group.names.front(), NameEvidence::kCarry);
    group.residuals.erase(input);
    group.names.erase(group.names.begin());
  }
  const bool equally_many = group.names.size() == group.residuals.size();
  NameEvidence evidence = equally_many ? NameEvidence::kOrder : NameEvidence::kGuess;
  if (equally_many && group.names.size() == 1) evidence = NameEvidence::kShape;
  // The loop may carry what is kept first, or what is offloaded: then the order tells nothing.
  const auto place_of = [&](ResidualId id) { return table.residuals[id].placement; };
  const bool is_mixed = std::ranges::any_of(group.residuals, [&](ResidualId id) {
    return place_of(id) != place_of(group.residuals.front());
  });
  if (is_mixed) evidence = NameEvidence::kGuess;
  // What sources tell stands fixed; the others are paired in order in between.
  std::vector<std::optional<std::size_t>> place(group.residuals.size());
  if (!equally_many)
    place = match_by_source(list, group, table, /*in_order=*/true);
  else if (is_mixed && have_lines_of_their_own(list, group.names))
    place = match_by_source(list, group, table, /*in_order=*/false);
  // Out of order it is all or nothing: what is left has nothing to stand between.
  if (equally_many && !std::ranges::all_of(place, [](const auto& p) { return p.has_value(); }))
    place.assign(group.residuals.size(), std::nullopt);
  std::size_t next = 0;
  for (std::size_t r = 0; r < group.residuals.size(); ++r) {
    Residual& residual = table.residuals[group.residuals[r]];
    if (place[r]) {
      assign(residual, list, group.names[*place[r]], NameEvidence::kSource);
      next = *place[r] + 1;
      continue;
    }
    const auto fixed = std::find_if(place.begin() + static_cast<std::ptrdiff_t>(r), place.end(),
                                    [](const auto& p) { return p.has_value(); });
    const std::size_t end = fixed == place.end() ? group.names.size() : **fixed;
    if (next < end) assign(residual, list, group.names[next++], evidence);
  }
}

/// Names that fit the same residuals, and these, loop by loop.
std::vector<Group> make_groups(const NameList& list, std::int64_t devices,
                               const std::vector<std::size_t>& first_names,
                               const ResidualTable& table) {
  std::map<std::pair<InstructionId, std::vector<std::size_t>>, Group> groups;
  for (const ResidualId id : ids(table.residuals)) {
    const Residual& residual = table.residuals[id];
    std::vector<std::size_t> fitting;
    for (const auto fits : {may_be_shard, may_be_transposed_shard}) {
      if (!fitting.empty()) break;
      for (const std::size_t k : first_names)
        if (fits(list.names[k], residual.slice, residual.layers, devices)) fitting.push_back(k);
    }
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
