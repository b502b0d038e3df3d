#include "model/plan/policy.h"

#include <algorithm>

namespace spillway {
namespace {

bool shares_name(const Handle& handle, const Residual& residual) {
  return std::ranges::any_of(residual.names, [&handle](const std::string& name) {
    return handle.name == name || std::ranges::find(handle.aliases, name) != handle.aliases.end();
  });
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
    auto handle =
        std::ranges::find_if(handles, [&](const Handle& h) { return shares_name(h, residual); });
    if (handle == handles.end()) {
      Handle fresh;
      fresh.name = residual.names.empty() ? residual.id : residual.names.front();
      fresh.as_compiled =
          residual.placement == Placement::kDevice ? Choice::kKeep : Choice::kOffload;
      handle = handles.insert(handles.end(), std::move(fresh));
    }
    for (const std::string& name : residual.names)
      if (name != handle->name && std::ranges::find(handle->aliases, name) == handle->aliases.end())
        handle->aliases.push_back(name);
    handle->residuals.push_back(id);
    handle->bytes += residual.total_bytes;
    if (handle->fixed_because.empty()) handle->fixed_because = why_fixed[id.index];
  }
  return handles;
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
