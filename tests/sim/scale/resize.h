// Programs resized from what is wanted of a few dimensions, for tables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/scale/resize_program.h"
#include "tests/support/toy_program.h"

namespace spillway::testing {

/// Dimension `k` of an instruction shall be `size`.
struct Wish {
  std::string instruction;
  std::size_t k = 0;
  std::int64_t size = 0;
};

/// Parameters of the entry keep their sizes where nothing else is wished.
inline std::vector<WantedSize> wanted_sizes(const Program& program, const DimensionRules& rules,
                                            const std::vector<Wish>& wishes) {
  std::vector<WantedSize> wanted;
  for (const InstructionIndex i : program.entry_computation().parameters()) {
    const Instruction& in = program.entry_computation()[i];
    for (std::size_t k = 0; k < in.shape.dims().size(); ++k) {
      std::int64_t size = in.shape.dims()[k];
      for (const Wish& wish : wishes)
        if (wish.instruction == in.name && wish.k == k) size = wish.size;
      wanted.push_back({rules.dimensions.at({program.entry, i}, 0, k), size});
    }
  }
  return wanted;
}

inline Result<Program> resized(const Program& program, const std::vector<Wish>& wishes) {
  const DimensionRules rules = find_dimension_rules(program);
  const auto wanted = wanted_sizes(program, rules, wishes);
  return resize_program(program, rules, solve_dimensions(program, rules, wanted, {}));
}

/// The shape of an instruction, wherever it is.
inline std::string shape_of(const Program& program, std::string_view name) {
  return to_string(program[find_instruction(program, name)].shape);
}

}  // namespace spillway::testing
