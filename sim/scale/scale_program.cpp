#include "sim/scale/scale_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "model/program/call_graph.h"
#include "sim/scale/resize_program.h"

namespace spillway {
namespace {

/// Arrays smaller than this decide nothing.
constexpr Bytes kSmall(1 << 20);
/// Whether a step gives an argument back, as it does parameters and the state of the optimizer.
bool is_updated(const Program& program, std::uint32_t number) {
  return std::ranges::find(program.aliases, number, &InputOutputAlias::parameter) !=
         program.aliases.end();
}

/// Whether a dimension of `first` and `second` elements grows as the sizes do: in proportion, or as
/// a sequence that is a token longer than the model's, for its targets.
bool grows_as(std::int64_t first, std::int64_t second, const SizeOfDumps& sizes) {
  constexpr double kFewTokens = 2;
  constexpr std::int64_t kShortest = 16;  // a sequence; of a batch nothing is one more
  const double slope = static_cast<double>(second - first) / (sizes.second - sizes.first);
  const double more = static_cast<double>(first) - slope * sizes.first;
  if (std::abs(more) < 1e-6 * static_cast<double>(first)) return true;
  return std::abs(more) <= kFewTokens && std::abs(slope - std::round(slope)) < 1e-6 &&
         std::min(first, second) >= kShortest;
}

InstructionId argument(const Program& program, std::uint32_t number) {
  return {program.entry, program.entry_computation().parameters()[number]};
}

/// Arrays of what an instruction makes, with the number of their node: add(node, array).
template <typename Add>
void visit_arrays(Shape shape, const Add& add) {
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    if (shape.at(node).is_array()) add(node, shape.at(node));
}

/// Instructions that run by themselves, not as a part of a fusion: visit(id).
template <typename Visit>
void visit_executed(const Program& program, const Visit& visit) {
  const Multiplicity times = multiplicity(program, runs_what_it_calls);
  for (const ComputationId id : ids(program.computations))
    if (times.runs[id] > 0)
      for (const InstructionIndex i : program[id].instructions())
        if (!is_free(program[id][i])) visit(InstructionId{id, i});
}

}  // namespace

ProgramScaler::ProgramScaler(const Program& first, const Program& second, const SizeOfDumps& sizes)
    : programs_{&first, &second},
      rules_{find_dimension_rules(first), find_dimension_rules(second)},
      sizes_(sizes),
      matched_(match_programs(first, second).instructions) {}

Result<ProgramScaler> ProgramScaler::make(const Program& first, const Program& second,
                                          const SizeOfDumps& sizes) {
  const auto arguments = [](const Program& p) { return p.entry_computation().parameters().size(); };
  if (first.device_count() != second.device_count())
    return error_in_file(second.path,
                         fmt::format("is compiled for {} device(s), the first program for {}",
                                     second.device_count(), first.device_count()),
                         "two dumps of one step on one mesh, that differ in " + sizes.what);
  if (arguments(first) != arguments(second))
    return error_in_file(second.path,
                         fmt::format("is not the same step: it has {} argument(s), the first "
                                     "program {}",
                                     arguments(second), arguments(first)),
                         "two dumps of one model and policy, that differ in " + sizes.what);
  ProgramScaler scaler(first, second, sizes);
  if (auto wrong = scaler.compare_arguments()) return *wrong;
  return scaler;
}

std::optional<Error> ProgramScaler::compare_arguments() const {
  bool any_differs = false;
  for (std::uint32_t k = 0; k < program(Dump::kFirst).entry_computation().parameters().size();
       ++k) {
    if (auto wrong = compare_argument(k)) return wrong;
    any_differs |= !compatible(program(Dump::kFirst)[argument(program(Dump::kFirst), k)].shape,
                               program(Dump::kSecond)[argument(program(Dump::kSecond), k)].shape);
  }
  // Everything else follows from the arguments: other sizes further in come of something else.
  if (any_differs) return std::nullopt;
  return error_in_file(program(Dump::kSecond).path,
                       "has arguments of the same sizes as the first program",
                       "two dumps that differ in " + sizes_.what);
}

/// The same type and rank, and dimensions that differ grow with what the dumps differ in.
std::optional<Error> ProgramScaler::compare_argument(std::uint32_t number) const {
  const Shape a = program(Dump::kFirst)[argument(program(Dump::kFirst), number)].shape;
  const Shape b = program(Dump::kSecond)[argument(program(Dump::kSecond), number)].shape;
  const auto wrong = [&](const std::string& text) {
    return error_in_file(
        program(Dump::kSecond).path,
        fmt::format("argument {} is {}, and {} in the first program: {}", number, to_string(b),
                    to_string(a), text),
        fmt::format("two dumps of one model and policy, that differ in {} only", sizes_.what));
  };
  if (!same_nesting(a, b)) return wrong("not the same step");
  for (ShapeNodeIndex node = 0; node < a.node_count(); ++node) {
    const auto mine = a.at(node).dims(), theirs = b.at(node).dims();
    if (a.at(node).type() != b.at(node).type() || mine.size() != theirs.size())
      return wrong("not the same step");
    for (std::size_t k = 0; k < mine.size(); ++k) {
      if (mine[k] != theirs[k] && is_updated(program(Dump::kFirst), number))
        return wrong("what a step updates has one size at any " + sizes_.what);
      if (mine[k] != theirs[k] && !grows_as(mine[k], theirs[k], sizes_))
        return wrong(fmt::format("the dumps are of {} {:g} and {:g}, and {} and {} do not grow so",
                                 sizes_.what, sizes_.first, sizes_.second, mine[k], theirs[k]));
    }
  }
  return std::nullopt;
}

bool ProgramScaler::grows_from_one(Dump dump) const {
  for (std::uint32_t k = 0; k < program(dump).entry_computation().parameters().size(); ++k) {
    const Shape here = program(dump)[argument(program(dump), k)].shape;
    const Shape there = program(other(dump))[argument(program(other(dump)), k)].shape;
    for (ShapeNodeIndex node = 0; node < here.node_count(); ++node)
      for (std::size_t d = 0; d < here.at(node).dims().size(); ++d)
        if (here.at(node).dims()[d] == 1 && there.at(node).dims()[d] != 1) return true;
  }
  return false;
}

Dump ProgramScaler::base_for(double size) const {
  for (const Dump dump : {Dump::kFirst, Dump::kSecond})
    if (size != size_of(dump) && grows_from_one(dump)) return other(dump);
  const auto distance = [size](double from) { return std::abs(std::log(size / from)); };
  const double first = distance(sizes_.first), second = distance(sizes_.second);
  if (std::abs(first - second) < 1e-9)
    return sizes_.first > sizes_.second ? Dump::kFirst : Dump::kSecond;
  return first < second ? Dump::kFirst : Dump::kSecond;
}

std::optional<std::int64_t> ProgramScaler::on_line(Dump from, std::int64_t here, std::int64_t there,
                                                   double size) const {
  if (here == there) return here;
  const double share = (size - size_of(from)) / (size_of(other(from)) - size_of(from));
  const double exact = static_cast<double>(here) + static_cast<double>(there - here) * share;
  const double whole = std::round(exact);
  if (whole < 1 || std::abs(exact - whole) > 1e-6 * std::max(1.0, whole)) return std::nullopt;
  return static_cast<std::int64_t>(whole);
}

/// Arguments are what is known for certain.
std::optional<Error> ProgramScaler::want_arguments(Dump from, double size,
                                                   std::vector<WantedSize>& wanted) const {
  const Program& base = program(from);
  for (std::uint32_t k = 0; k < base.entry_computation().parameters().size(); ++k) {
    const InstructionId id = argument(base, k);
    const Shape here = base[id].shape;
    const Shape there = program(other(from))[argument(program(other(from)), k)].shape;
    for (ShapeNodeIndex node = 0; node < here.node_count(); ++node)
      for (std::size_t d = 0; d < here.at(node).dims().size(); ++d) {
        const auto scaled = on_line(from, here.at(node).dims()[d], there.at(node).dims()[d], size);
        if (!scaled)
          return usage_error(fmt::format("{} {:g} makes dimension {} of argument {}, {}, no whole "
                                         "number above 0",
                                         sizes_.what, size, d, k, to_string(here.at(node))),
                             "ask for one that divides as the program does");
        wanted.push_back({rules(from).dimensions.at(id, node, d), *scaled});
      }
  }
  return std::nullopt;
}

Result<ProgramScaler::Solution> ProgramScaler::solve(Dump from, double size) const {
  const Program& base = program(from);
  std::vector<WantedSize> wanted, evidence;
  if (auto wrong = want_arguments(from, size, wanted)) return *wrong;
  Solution solution;
  for (const auto& [of_first, of_second] : matched_) {
    const InstructionId id = from == Dump::kFirst ? of_first : of_second;
    const InstructionId twin = from == Dump::kFirst ? of_second : of_first;
    const Shape there = program(other(from))[twin].shape;
    visit_arrays(base[id].shape, [&](ShapeNodeIndex node, Shape array) {
      for (std::size_t d = 0; d < array.dims().size(); ++d)
        if (const auto scaled = on_line(from, array.dims()[d], there.at(node).dims()[d], size))
          evidence.push_back({rules(from).dimensions.at(id, node, d), *scaled});
    });
    if (base[id].opcode != Opcode::kWhile) continue;
    const auto trips = known_trip_count(base[id.computation], id.instruction);
    const auto twin_trips =
        known_trip_count(program(other(from))[twin.computation], twin.instruction);
    if (!trips || !twin_trips || trips == twin_trips) continue;
    const auto scaled = on_line(from, *trips, *twin_trips, size);
    if (!scaled)
      return error_at(base, base[id].name,
                      fmt::format("loop {} would not run a whole number of times at {} {:g}",
                                  quoted(base[id].name), sizes_.what, size));
    solution.trips[id] = *scaled;
  }
  solution.solved = solve_dimensions(base, rules(from), wanted, evidence);
  return solution;
}

Result<Program> ProgramScaler::resize(Dump from, const Solution& solution) const {
  return resize_program(program(from), rules(from), solution.solved, solution.trips);
}

Result<ScaledProgram> ProgramScaler::at(double size, Dump from) const {
  ScaledProgram out;
  out.from = from;
  out.beyond =
      size < std::min(sizes_.first, sizes_.second) || size > std::max(sizes_.first, sizes_.second);
  out.program = program(out.from);
  if (size == size_of(out.from)) return out;
  Result<Solution> solution = solve(out.from, size);
  if (!solution.ok()) return solution.error();
  Result<Program> resized = resize(out.from, *solution);
  if (!resized.ok()) return resized.error();
  out.program = std::move(resized).value();
  out.broken_rules = solution->solved.broken.size();
  find_guessed(solution->solved, out);
  find_alone(out);
  if (auto wrong = find_bent(size, out)) return *wrong;
  return out;
}

/// Compares with the line through the program itself and the same at the other's size.
std::optional<Error> ProgramScaler::find_bent(double size, ScaledProgram& out) const {
  const Program& base = program(out.from);
  const Result<Solution> solution = solve(out.from, size_of(other(out.from)));
  if (!solution.ok()) return solution.error();
  const Result<Program> end = resize(out.from, *solution);
  if (!end.ok()) return end.error();
  const double share = (size - size_of(out.from)) / (size_of(other(out.from)) - size_of(out.from));
  std::map<std::string, BentArrays> by_shape;
  visit_executed(base, [&](InstructionId id) {
    visit_arrays(base[id].shape, [&](ShapeNodeIndex node, Shape array) {
      const auto from = static_cast<double>(array.bytes().value());
      const auto to = static_cast<double>((*end)[id].shape.at(node).bytes().value());
      const Bytes straight(static_cast<std::int64_t>(from + (to - from) * share));
      const Shape made = out.program[id].shape.at(node);
      const double off = ratio(made.bytes(), std::max(straight, Bytes(1)));
      if (std::max(made.bytes(), straight) < kSmall || std::abs(off - 1) < 0.01) return;
      BentArrays& arrays = by_shape[to_string(made)];
      if (arrays.count++ == 0)
        arrays = {std::string(base[id].name), to_string(made), 1, made.bytes(), straight};
    });
  });
  for (auto& [shape, arrays] : by_shape) out.bent.push_back(std::move(arrays));
  std::ranges::sort(out.bent, std::ranges::greater(), &BentArrays::size);
  return std::nullopt;
}

/// Loops without a counterpart are sized by their rules alone.
void ProgramScaler::find_alone(ScaledProgram& out) const {
  std::set<InstructionId> matched;
  for (const auto& [of_first, of_second] : matched_)
    matched.insert(out.from == Dump::kFirst ? of_first : of_second);
  const Program& base = program(out.from);
  visit_executed(base, [&](InstructionId id) {
    if (base[id].opcode == Opcode::kWhile && !matched.contains(id))
      out.alone.emplace_back(base[id].name);
  });
}

/// What is left as it was counts where it is made by a call of a library, whose workspaces grow in
/// their own way.
void ProgramScaler::find_guessed(const SolvedDimensions& solved, ScaledProgram& out) const {
  const Program& base = program(out.from);
  std::map<std::string, GuessedArrays> by_shape;
  visit_executed(base, [&](InstructionId id) {
    const bool is_call = base[id].opcode == Opcode::kCustomCall && base[id].operand_count > 0;
    visit_arrays(base[id].shape, [&](ShapeNodeIndex node, Shape array) {
      SizeOrigin origin = SizeOrigin::kImplied;
      for (std::size_t d = 0; d < array.dims().size(); ++d)
        origin = std::max(origin, solved.sizes[rules(out.from).dimensions.at(id, node, d)].origin);
      const Shape made = out.program[id].shape.at(node);
      if (made.bytes() < kSmall || origin <= SizeOrigin::kEvidence) return;
      if (origin == SizeOrigin::kUnchanged && !is_call) return;
      GuessedArrays& arrays = by_shape[to_string(made)];
      if (arrays.count++ == 0)
        arrays = {std::string(base[id].name), to_string(made), 1, origin, made.bytes()};
    });
  });
  for (auto& [shape, arrays] : by_shape) out.guessed.push_back(std::move(arrays));
  std::ranges::sort(out.guessed, std::ranges::greater(), &GuessedArrays::size);
}

Result<ScaleCheck> ProgramScaler::check(Dump from) const {
  const Result<Solution> solution = solve(from, size_of(other(from)));
  if (!solution.ok()) return solution.error();
  Result<Program> resized = resize(from, *solution);
  if (!resized.ok()) return resized.error();
  ScaleCheck check;
  check.program = std::move(resized).value();
  check.compared = matched_.size();
  check.instructions = program(from).instruction_count();
  for (const auto& [of_first, of_second] : matched_) {
    const InstructionId id = from == Dump::kFirst ? of_first : of_second;
    const Shape mine = check.program[id].shape;
    const Shape theirs = program(other(from))[from == Dump::kFirst ? of_second : of_first].shape;
    if (!compatible(mine, theirs))
      check.unlike.push_back(
          {std::string(check.program[id].name), to_string(mine), to_string(theirs)});
  }
  return check;
}

}  // namespace spillway
