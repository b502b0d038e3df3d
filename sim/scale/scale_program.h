// A training step at another batch or sequence, from two compiled programs of it. One of the two is
// resized: every dimension that depends on the batch gets the size it would have, and the program
// then goes through memory, schedule and simulation as any other. Nothing is interpolated but what
// no rule of HLO decides, and that is said. Left out: what XLA would compile differently for the
// other size (fusions, order, workspaces of libraries). Why: docs/whatif.md#batch-and-sequence
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "model/base/result.h"
#include "sim/scale/match_programs.h"
#include "sim/scale/solve_dimensions.h"

namespace spillway {

/// One of the two programs.
enum class Dump : std::uint8_t { kFirst, kSecond };
constexpr Dump other(Dump dump) { return dump == Dump::kFirst ? Dump::kSecond : Dump::kFirst; }

/// What the two programs differ in, and how large it is in each: as the user counts it, per device
/// or globally.
struct SizeOfDumps {
  std::string what;  ///< "batch" or "sequence", for messages
  double first = 0, second = 0;
  double of(Dump dump) const { return dump == Dump::kFirst ? first : second; }
};

/// Arrays of one shape whose size is no straight line through the two programs: two of their
/// dimensions grow, as those of attention scores do.
struct BentArrays {
  std::string name, shape;  ///< of the first of them, as resized
  std::size_t count = 0;
  Bytes size, straight;  ///< of one; and where the straight line would be
};

/// Arrays of one shape whose size no rule of HLO decides.
struct GuessedArrays {
  std::string name, shape;
  std::size_t count = 0;
  SizeOrigin origin = SizeOrigin::kUnchanged;
  Bytes size;
};

struct ScaledProgram {
  Program program;
  Dump from = Dump::kFirst;
  bool beyond = false;                 ///< outside of the two sizes
  std::vector<BentArrays> bent;        ///< largest first
  std::vector<GuessedArrays> guessed;  ///< largest first
  std::vector<std::string> alone;      ///< loops that the other program does not have
  std::size_t broken_rules = 0;        ///< places where sizes contradict each other
};

/// An array that XLA made differently in the other program than the resized one has it.
struct UnlikeArray {
  std::string name, resized, compiled;  ///< its shapes
};

/// How well it does where the truth is known: one program resized to the size of the other.
struct ScaleCheck {
  Program program;           ///< `from`, resized
  std::size_t compared = 0;  ///< instructions that both programs have
  std::size_t instructions = 0;
  std::vector<UnlikeArray> unlike;  ///< of those compared
};

/// Two programs of one step. They must outlive it.
class ProgramScaler {
 public:
  /// An error: they are not the same step, do not differ, or differ in something else besides.
  static Result<ProgramScaler> make(const Program& first, const Program& second,
                                    const SizeOfDumps& sizes);

  /// The program that a size is made from: the nearer one, by ratio; the larger of two as near. But
  /// not one in which what grows is 1, since XLA drops such dimensions.
  Dump base_for(double size) const;
  /// The step at another size. An error: a dimension would be no whole number, or what follows from
  /// it does not fit together.
  Result<ScaledProgram> at(double size) const { return at(size, base_for(size)); }
  Result<ScaledProgram> at(double size, Dump from) const;
  const SizeOfDumps& sizes() const { return sizes_; }
  /// One of the programs at the size of the other.
  Result<ScaleCheck> check(Dump from) const;

 private:
  ProgramScaler(const Program& first, const Program& second, const SizeOfDumps& sizes);

  struct Solution {
    SolvedDimensions solved;
    std::map<InstructionId, std::int64_t> trips;
  };
  const Program& program(Dump dump) const { return *programs_[static_cast<std::size_t>(dump)]; }
  const DimensionRules& rules(Dump dump) const { return rules_[static_cast<std::size_t>(dump)]; }
  double size_of(Dump dump) const { return sizes_.of(dump); }
  bool grows_from_one(Dump dump) const;
  std::optional<Error> compare_arguments() const;
  std::optional<Error> compare_argument(std::uint32_t number) const;
  /// A number that is `here` in one program and `there` in the other, at another size; empty when
  /// it is not whole and positive.
  std::optional<std::int64_t> on_line(Dump from, std::int64_t here, std::int64_t there,
                                      double size) const;
  Result<Solution> solve(Dump from, double size) const;
  std::optional<Error> want_arguments(Dump from, double size,
                                      std::vector<WantedSize>& wanted) const;
  Result<Program> resize(Dump from, const Solution& solution) const;
  std::optional<Error> find_bent(double size, ScaledProgram& out) const;
  void find_alone(ScaledProgram& out) const;
  void find_guessed(const SolvedDimensions& solved, ScaledProgram& out) const;

  std::array<const Program*, 2> programs_;
  std::array<DimensionRules, 2> rules_;
  SizeOfDumps sizes_;
  std::vector<std::pair<InstructionId, InstructionId>> matched_;
};

}  // namespace spillway
