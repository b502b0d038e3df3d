// Arguments that results could take over: a donation saves memory only where the program's alias
// table pairs a parameter with a result.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"

namespace spillway::internal {
namespace {

using Piece = std::pair<std::uint32_t, ShapeNodeIndex>;  // of a parameter

std::set<Piece> aliased_pieces(const Program& program) {
  std::set<Piece> pieces;
  for (const InputOutputAlias& alias : program.aliases)
    pieces.insert({alias.parameter, alias.parameter_node});
  return pieces;
}

Shape shape_of(const Program& program, const Piece& piece) {
  const Computation& entry = program.entry_computation();
  return entry[entry.parameters()[piece.first]].shape.at(piece.second);
}

std::set<Piece> donated_pieces(const Program& program) {
  std::set<Piece> pieces;
  for (const BufferDonor& donor : program.donors)
    pieces.insert({donor.parameter, donor.parameter_node});
  return pieces;
}

std::optional<Finding> donation_unused(const Evidence& in) {
  const std::set<Piece> aliased = aliased_pieces(in.program);
  std::int64_t count = 0;
  Bytes bytes, largest_bytes;
  std::string largest;
  for (const Piece& piece : donated_pieces(in.program)) {
    const Shape shape = shape_of(in.program, piece);
    const bool on_device = shape.is_array() && !is_host(shape.space());
    if (aliased.contains(piece) || !on_device || shape.bytes() == Bytes(0)) continue;
    ++count;
    bytes += shape.bytes();
    if (shape.bytes() <= largest_bytes) continue;
    largest_bytes = shape.bytes();
    largest = to_string(shape);
  }
  if (count == 0) return std::nullopt;
  return Finding{
      fmt::format("{} ({}) may be overwritten, and no result takes the place of {}; the largest is "
                  "{}.",
                  counted(count, "donated argument", "donated arguments"), format_bytes(bytes),
                  count == 1 ? "it" : "them", largest),
      "A donation is permission: without a result of the same size and layout, whose entry stands "
      "in input_output_alias, it saves nothing (JAX: \"Some donated buffers were not usable\").",
      "Return a value of the same shape, type and sharding, or count this argument as held "
      "throughout."};
}

/// Results that could lie where an argument of the same shape lies, if that were donated.
std::optional<Finding> state_held_twice(const Evidence& in) {
  const Computation& entry = in.program.entry_computation();
  const std::set<Piece> aliased = aliased_pieces(in.program);
  const std::set<Piece> donated = donated_pieces(in.program);
  std::map<std::string, std::int64_t> offered;  // arguments by shape
  for (std::uint32_t number = 0; number < entry.parameters().size(); ++number) {
    const Shape whole = entry[entry.parameters()[number]].shape;
    for (ShapeNodeIndex node = 0; node < whole.node_count(); ++node) {
      const Shape shape = whole.at(node);
      const Piece piece{number, node};
      if (shape.is_array() && !is_host(shape.space()) && !donated.contains(piece) &&
          !aliased.contains(piece))
        ++offered[to_string(shape)];
    }
  }
  std::set<ShapeNodeIndex> taken;
  for (const InputOutputAlias& alias : in.program.aliases) taken.insert(alias.output);
  const Shape result = entry.shape_of(entry.root());
  std::int64_t count = 0;
  Bytes bytes;
  for (ShapeNodeIndex node = 0; node < result.node_count(); ++node) {
    const Shape shape = result.at(node);
    if (!shape.is_array() || taken.contains(node)) continue;
    const auto match = offered.find(to_string(shape));
    if (match == offered.end() || match->second == 0) continue;
    --match->second;
    ++count;
    bytes += shape.bytes();
  }
  constexpr Bytes kTooSmall{std::int64_t{1} << 20};
  if (bytes < kTooSmall || !at_least(bytes, in.memory.totals.total_device, 20)) return std::nullopt;
  return Finding{
      fmt::format("{} of arguments that are not donated ({}): both are held.",
                  counted(count, "result has the shape", "results have the shapes"),
                  format_bytes(bytes)),
      "In a training step these are mostly the old and the new state.",
      "jax.jit(step, donate_argnums=...) for the state; input_output_alias in the program then "
      "lists it."};
}

constexpr Rule kRules[] = {
    {"donation-unused", Severity::kWarning, donation_unused},
    {"state-held-twice", Severity::kWarning, state_held_twice},
};

}  // namespace

std::span<const Rule> donation_rules() { return kRules; }

}  // namespace spillway::internal
