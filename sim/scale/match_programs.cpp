#include "sim/scale/match_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace spillway {
namespace {

/// Types and ranks: "(bf16/3,f32/0)".
std::string kind_of(Shape shape) {
  std::string text;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
    const Shape part = shape.at(node);
    text += fmt::format("{}/{},", element_type_name(part.type()),
                        part.is_tuple() ? part.tuple_size() : part.dims().size());
  }
  return text;
}

/// What an instruction is in any program of the step.
std::string key_of(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  if (in.opcode == Opcode::kParameter)
    return fmt::format("parameter {} {}", in.literal, kind_of(in.shape));
  return fmt::format("{} {} {} {}", in.opcode_text, kind_of(in.shape),
                     metadata_field(computation, i, "op_name"),
                     computation.attribute(i, "custom_call_target").value_or(""));
}

std::size_t equal_dimensions(Shape a, Shape b) {
  std::size_t count = 0;
  for (ShapeNodeIndex node = 0; node < a.node_count(); ++node) {
    const auto x = a.at(node).dims(), y = b.at(node).dims();
    for (std::size_t k = 0; k < x.size(); ++k) count += x[k] == y[k] ? 1 : 0;
  }
  return count;
}

/// `theirs` in an order that goes with `mine`: of several of one kind, the one with the most equal
/// dimensions, else the first that is left.
std::vector<InstructionIndex> in_step(const Computation& a,
                                      const std::vector<InstructionIndex>& mine,
                                      const Computation& b, std::vector<InstructionIndex> theirs) {
  constexpr std::size_t kFew = 64;  // more of a kind are bitcasts and constants of unrolled layers
  if (mine.size() == 1 || mine.size() > kFew) return theirs;
  for (std::size_t k = 0; k < mine.size(); ++k) {
    const auto first = theirs.begin() + static_cast<std::ptrdiff_t>(k);
    const auto best = std::max_element(first, theirs.end(), [&](auto x, auto y) {
      return equal_dimensions(a[mine[k]].shape, b[x].shape) <
             equal_dimensions(a[mine[k]].shape, b[y].shape);
    });
    std::rotate(first, best, best + 1);
  }
  return theirs;
}

class Matcher {
 public:
  Matcher(const Program& a, const Program& b) : a_(a), b_(b) {}

  ProgramMatch run() {
    pair(a_.entry, b_.entry);
    while (!open_.empty()) {
      const auto [a, b] = open_.back();
      open_.pop_back();
      match(a, b);
    }
    return std::move(out_);
  }

 private:
  using ByKey = std::map<std::string, std::vector<InstructionIndex>>;

  void pair(ComputationId a, ComputationId b) {
    if (seen_.insert(a).second) open_.emplace_back(a, b);
  }

  static ByKey by_key(const Computation& computation) {
    ByKey keys;
    for (const InstructionIndex i : computation.instructions())
      keys[key_of(computation, i)].push_back(i);
    return keys;
  }

  void match(ComputationId a, ComputationId b) {
    const ByKey of_b = by_key(b_[b]);
    for (const auto& [key, mine] : by_key(a_[a])) {
      const auto found = of_b.find(key);
      if (found == of_b.end() || found->second.size() != mine.size()) continue;
      const std::vector<InstructionIndex> theirs = in_step(a_[a], mine, b_[b], found->second);
      for (std::size_t k = 0; k < mine.size(); ++k) {
        out_.instructions.push_back({{a, mine[k]}, {b, theirs[k]}});
        const auto called_a = a_[a].called(mine[k]);
        const auto called_b = b_[b].called(theirs[k]);
        for (std::size_t c = 0; c < std::min(called_a.size(), called_b.size()); ++c)
          pair(called_a[c], called_b[c]);
      }
    }
  }

  const Program& a_;
  const Program& b_;
  std::vector<std::pair<ComputationId, ComputationId>> open_;
  std::set<ComputationId> seen_;
  ProgramMatch out_;
};

}  // namespace

ProgramMatch match_programs(const Program& a, const Program& b) { return Matcher(a, b).run(); }

}  // namespace spillway
