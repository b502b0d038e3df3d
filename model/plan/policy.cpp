#include "model/plan/policy.h"

#include <algorithm>

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
