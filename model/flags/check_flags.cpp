#include "model/flags/check_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/flags/check_values.h"
#include "model/flags/flag_names.h"
#include "model/flags/flag_rules.h"
#include "model/flags/flag_table.h"
#include "model/flags/known_flags.h"
#include "model/base/spelling.h"

namespace spillway {
namespace {

constexpr std::string_view kEndsProcess = "XLA ends the process at it.";

/// A name with what flags lose and gain when they are proven left out.
std::string without_status(std::string name) {
  for (const std::string_view word : {"_experimental", "_unsupported"})
    if (const std::size_t at = name.find(word); at != std::string::npos)
      name.erase(at, word.size());
  return name;
}

/// The flag of this version that was probably meant; empty when none is near.
std::string find_meant(const std::string& name, const JaxlibVersion& version) {
  constexpr std::size_t kLettersAMistake = 6;
  std::vector<std::string> names;
  for (const KnownFlag& flag : known_flags())
    if (knows(flag, version) == Knows::kYes) names.emplace_back(flag.name);
  const std::string bare = without_status(name);
  for (const std::string& known : names)
    if (without_status(known) == bare) return known;
  return std::string(nearest_name(name, names, kLettersAMistake));
}

/// "--name-false" for "--name=false": the flag, and the value behind the dash.
std::optional<std::pair<std::string, std::string>> find_missing_equals(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  std::string flag = name.substr(0, dash), value = name.substr(dash + 1);
  if (find_known_flag(flag) == nullptr) return std::nullopt;
  return std::pair(std::move(flag), std::move(value));
}

/// What to write in place of a name that is not known.
std::string advice_for(const FlagUse& use, const JaxlibVersion& version) {
  if (!use.word.starts_with("--")) return "Flags begin with two dashes.";
  if (const auto missing = find_missing_equals(use.name))
    return fmt::format("An '=' is missing: --{}={}.", missing->first, missing->second);
  if (use.name.starts_with("xla_tpu_")) return "Flags of TPUs belong into LIBTPU_INIT_ARGS.";
  if (use.name.starts_with("tf_xla_")) return "It belongs into TF_XLA_FLAGS.";
  const std::string meant = find_meant(use.name, version);
  return meant.empty() ? "Leave it out." : fmt::format("Did you mean --{}?", meant);
}

Diagnostic unknown(const FlagUse& use, const JaxlibVersion& version) {
  return {"unknown-flag", Severity::kError,
          fmt::format("jaxlib {} knows no flag {}.", to_string(version), quoted(use.word)),
          std::string(kEndsProcess), advice_for(use, version)};
}

/// Of another version.
Diagnostic not_in_version(const KnownFlag& flag, const FlagUse& use, const JaxlibVersion& version) {
  const bool is_gone =
      flag.since >= probed_versions().size() || probed_versions()[flag.since] <= version;
  const GoneFlag* gone = find_gone_flag(flag.name);
  std::string advice = "Leave it out.";
  if (is_gone && gone != nullptr)
    advice = fmt::format("In its place: {}.", gone->instead);
  else if (!is_gone)
    advice = "Leave it out, or take a jaxlib that has it.";
  return {is_gone ? "removed-flag" : "later-flag", Severity::kError,
          fmt::format("jaxlib {} has no flag --{} {} ({}).", to_string(version), use.name,
                      is_gone ? "any more" : "yet", life_of(flag)),
          std::string(kEndsProcess), std::move(advice)};
}

/// What is wrong with one use by itself.
std::optional<Diagnostic> check_use(const FlagUse& use, const JaxlibVersion& version) {
  const KnownFlag* const flag = use.word.starts_with("--") ? find_known_flag(use.name) : nullptr;
  if (flag == nullptr) return unknown(use, version);
  const Knows known = knows(*flag, version);
  if (known == Knows::kNo) return not_in_version(*flag, use, version);
  if (const auto fault = find_value_fault(*flag, use))
    return Diagnostic{"bad-value", Severity::kError, fmt::format("--{}: {}.", use.name, *fault),
                      std::string(kEndsProcess), fmt::format("It takes {}.", name_of(flag->type))};
  if (known == Knows::kUnsure)
    return Diagnostic{"unsure-flag", Severity::kWarning,
                      fmt::format("whether jaxlib {} has --{} is not known here ({}).",
                                  to_string(version), use.name, life_of(*flag)),
                      "XLA ends the process at a flag that it does not know.",
                      "Try it on one process first."};
  return std::nullopt;
}

/// A name that stands there twice.
std::vector<Diagnostic> find_repeated(const FlagText& text) {
  std::vector<Diagnostic> found;
  std::map<std::string, const FlagUse*, std::less<>> last;
  for (const FlagUse& use : text.uses) {
    const FlagUse*& before = last[use.name];
    if (before != nullptr && !adds_up(use.name)) {
      const bool same = before->value == use.value;
      found.push_back({"repeated-flag", same ? Severity::kInfo : Severity::kWarning,
                       same ? fmt::format("--{} stands there twice.", use.name)
                            : fmt::format("--{} stands there twice, as {} and as {}.", use.name,
                                          quoted(before->value.value_or("true")),
                                          quoted(use.value.value_or("true"))),
                       same ? "" : "The last one holds.", "Keep one."});
    }
    before = &use;
  }
  return found;
}

/// "--flag value" and "--flag = value": what stands behind the last flag that was read was to be
/// its value. Empty where it has one.
std::optional<std::string> find_lost_value(const FlagText& text) {
  if (text.uses.empty() || !text.uses.back().value.value_or("").empty()) return std::nullopt;
  const std::size_t from = text.unread.find_first_not_of("= \t\r\n\\");
  if (from == std::string::npos) return std::nullopt;
  const std::string value =
      text.unread.substr(from, text.unread.find_first_of(" \t\r\n", from) - from);
  if (value.starts_with("-")) return std::nullopt;
  return flag::set(text.uses.back().name, value);
}

Diagnostic not_read(const FlagText& text) {
  const std::string& unread = text.unread;
  const auto meant = find_lost_value(text);
  return {"flags-not-read", Severity::kError,
          fmt::format("XLA reads nothing from {} on, and does not say so.", quoted(unread)),
          "It stops at the first word that does not begin with a dash.",
          meant ? "Values stand behind '=' without blanks: " + *meant + "."
                : "Leave out what stands in the way: a backslash at the end of a line, blanks "
                  "around '=', "
                  "a value with blanks that is not in quotes."};
}

}  // namespace

std::optional<Error> check_version(const JaxlibVersion& version) {
  const bool is_older = version < oldest_probed();
  if (!is_older && version <= newest_probed()) return std::nullopt;
  return Error{
      ErrorKind::kUsage,
      fmt::format("jaxlib {} is not known here: it is {} than {}", to_string(version),
                  is_older ? "older" : "newer",
                  to_string(is_older ? oldest_probed() : newest_probed())),
      {},
      "",
      fmt::format("known are {} to {}", to_string(oldest_probed()), to_string(newest_probed()))};
}

std::vector<Diagnostic> check_flags(const FlagText& text, const FlagContext& context) {
  std::vector<Diagnostic> found;
  for (const FlagUse& use : text.uses)
    if (auto finding = check_use(use, context.jaxlib)) found.push_back(std::move(*finding));
  if (!text.unread.empty()) found.push_back(not_read(text));
  if (text.profile_fault)
    found.push_back({"profile-not-read", Severity::kWarning,
                     fmt::format("--{}: {}.", flag::kProfile, text.profile_fault->what),
                     "XLA goes on without a profile.", text.profile_fault->advice});
  for (Diagnostic& finding : find_repeated(text)) found.push_back(std::move(finding));
  for (Diagnostic& finding : internal::check_together(settle(text), context))
    found.push_back(std::move(finding));
  std::ranges::stable_sort(found, std::ranges::greater(), &Diagnostic::severity);
  return found;
}

bool has_error(const std::vector<Diagnostic>& findings) {
  return std::ranges::any_of(findings,
                             [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

}  // namespace spillway
