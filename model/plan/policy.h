// A policy: what happens to each name that a user can set. The planner's decision variable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/residuals/residuals.h"
#include "model/residuals/unrolled.h"
#include "model/state/training_state.h"

namespace spillway {

enum class Choice { kKeep, kOffload, kRecompute };
std::string_view name_of(Choice choice);

/// Something the user sets as one: a checkpoint name with all its residuals, in every loop. Two
/// names on one value are one handle. Without names each residual is a handle under its id. State
/// classes are handles called "optimizer" and "params".
struct Handle {
  std::string name;                  ///< the first of its names
  std::vector<std::string> aliases;  ///< the others
  std::vector<ResidualId> residuals;
  std::vector<UnrolledId> unrolled = {};  ///< of a step whose layers are not scanned
  /// Of those, the layers that it has; empty: all. Ascending.
  std::vector<std::uint32_t> layers = {};
  Bytes bytes;  ///< of all its stacks on one device
  Choice as_compiled = Choice::kKeep;
  std::string fixed_because;  ///< why it cannot be moved; empty when it can
  /// Why it must not be on the host, even where it was compiled so; empty when it may.
  std::string device_only_because = {};
  /// Why it cannot be recomputed; empty when it can.
  std::string saved_because = {};
  /// For what is no residual but the step's own: parameters, optimizer state.
  std::optional<StateClass> state = {};
};

/// Whether a handle is what jax.checkpoint decides, and no state.
inline bool is_name(const Handle& handle) { return !handle.state; }

/// What may become of a handle, its compiled place first where it has to stay there.
std::vector<Choice> choices_of(const Handle& handle);

/// One choice a handle, in the handles' order.
using Policy = std::vector<Choice>;

/// The policy with another choice for one handle.
inline Policy with_choice(Policy policy, std::size_t handle, Choice choice) {
  policy[handle] = choice;
  return policy;
}

/// How many policies there are: a floating-point number, since they may be very many.
double count_policies(const std::vector<Handle>& handles);

/// Groups residuals into handles. With names, residuals without one are left out: the user cannot
/// set them. `why_fixed` says of each residual why it cannot be moved, or nothing.
std::vector<Handle> make_handles(const ResidualTable& table, bool has_names,
                                 const std::vector<std::string>& why_fixed);

/// The same of an unrolled step: a name with its values of all layers.
std::vector<Handle> make_handles(const UnrolledTable& table, bool has_names);

/// Some layers of a name, which are to have a handle of their own: "query_proj@4-7".
struct LayerGroup {
  std::string name;                   ///< of a handle, or one of its aliases
  std::vector<std::uint32_t> layers;  ///< ascending
};
/// "@3", "@4-7", "@0,2,4": how layers are written behind a name.
std::string layers_text(const std::vector<std::uint32_t>& layers);

/// Takes these layers out of the handle that has them all and gives them one of their own behind
/// it, named after both; with none left the former goes. Nothing happens where no handle of
/// unrolled layers has them all.
void split_layers(std::vector<Handle>& handles, const UnrolledTable& table,
                  const LayerGroup& group);

/// The layers that a handle of unrolled layers has.
std::vector<std::uint32_t> layers_of(const Handle& handle, const UnrolledTable& table);

/// The policy the program was compiled with.
Policy compiled_policy(const std::vector<Handle>& handles);

/// The same, with everything on the device that must be there.
Policy allowed_policy(const std::vector<Handle>& handles);

/// Whether a policy leaves on the device what must be there.
bool is_allowed(const std::vector<Handle>& handles, const Policy& policy);

}  // namespace spillway
