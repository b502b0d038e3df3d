// Which orders a computation may run in: its steps, and which must come before which.
//
// An async start and its done are one step: run at once, a copy or collective needs the least
// memory, and that is what these orders are for.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/memory/assignment.h"

namespace spillway {

/// Lists of numbers, one list a step.
class StepLists {
 public:
  /// The list of `from` gets `to`, in the order of `edges`; doubles are dropped.
  struct Edge {
    std::uint32_t from = 0, to = 0;
  };
  StepLists() = default;
  /// What the lists hold are numbers below `limit`.
  StepLists(std::size_t steps, std::size_t limit, const std::vector<Edge>& edges);

  std::span<const std::uint32_t> operator[](std::uint32_t step) const {
    return std::span(items_).subspan(first_[step], first_[step + 1] - first_[step]);
  }

 private:
  std::vector<std::uint32_t> first_;  ///< one more than there are steps
  std::vector<std::uint32_t> items_;
};

struct StepGraph {
  struct Step {
    InstructionIndex instruction;
    std::optional<InstructionIndex> done;
  };
  std::vector<Step> steps;  ///< as they run now
  StepLists before;         ///< what each must wait for: operands first, in their order
  StepLists after;          ///< the same, seen from the other end
  StepLists users;          ///< steps that read what each makes
};

/// `first` must run before `then` though `then` does not read it: it reads what `then` writes over.
struct Precedence {
  InstructionIndex first, then;
};

/// What reads values before others take their place (in-place updates, loop carries, donated
/// parameters) in an assignment whose order is right: in any other order it must do so too.
IdVector<ComputationId, std::vector<Precedence>> find_precedences(const Program& program,
                                                                  const Lifetimes& given);

/// The graph of a computation that control flow reaches.
StepGraph make_step_graph(const Computation& computation, const std::vector<LogicalTime>& position,
                          const std::vector<Precedence>& precedences);

}  // namespace spillway
