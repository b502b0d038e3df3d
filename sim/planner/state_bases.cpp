#include "sim/planner/state_bases.h"

#include <algorithm>

#include "sim/schedule/reorder.h"

namespace spillway {

std::vector<Handle> make_state_handles(const Program& program, const MemoryAssignment& memory,
                                       const TrainingState& state) {
  std::vector<Handle> handles;
  for (const StateClass kind : kStateClasses) {
    Handle handle;
    handle.name = name_of(kind);
    handle.state = kind;
    handle.bytes = bytes_of(state, kind);
    if (handle.bytes == Bytes(0)) continue;
    handle.saved_because = "nothing computes state anew";
    handle.fixed_because = why_state_not_movable(program, memory, state, kind);
    handle.as_compiled =
        placement_of(state, kind) == Placement::kPinnedHost ? Choice::kOffload : Choice::kKeep;
    handles.push_back(std::move(handle));
  }
  return handles;
}

std::optional<Error> check_state_name(const std::string& name, const std::vector<Handle>& handles,
                                      const TrainingState& state) {
  const auto is_called = [&name](StateClass kind) { return name_of(kind) == name; };
  if (std::ranges::none_of(kStateClasses, is_called) ||
      std::ranges::find(handles, name, &Handle::name) != handles.end())
    return std::nullopt;
  const bool unknown = !state.unknown_because.empty();
  return usage_error(
      "--set " + name + ": " +
          (unknown ? state.unknown_because : "the step has no donated state of that kind"),
      unknown ? "compile the step with its state donated" : "");
}

StateBases::StateBases(const Program& program, const MemoryAssignment& memory,
                       const TrainingState& state, const HardwareProfile& profile)
    : program_(program), memory_(memory), state_(state), profile_(profile) {}

std::unique_ptr<StateBase> StateBases::make(const std::vector<StateChange>& changes) const {
  const Program moved = move_state(program_, memory_, state_, changes);
  auto base = std::make_unique<StateBase>();
  base->program = reorder_changed(moved, program_, profile_);
  base->memory = find_lifetimes(base->program, text_schedule(base->program).value());
  base->residuals = find_residuals(base->program, base->memory, {});
  base->recompute.emplace(base->program, base->memory, base->residuals);
  return base;
}

const StateBase& StateBases::with(const std::vector<StateChange>& changes) const {
  std::vector<std::pair<StateClass, Placement>> key;
  for (const StateChange& change : changes) key.emplace_back(change.kind, change.placement);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<StateBase>& base = made_[key];
  if (!base) base = make(changes);
  return *base;
}

}  // namespace spillway
