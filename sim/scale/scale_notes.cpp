#include "sim/scale/scale_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/base/format.h"
#include "model/memory/assignment.h"
#include "model/memory/memory_report.h"

namespace spillway {
namespace {

/// Named of each kind; the others are counted.
constexpr std::size_t kMostNamed = 3;
/// A resized program further than this share from XLA's own is not one of the same step.
constexpr double kFar = 0.1;

std::optional<Bytes> device_bytes(const Program& program) {
  const Result<Schedule> schedule = text_schedule(program);
  if (!schedule.ok()) return std::nullopt;
  return sum_totals(assign_memory(program, *schedule)).total_device;
}

std::string difference(Bytes made, Bytes compiled) {
  return fmt::format("{:+.1f} %", 100 * (ratio(made, compiled) - 1));
}

std::string who(const std::string& name, std::size_t count) {
  return count == 1 ? name : fmt::format("{} and {} more", name, count - 1);
}

std::string_view reason(SizeOrigin origin) {
  switch (origin) {
    case SizeOrigin::kPart:
      return "taken to grow with what it is a part of";
    case SizeOrigin::kLikeness:
      return "taken to be as large as what its operation reads";
    case SizeOrigin::kSplit:
      return "taken to grow in one of several dimensions that could";
    default:
      return "taken to stay as it is";
  }
}

/// A sentence for each of the first, and one that counts the others.
template <typename Item, typename Sentence>
void add_some(const std::vector<Item>& items, const Sentence& sentence, const char* others,
              std::vector<std::string>& notes) {
  for (std::size_t k = 0; k < std::min(items.size(), kMostNamed); ++k)
    notes.push_back(sentence(items[k]));
  if (items.size() > kMostNamed)
    notes.push_back(fmt::format("{} more {}", items.size() - kMostNamed, others));
}

std::string_view place_of(Dump dump) { return dump == Dump::kFirst ? "first" : "second"; }

void add_origin(const SizeOfDumps& sizes, double size, const ScaledProgram& scaled,
                std::vector<std::string>& notes) {
  notes.push_back(
      fmt::format("{0} {1:g}: the {2} program, of {0} {3:g}, resized, its fusions as they "
                  "are{4}",
                  sizes.what, size, place_of(scaled.from), sizes.of(scaled.from),
                  scaled.beyond ? "; beyond both dumps" : ""));
}

void add_check(const ProgramScaler& scaler, const Program& compiled, Dump from,
               std::vector<std::string>& notes) {
  const SizeOfDumps& sizes = scaler.sizes();
  const Result<ScaleCheck> check = scaler.check(from);
  if (!check.ok()) return;
  const auto made = device_bytes(check->program), own = device_bytes(compiled);
  if (!made || !own) return;
  const bool is_far = std::abs(ratio(*made, *own) - 1) > kFar;
  notes.push_back(
      fmt::format("{}: the {} program resized to {} {:g} needs {} of HBM, and XLA's own "
                  "{} ({})",
                  is_far ? "NOT TO BE RELIED ON, since the dumps differ in more than the " +
                               sizes.what + ", or XLA compiles the sizes differently"
                         : "for comparison",
                  place_of(from), sizes.what, sizes.of(other(from)), format_bytes(*made),
                  format_bytes(*own), difference(*made, *own)));
}

/// In between, either program may be resized.
void add_alternative(const ProgramScaler& scaler, double size, const ScaledProgram& scaled,
                     std::vector<std::string>& notes) {
  const Result<ScaledProgram> twin = scaler.at(size, other(scaled.from));
  if (!twin.ok()) return;
  const auto made = device_bytes(scaled.program), others = device_bytes(twin->program);
  if (!made || !others || *made == *others) return;
  notes.push_back(fmt::format("{} {:g} from the {} program needs {} of HBM ({})",
                              scaler.sizes().what, size, place_of(other(scaled.from)),
                              format_bytes(*others), difference(*others, *made)));
}

}  // namespace

std::vector<std::string> scale_notes(const ProgramScaler& scaler, const Program& first,
                                     const Program& second, double size,
                                     const ScaledProgram& scaled) {
  std::vector<std::string> notes;
  const SizeOfDumps& sizes = scaler.sizes();
  if (size == sizes.of(scaled.from)) return notes;
  add_origin(sizes, size, scaled, notes);
  add_check(scaler, scaled.from == Dump::kFirst ? second : first, scaled.from, notes);
  if (!scaled.beyond) add_alternative(scaler, size, scaled, notes);
  add_some(
      scaled.bent,
      [](const BentArrays& a) {
        return fmt::format(
            "{} ({}) grows in more than one dimension: {}, where a straight line "
            "through the dumps has {}",
            a.shape, who(a.name, a.count), format_bytes(a.size), format_bytes(a.straight));
      },
      "shapes that grow in more than one dimension", notes);
  add_some(
      scaled.guessed,
      [](const GuessedArrays& a) {
        return fmt::format("{} ({}) is {}", a.shape, who(a.name, a.count), reason(a.origin));
      },
      "shapes that no rule decides", notes);
  add_some(
      scaled.alone,
      [](const std::string& loop) {
        return fmt::format(
            "the other program has no loop like {}: another policy, or XLA moved "
            "something into or out of it",
            quoted(loop));
      },
      "loops that the other program does not have", notes);
  if (scaled.broken_rules > 0)
    notes.push_back(fmt::format("in {} place(s) sizes contradict each other, and the first holds",
                                scaled.broken_rules));
  return notes;
}

}  // namespace spillway
