#include "sim/rewrite/circular_control.h"

#include <algorithm>
#include <string>

#include "model/program/control_predecessors.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {
namespace {

constexpr std::string_view kControl = "control-predecessors";

}  // namespace

Program without_circular_control(const Program& program) {
  ProgramEditor editor(program);
  bool changes = false;
  for (const ComputationId id : ids(program.computations)) {
    const Computation& computation = program[id];
    ControlPredecessors predecessors(computation);
    for (const InstructionIndex i : computation.instructions()) {
      const std::vector<InstructionIndex> all = predecessors.of(i);
      std::string kept;
      std::size_t count = 0;
      for (const InstructionIndex before : all) {
        if (before.index >= i.index) continue;
        kept += (kept.empty() ? "%" : ", %") + std::string(computation[before].name);
        ++count;
      }
      if (count == all.size()) continue;
      changes = true;
      auto& attributes = editor.edit(id)[i.index].attributes;
      const auto own = std::ranges::find(attributes, kControl, &Attribute::name);
      if (kept.empty())
        attributes.erase(own);
      else
        own->value = editor.text("{" + kept + "}");
    }
  }
  return changes ? editor.finish() : program;
}

}  // namespace spillway
