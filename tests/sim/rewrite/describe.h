// A computation in one line, for tables: "p c a(p,c) t(a,p) -> t#1", parameters by their order.
#pragma once

#include <string>

#include "model/program/computation.h"

namespace spillway::testing {

inline std::string describe(const Computation& computation, Operand operand) {
  std::string text(computation[operand.instruction].name);
  if (operand.node > 0) text += "#" + std::to_string(operand.node);
  return text;
}

inline std::string describe(const Computation& computation) {
  std::string text;
  for (const InstructionIndex i : computation.instructions()) {
    text += computation[i].name;
    for (std::size_t k = 0; k < computation.operands(i).size(); ++k)
      text += (k == 0 ? "(" : ",") + describe(computation, computation.operands(i)[k]);
    text += computation.operands(i).empty() ? " " : ") ";
  }
  return text + "-> " + describe(computation, computation.root());
}

}  // namespace spillway::testing
