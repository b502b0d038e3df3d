#include "model/state/training_state.h"

#include <algorithm>
#include <map>
#include <optional>

namespace spillway {
namespace {

bool is_floating(ElementType type) {
  const std::string_view name = element_type_name(type);
  return name.starts_with("f") || name.starts_with("bf");
}

bool multiplies(Opcode opcode) {
  switch (opcode) {
    case Opcode::kConvolution:
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kScaledDot:
      return true;
    default:
      return false;
  }
}

/// Whether an instruction is work of the model itself: a loop over its layers, a matrix product, a
/// library call.
bool is_of_model(const Program& program, const Computation& entry, InstructionIndex i) {
  const Opcode opcode = entry[i].opcode;
  if (opcode == Opcode::kWhile || opcode == Opcode::kConditional || opcode == Opcode::kCall ||
      multiplies(opcode))
    return true;
  if (opcode == Opcode::kCustomCall) return entry[i].operand_count > 0;
  if (opcode != Opcode::kFusion) return false;
  const Computation& fused = program[entry.called(i)[0]];
  for (const InstructionIndex inner : fused.instructions())
    if (multiplies(fused[inner].opcode)) return true;
  return false;
}

/// Of every instruction of the entry whether it is work of the model, or leads to some.
std::vector<bool> leads_to_model(const Program& program) {
  const Computation& entry = program.entry_computation();
  std::vector<bool> leads(entry.size(), false);
  for (std::size_t k = entry.size(); k-- > 0;) {
    const InstructionIndex i(k);
    leads[k] = is_of_model(program, entry, i) ||
               std::ranges::any_of(entry.uses(i), [&leads](const Use& use) {
                 return static_cast<bool>(leads[use.user.index]);
               });
  }
  return leads;
}

/// What the JAX name of an argument says, by the words that optax, Flax and MaxText use.
std::optional<StateClass> class_by_name(std::string_view name) {
  const auto has = [name](std::string_view word) { return name.find(word) != name.npos; };
  // ".mu" is a part of a path; the beginning of ".multiplier" is none.
  const auto has_part = [name](std::string_view part) {
    for (std::size_t at = name.find(part); at != name.npos; at = name.find(part, at + 1)) {
      const std::size_t end = at + part.size();
      if (end == name.size() || name[end] == '.' || name[end] == '[') return true;
    }
    return false;
  };
  for (const std::string_view word : {"opt_state", "optimizer", "['mu']", "['nu']"})
    if (has(word)) return StateClass::kOptimizer;
  if (has_part(".mu") || has_part(".nu")) return StateClass::kOptimizer;
  if (name.starts_with("opt[")) return StateClass::kOptimizer;
  for (const std::string_view word : {"params", "['model']", "parameters"})
    if (has(word)) return StateClass::kParameters;
  if (name.starts_with("p[")) return StateClass::kParameters;
  return std::nullopt;
}

/// What was found out about the arguments of one class.
struct Opinions {
  bool all_named = true, all_used_so = true;
};

StateEvidence weigh(const Opinions& opinions, bool shapes_fit) {
  if (!opinions.all_used_so) return StateEvidence::kName;
  if (opinions.all_named) return StateEvidence::kUseAndName;
  return shapes_fit ? StateEvidence::kUseAndShape : StateEvidence::kUse;
}

bool same_dims(Shape a, Shape b) { return std::ranges::equal(a.dims(), b.dims()); }

/// Whether every moment has the shape of a parameter.
bool moments_fit(const TrainingState& state) {
  const std::vector<StateArgument> parameters = state.of(StateClass::kParameters);
  return std::ranges::all_of(state.arguments, [&](const StateArgument& argument) {
    return argument.kind == StateClass::kParameters ||
           std::ranges::any_of(parameters, [&argument](const StateArgument& parameter) {
             return same_dims(parameter.shape, argument.shape);
           });
  });
}

}  // namespace

std::string_view name_of(StateClass kind) {
  return kind == StateClass::kParameters ? "params" : "optimizer";
}

std::string_view name_of(StateEvidence evidence) {
  switch (evidence) {
    case StateEvidence::kUseAndName:
      return "use and name";
    case StateEvidence::kUseAndShape:
      return "use and shape";
    case StateEvidence::kUse:
      return "use";
    case StateEvidence::kName:
      return "name";
  }
  return "";
}

std::vector<StateArgument> TrainingState::of(StateClass kind) const {
  std::vector<StateArgument> found;
  for (const StateArgument& argument : arguments)
    if (argument.kind == kind) found.push_back(argument);
  return found;
}

TrainingState find_training_state(const Program& program) {
  TrainingState state;
  if (program.aliases.empty()) {
    state.unknown_because =
        "no argument of the step is donated (donate_argnums), so that nothing says which result is "
        "the new state of which";
    return state;
  }
  const Computation& entry = program.entry_computation();
  const std::vector<bool> leads = leads_to_model(program);
  std::map<StateClass, Opinions> opinions;
  for (const InputOutputAlias& alias : program.aliases) {
    if (alias.parameter_node != 0) continue;
    const InstructionIndex i = entry.parameters()[alias.parameter];
    const Shape shape = entry[i].shape;
    if (!shape.is_array() || !is_floating(shape.type()) || shape.elements() < 2) continue;
    const bool in_model = std::ranges::any_of(entry.uses(i), [&leads](const Use& use) {
      return static_cast<bool>(leads[use.user.index]);
    });
    const StateClass by_use = in_model ? StateClass::kParameters : StateClass::kOptimizer;
    const auto by_name = class_by_name(metadata_text(entry, i, "op_name"));
    const StateClass kind = by_name.value_or(by_use);
    Opinions& opinion = opinions[kind];
    opinion.all_named &= by_name.has_value();
    opinion.all_used_so &= kind == by_use;
    state.arguments.push_back({alias.parameter, i, alias.output, shape, kind});
  }
  std::ranges::sort(state.arguments, {}, &StateArgument::parameter);
  if (state.arguments.empty())
    state.unknown_because = "no donated argument of the step is an array of floating point";
  state.parameters = weigh(opinions[StateClass::kParameters], false);
  state.optimizer = weigh(opinions[StateClass::kOptimizer], moments_fit(state));
  return state;
}

Bytes bytes_of(const TrainingState& state, StateClass kind) {
  Bytes sum;
  for (const StateArgument& argument : state.arguments)
    if (argument.kind == kind) sum += argument.shape.bytes();
  return sum;
}

Bytes host_bytes_of(const TrainingState& state, StateClass kind) {
  Bytes sum;
  for (const StateArgument& argument : state.arguments)
    if (argument.kind == kind && is_host(argument.shape.space())) sum += argument.shape.bytes();
  return sum;
}

}  // namespace spillway
