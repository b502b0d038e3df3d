#include "model/plan/policy.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace spillway {
namespace {

bool shares_name(const Handle& handle, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&handle](const std::string& name) {
    return handle.name == name || std::ranges::find(handle.aliases, name) != handle.aliases.end();
  });
}

/// The handle that has one of these names, made where there is none yet.
Handle& find_or_add(std::vector<Handle>& handles, const std::vector<std::string>& names,
                    const std::string& id, Placement placement) {
  auto handle =
      std::ranges::find_if(handles, [&](const Handle& h) { return shares_name(h, names); });
  if (handle == handles.end()) {
    Handle fresh;
    fresh.name = names.empty() ? id : names.front();
    fresh.as_compiled = placement == Placement::kDevice ? Choice::kKeep : Choice::kOffload;
    handle = handles.insert(handles.end(), std::move(fresh));
  }
  for (const std::string& name : names)
    if (name != handle->name && std::ranges::find(handle->aliases, name) == handle->aliases.end())
      handle->aliases.push_back(name);
  return *handle;
}

}  // namespace

std::string_view name_of(Choice choice) {
  switch (choice) {
    case Choice::kKeep:
      return "keep";
    case Choice::kOffload:
      return "offload";
    case Choice::kRecompute:
      return "recompute";
  }
  return "";
}

std::vector<Handle> make_handles(const ResidualTable& table, bool has_names,
                                 const std::vector<std::string>& why_fixed) {
  std::vector<Handle> handles;
  for (const ResidualId id : ids(table.residuals)) {
    const Residual& residual = table.residuals[id];
    if (has_names && residual.names.empty()) continue;
    Handle& handle = find_or_add(handles, residual.names, residual.id, residual.placement);
    handle.residuals.push_back(id);
    handle.bytes += residual.total_bytes;
    if (handle.fixed_because.empty()) handle.fixed_because = why_fixed[id.index];
  }
  return handles;
}

std::vector<Handle> make_handles(const UnrolledTable& table, bool has_names) {
  std::vector<Handle> handles;
  for (const UnrolledId id : ids(table.residuals)) {
    const UnrolledResidual& residual = table.residuals[id];
    if (has_names && residual.names.empty()) continue;
    Handle& handle = find_or_add(handles, residual.names, residual.id, residual.placement);
    handle.unrolled.push_back(id);
    handle.bytes += residual.total_bytes();
  }
  return handles;
}

std::string layers_text(const std::vector<std::uint32_t>& layers) {
  std::string text;
  for (std::size_t k = 0; k < layers.size();) {
    std::size_t last = k;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    text += (text.empty() ? "@" : ",") + std::to_string(layers[k]);
    if (last > k) text += "-" + std::to_string(layers[last]);
    k = last + 1;
  }
  return text;
}

std::vector<std::uint32_t> layers_of(const Handle& handle, const UnrolledTable& table) {
  if (!handle.layers.empty()) return handle.layers;
  std::vector<std::uint32_t> all(table.layers.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void split_layers(std::vector<Handle>& handles, const UnrolledTable& table,
                  const LayerGroup& group) {
  const auto has_all = [&](const Handle& handle) {
    return !handle.unrolled.empty() && shares_name(handle, {group.name}) &&
           std::ranges::includes(layers_of(handle, table), group.layers);
  };
  const auto found = std::ranges::find_if(handles, has_all);
  if (found == handles.end() || group.layers.empty()) return;
  std::vector<std::uint32_t> left;
  std::ranges::set_difference(layers_of(*found, table), group.layers, std::back_inserter(left));
  const Bytes each = found->bytes / static_cast<std::int64_t>(left.size() + group.layers.size());
  Handle part = *found;
  part.layers = group.layers;
  part.bytes = each * static_cast<std::int64_t>(group.layers.size());
  const std::string suffix = layers_text(group.layers);
  part.name += suffix;
  for (std::string& alias : part.aliases) alias += suffix;
  if (left.empty()) {
    *found = std::move(part);
    return;
  }
  found->bytes = each * static_cast<std::int64_t>(left.size());
  found->layers = std::move(left);
  handles.insert(found + 1, std::move(part));
}

std::vector<Choice> choices_of(const Handle& handle) {
  std::vector<Choice> choices;
  if (!handle.fixed_because.empty()) {
    choices.push_back(handle.as_compiled);
  } else {
    choices.push_back(Choice::kKeep);
    if (handle.device_only_because.empty()) choices.push_back(Choice::kOffload);
  }
  if (is_name(handle) && handle.saved_because.empty()) choices.push_back(Choice::kRecompute);
  return choices;
}

double count_policies(const std::vector<Handle>& handles) {
  double count = 1;
  for (const Handle& handle : handles) count *= static_cast<double>(choices_of(handle).size());
  return count;
}

Policy compiled_policy(const std::vector<Handle>& handles) {
  Policy policy;
  for (const Handle& handle : handles) policy.push_back(handle.as_compiled);
  return policy;
}

Policy allowed_policy(const std::vector<Handle>& handles) {
  Policy policy = compiled_policy(handles);
  for (std::size_t k = 0; k < handles.size(); ++k)
    if (!handles[k].device_only_because.empty()) policy[k] = Choice::kKeep;
  return policy;
}

bool is_allowed(const std::vector<Handle>& handles, const Policy& policy) {
  for (std::size_t k = 0; k < handles.size(); ++k)
    if (!handles[k].device_only_because.empty() && policy[k] == Choice::kOffload) return false;
  return true;
}

}  // namespace spillway
